import { isDeepStrictEqual } from 'node:util'
import { installationSecret } from '../../src/db/secrets.ts'
import { createErasedPeople, ERASURE_SECRET } from '../../src/erasure/erased.ts'
import { addAutoReply } from '../../src/replies/auto-replies.ts'
import { addEndpoint } from '../../src/webhooks/endpoints.ts'
import { fillGroup } from '../campaigns/support.ts'
import { startSimulated } from '../delivery/simulated.ts'
import { keyring } from '../support/keyring.ts'
import { type MessageCaller, newKey, smsFallback } from '../support/messages.ts'
import { until } from '../support/until.ts'
import { startSink } from '../webhooks/support.ts'

// People with everything that Herald can store about them.

/** `mark`: a word that is in every text to or from the person, and nowhere else. */
export type Life = { caller: MessageCaller; phone: string; mark: string; messageIds: string[]; campaignId: string }

export async function startPrivacy() {
  const simulated = await startSimulated({ HERALD_WEBHOOK_ALLOW_PRIVATE: 'true' })
  const { pool, simulator, service, newCaller } = simulated
  const people = createErasedPeople(await installationSecret(pool, ERASURE_SECRET, keyring))
  // An endpoint that repeats what it gets.
  const sink = await startSink(({ body }, response) => {
    response.writeHead(200).end(body)
    return undefined
  })

  let lives = 0
  /** A new number with this ending, and a word of its own. */
  function newName(ending: string): { phone: string; mark: string } {
    lives += 1
    return { phone: `+4850077${String(lives).padStart(2, '0')}${ending}`, mark: `Kowalski${lives}x` }
  }

  const isOver = async (caller: MessageCaller, id: string) =>
    ['DELIVERED', 'READ', 'FAILED'].includes((await caller.read(id)).body.status) || undefined
  async function settled(): Promise<void> {
    await until('nothing is left to do', async () => {
      const before = await simulator.ask('counts')
      const { rowCount } = await pool.query(
        `select from carrier_events where process_after is not null union all select from queue union all select from sms_queue
         union all select from log_pages where last_position is null union all select from webhook_deliveries where due_at <= now()`,
      )
      const { owed, ...totals } = await simulator.ask('counts')
      return rowCount === 0 && owed.webhooks + owed.deliverSm === 0 && isDeepStrictEqual(before, { ...totals, owed })
    })
  }

  /** Sends a campaign to a group with the person and another recipient. The person also gets a copy of each SMS. */
  async function runCampaign(caller: MessageCaller, phone: string, mark: string): Promise<string> {
    await fillGroup(pool, caller.accountId, 1, ['+48500770002', phone])
    await pool.query('update groups set members = 2 where account_id = $1', [caller.accountId])
    await pool.query(`update group_members set attributes = json_build_object('name', $3::text) where account_id = $1 and phone = $2`, [
      caller.accountId,
      phone,
      mark,
    ])
    const sms = smsFallback(
      { testNumbers: ['+48500770102', phone], useTestNumbers: true },
      { content: 'Sale https://example.com/s', urlShortening: true },
    )
    const campaign = {
      name: 'Sale',
      agentId: caller.agentId,
      segmentIds: [1],
      message: { inline: { type: 'MESSAGE', content: 'Sale' } },
      smsFallback: sms,
    }
    const { body } = await caller.ask('POST', '/campaigns', campaign, { 'Idempotency-Key': newKey() })
    await until('the campaign is over', async () => (await caller.ask('GET', `/campaigns/${body.campaignId}`)).body.status === 'COMPLETED')
    return body.campaignId
  }

  async function newAccount(): Promise<MessageCaller> {
    const caller = await newCaller()
    await addEndpoint(pool, { accountId: caller.accountId, url: sink.url }, keyring)
    const templateId = await caller.template({ type: 'MESSAGE', content: 'From 8 to 16' })
    await addAutoReply(pool, { accountId: caller.accountId, agentId: caller.agentId, keyword: 'hours', templateId })
    return caller
  }

  /** A person with RCS, who does everything that a phone can do. */
  async function liveByRcs(): Promise<Life> {
    const [caller, { phone, mark }] = [await newAccount(), newName('01')]
    const { agentId } = caller
    const buttons = [{ id: `yes-${mark}`, type: 'quick_reply', text: `Yes ${mark}`, payload: `pay ${mark}` }]
    const inline = { type: 'MESSAGE', content: `Dear ${mark}`, buttons }
    const request = caller.request({
      recipient: phone,
      clientReferenceId: `ref ${mark}`,
      message: { inline },
      smsFallback: smsFallback({ campaign: `for ${mark}` }, { content: mark }),
    })
    const { body } = await caller.send(`order ${phone.slice(1)} ${mark}`, request)
    await until('it is delivered', () => isOver(caller, body.messageId))
    const campaignId = await runCampaign(caller, phone, mark)
    for (const [action, fields] of [
      ['tap', { messageId: body.messageId, button: 0 }],
      ['share-location', { agentId, latitude: 52.512345, longitude: 13.4 }],
      ['send-file', { agentId, url: `https://example.com/${mark}.png`, mimeType: 'image/png', fileName: `${mark}.png` }],
      ['reply', { agentId, text: 'hours' }],
      ['reply', { agentId, text: `I am ${mark}` }],
      ['unsubscribe', { agentId }],
    ] as const)
      await simulator.ask(`phones/${phone}/${action}`, fields)
    await settled()
    return { caller, phone, mark, messageIds: [body.messageId], campaignId }
  }

  /** A person without RCS, who gets SMS with short links, opens them and replies. */
  async function liveBySms(): Promise<Life> {
    const [caller, { phone, mark }] = [await newAccount(), newName('02')]
    const sms = smsFallback({ sender: '48732000009' }, { content: `Dear ${mark} https://example.com/${mark}`, urlShortening: true })
    const inline = { type: 'MESSAGE', content: mark }
    const messageId = await caller.accepted({ recipient: phone, smsFallback: sms, message: { inline } })
    await until('the SMS is delivered', async () => (await caller.read(messageId)).body.smsFallback.status === 'DELIVERED')
    await simulator.ask(`phones/${phone}/reply`, { number: '48732000009', text: `I am ${mark}` })
    const campaignId = await runCampaign(caller, phone, mark)
    await settled()
    const { rows } = await pool.query<{ code: string }>('select code from short_links where recipient = $1', [phone])
    const headers = {
      'user-agent': 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile/15E148 Safari/604.1',
    }
    for (const { code } of rows) await fetch(`${service.url}/l/${code}`, { redirect: 'manual', headers })
    await settled()
    return { caller, phone, mark, messageIds: [messageId], campaignId }
  }

  return { ...simulated, people, sink, settled, newName, newAccount, runCampaign, liveByRcs, liveBySms }
}
