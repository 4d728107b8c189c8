import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { assignAgent, createAgent } from '../../src/agents/agents.ts'
import { countAudience } from '../../src/campaigns/audience.ts'
import { readFailures, readMinutes } from '../../src/campaigns/progress.ts'
import type { GoogleRbmSettings } from '../../src/carriers/google-rbm/settings.ts'
import { createSimulators } from '../../src/phones/simulators.ts'
import { setOptOut } from '../../src/replies/opt-outs.ts'
import { joinGroup } from '../support/groups.ts'
import { assertError, createCaller } from '../support/service.ts'
import { pool, signedIn } from './shared.ts'

const { accountId } = await createCaller(pool)
const AGENT = 'progress'
await createAgent(pool, { agentId: AGENT, name: AGENT, billingType: 'single', carrier: 'simulator' })
await assignAgent(pool, AGENT, accountId)
const base = `/accounts/${accountId}`
const phone = (n: number) => `+4850010020${n}`

async function fill(group: number, phones: string[]): Promise<void> {
  for (const each of phones) await joinGroup(pool, accountId, each, { group })
  await pool.query('update groups set members = $3 where account_id = $1 and number = $2', [accountId, group, phones.length])
}
await fill(1, [phone(0), phone(1), phone(2)])
await fill(2, [phone(2), phone(3)])

let keys = 0
/** A campaign that starts in an hour, so that it has no messages. */
async function accept(more: object = {}): Promise<string> {
  keys += 1
  const body = {
    name: 'Spring sale',
    agentId: AGENT,
    segmentIds: [1],
    message: { inline: { type: 'MESSAGE', content: 'Call +48500100299' } },
    scheduledAt: new Date(Date.now() + 3_600_000).toISOString(),
    ...more,
  }
  const headers = { 'sec-fetch-site': 'same-origin', 'idempotency-key': `progress-${keys}` }
  const response = await (await signedIn('admin', accountId))('POST', `${base}/campaigns`, body, headers)
  assert.equal(response.status, 202, JSON.stringify(response.body))
  return response.body.campaignId
}

// No counter has them.
after(() => pool.query('delete from message_events where account_id = $1', [accountId]))

/** An event of a message of the campaign, some minutes ago. */
async function happened(campaignId: string, kind: string, minutesAgo: number, reason: string | null = null): Promise<string> {
  const { rows } = await pool.query<{ id: string }>(
    `insert into message_events (message_id, account_id, kind, occurred_at, reason, campaign_id, recipient)
     values (uuid_v7(), $1, $2, date_trunc('minute', now()) - $3 * interval '1 minute', $4, $5, '+48500100200') returning message_id as id`,
    [accountId, kind, minutesAgo, reason, campaignId],
  )
  return rows[0]?.id as string
}

test('returns the content and the SMS of a campaign that has not started, with masked numbers for a viewer', async () => {
  const smsFallback = { planParams: { sender: 'Shop', smsShipmentType: 1 }, smsMessagesPlan: [{ content: 'Call +48500100299' }] }
  const campaignId = await accept({ smsFallback })
  const read = async (role: 'viewer' | 'admin') =>
    (await (await signedIn(role, accountId))('GET', `${base}/campaigns/${campaignId}/content`)).body
  const seen = (text: string) => ({
    campaignId,
    content: { type: 'MESSAGE', content: text },
    sms: { sender: 'Shop', text, hasShortLinks: false },
  })
  assert.deepEqual(await read('admin'), seen('Call +48500100299'))
  assert.deepEqual(await read('viewer'), seen('Call +48•••••••99'))
})

test('counts failures by reason with the SMS sent instead, and says if it did not count all', async () => {
  const campaignId = await accept()
  const failed = await happened(campaignId, 'failed', 3, 'NOT_REACHABLE')
  await happened(campaignId, 'failed', 2, 'NOT_REACHABLE')
  await happened(campaignId, 'failed', 1, 'OPTED_OUT')
  await happened(campaignId, 'sent', 1)
  await pool.query(
    `insert into sms_fallbacks (message_id, account_id, status, reason, plan, segments, delay_seconds, after_expiry, due_at, sent_at)
     values ($1, $2, 'SENT', 'FAILED', '{}', 1, 0, false, now(), now())`,
    [failed, accountId],
  )
  const { body } = await (await signedIn('viewer', accountId))('GET', `${base}/campaigns/${campaignId}/failures`)
  assert.deepEqual(body, {
    items: [
      { reason: 'NOT_REACHABLE', messages: 2, bySms: 1, smsWaiting: 0 },
      { reason: 'OPTED_OUT', messages: 1, bySms: 0, smsWaiting: 0 },
    ],
    isMore: false,
  })
  const last = await readFailures(pool, accountId, campaignId, 1)
  assert.deepEqual(last, { items: [{ reason: 'OPTED_OUT', messages: 1, bySms: 0, smsWaiting: 0 }], isMore: true })
})

test('counts each minute of an hour, and leaves out the minutes that it could not read as a whole', async () => {
  const campaignId = await accept()
  for (const minutesAgo of [70, 5, 5, 3]) await happened(campaignId, 'sent', minutesAgo)
  await happened(campaignId, 'read', 3)
  const ask = await signedIn('viewer', accountId)
  const read = async (query = '') =>
    (await ask('GET', `${base}/campaigns/${campaignId}/minutes${query}`)).body.items.map(
      ({ minute: _, ...counts }: { minute: string }) => counts,
    )
  const five = { sent: 2, delivered: 0, read: 0, failed: 0 }
  const three = { sent: 1, delivered: 0, read: 1, failed: 0 }
  assert.deepEqual(await read(), [five, three])
  const from = new Date(Date.now() - 90 * 60_000)
  assert.deepEqual(await read(`?from=${from.toISOString()}`), [{ ...five, sent: 1 }])
  const first = (await readMinutes(pool, accountId, campaignId, from)).items[0]?.minute.getTime() ?? 0
  const within = new Date(first + 59_000)
  assert.deepEqual(await read(`?from=${within.toISOString()}`), [{ ...five, sent: 1 }], 'the minute of `from` as a whole')
  const { items } = await readMinutes(pool, accountId, campaignId, new Date(Date.now() - 3_600_000), 2)
  assert.deepEqual(
    items.map(({ minute: _, ...counts }) => counts),
    [three],
  )
})

test('counts recipients once, however many groups they are in, and those who opted out of the agent', async () => {
  await setOptOut(pool, { accountId, agentId: AGENT, phone: phone(2), optedOut: true, block: false, source: 'api' })
  await setOptOut(pool, { accountId, phone: phone(9), optedOut: true, block: false, source: 'api' })
  const ask = await signedIn('viewer', accountId)
  const count = (query: string) => ask('GET', `${base}/audience?${query}`)
  assert.deepEqual((await count(`agentId=${AGENT}&segmentIds=1,2`)).body, { members: 5, recipients: 4, optedOut: 1 })
  assert.equal((await count('agentId=other&segmentIds=1')).status, 404)
  assert.equal((await count(`agentId=${AGENT}&segmentIds=2147483647`)).status, 404)
  assert.equal((await count(`agentId=${AGENT}&segmentIds=2147483648`)).status, 400)
  assert.deepEqual(await countAudience(pool, accountId, AGENT, [1, 2], 4), { members: 5, recipients: null, optedOut: null })
  assertError(await count(`agentId=${AGENT}&segmentIds=1,8`), 404, 'RCS_SEGMENT_NOT_FOUND', [
    ['/segmentIds', 'has 8, which names no group of this account'],
  ])
  assert.equal((await count(`agentId=${AGENT}&segmentIds=0`)).status, 400)
})

test('the carriers of an account name their limits, where they have them', async () => {
  const limited = {
    name: 'simulator',
    isSimulator: false,
    messagesPerSecond: 70,
    messagesPerSecondPerAgent: undefined,
  } as GoogleRbmSettings
  const simulators = createSimulators([limited])
  assert.deepEqual(await simulators.listCarriers(pool, accountId), [
    { carrier: 'simulator', isSimulated: false, agentIds: [AGENT], messagesPerSecond: 70 },
  ])
})
