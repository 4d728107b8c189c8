import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { before, describe, test } from 'node:test'
import { changeAgent } from '../../src/agents/agents.ts'
import { moveCampaign } from '../../src/campaigns/campaigns.ts'
import type { CarrierEvent } from '../../src/carriers/carrier.ts'
import { completeDone, startDue } from '../../src/delivery/campaigns/lifecycle.ts'
import { withdrawCancelled } from '../../src/delivery/campaigns/withdraw.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { failInactive } from '../../src/delivery/fail.ts'
import { ensurePace } from '../../src/delivery/rate.ts'
import { processReplies } from '../../src/delivery/replies.ts'
import { type EntryResult, recordResults } from '../../src/delivery/results.ts'
import { recordSmsResults } from '../../src/delivery/sms/results.ts'
import { EVENT_KINDS } from '../../src/events/schemas.ts'
import { shortCode } from '../../src/links/codes.ts'
import { createLinks, visitLink } from '../../src/links/links.ts'
import { changeOptOut } from '../../src/replies/opt-outs.ts'
import { acceptedCampaign, fillGroup, makeAll, phones } from '../campaigns/support.ts'
import { logger, PHONE, pool, sentMessage, TEXT, tapped, wrote } from '../delivery/replies/shared.ts'
import { claimMessages, nextPhone, recordSent, refusedMessage, SMS_CARRIER, smsReceipt, takeOne } from '../delivery/sms/support.ts'
import { CARRIER, createReceiver, createSender, queueMessage, receipt, type Sender } from '../delivery/support.ts'

// Of a change and its event there are both or none, whatever fails: they are of one transaction.

/** Something that is about to happen, as often as it is tried, and the row that it changes. */
type Road = { act: () => Promise<unknown>; table: string; column: string; id: string }

const take = createReceiver(pool)

const ofMessage = (id: string, act: Road['act']): Road => ({ act, table: 'messages', column: 'id', id })
const ofSms = (id: string, act: Road['act']): Road => ({ act, table: 'sms_fallbacks', column: 'message_id', id })
const ofCampaign = (id: string, act: Road['act']): Road => ({ act, table: 'campaigns', column: 'id', id })

async function handedOver(sender: Sender, verdict: EntryResult): Promise<Road> {
  const messageId = await queueMessage(pool, sender)
  const { lease } = (await claimMessages(pool)).find((entry) => entry.messageId === messageId) as { lease: string }
  return ofMessage(messageId, () => recordResults(pool, [{ messageId, lease, ...verdict }]))
}

async function received(sender: Sender, kind: 'delivered' | 'read'): Promise<Road> {
  const messageId = await queueMessage(pool, sender)
  return ofMessage(messageId, () => take([receipt({ messageId, kind })]))
}

async function submitted(sender: Sender, kind: 'sms-delivered' | 'sms-failed'): Promise<Road> {
  const [phone, id] = [nextPhone(), randomBytes(8).toString('hex')]
  const messageId = await refusedMessage(pool, sender, { recipients: [phone] })
  await recordSent(pool, await takeOne(pool, messageId), [id])
  return ofSms(messageId, () => take([smsReceipt({ kind, phone, ids: [id] })]))
}

/** Of what could not be taken up, a worker tries again after a minute: here, at once. */
async function answered(sender: Sender, event: CarrierEvent): Promise<Road> {
  await take([event])
  const act = async () => {
    await pool.query('update carrier_events set process_after = now() where process_after is not null')
    await processReplies(pool, logger)
  }
  return { act, table: 'recipient_actions', column: 'agent_id', id: sender.agentId }
}

async function campaignOf(sender: Sender, count = 1): Promise<string> {
  await fillGroup(pool, sender.accountId, 1, phones(0, count))
  return await acceptedCampaign(pool, sender)
}

const ROADS: [kind: string, way: string, road: (sender: Sender) => Promise<Road>][] = [
  ['message.sent', 'the network’s answer', (sender) => handedOver(sender, { is: 'sent' })],
  ['message.failed', 'the network’s answer', (sender) => handedOver(sender, { is: 'failed', reason: 'REJECTED', detail: '' })],
  ['message.delivered', 'a receipt', (sender) => received(sender, 'delivered')],
  ['message.read', 'a receipt', (sender) => received(sender, 'read')],
  [
    'message.failed',
    'its agent’s deactivation',
    async (sender) => {
      const messageId = await queueMessage(pool, sender)
      await changeAgent(pool, sender.accountId, sender.agentId, { active: false })
      return ofMessage(messageId, () => failInactive(pool))
    },
  ],
  [
    'message.failed',
    'its campaign’s end',
    async (sender) => {
      const campaignId = await campaignOf(sender)
      await makeAll(pool)
      await moveCampaign(pool, campaignId, 'CANCELLED')
      return { ...ofMessage(campaignId, () => withdrawCancelled(pool)), column: 'campaign_id' }
    },
  ],
  [
    'message.expired',
    'the clock',
    async (sender) => {
      const messageId = await queueMessage(pool, sender, { expiresInMs: -1_000 })
      return ofMessage(messageId, () => expireDue(pool))
    },
  ],
  [
    'sms.sent',
    'the network’s answer',
    async (sender) => {
      const entry = await takeOne(pool, await refusedMessage(pool, sender))
      return ofSms(entry.messageId, () => recordSent(pool, entry, [entry.messageId]))
    },
  ],
  [
    'sms.failed',
    'the network’s answer',
    async (sender) => {
      const { messageId, copy, lease } = await takeOne(pool, await refusedMessage(pool, sender))
      const failed = { is: 'failed', reason: 'REJECTED', detail: '' } as const
      return ofSms(messageId, () => recordSmsResults(pool, SMS_CARRIER, [{ messageId, copy, lease, parts: [], ...failed }]))
    },
  ],
  ['sms.delivered', 'a receipt', (sender) => submitted(sender, 'sms-delivered')],
  ['sms.failed', 'a receipt', (sender) => submitted(sender, 'sms-failed')],
  [
    'message.clicked',
    'a short link',
    async (sender) => {
      const { accountId, agentId } = sender
      const messageId = await sentMessage(sender)
      const code = shortCode(randomBytes(32), messageId, 0, 0)
      await createLinks(pool, [{ code, accountId, messageId, copy: 0, agentId, recipient: PHONE, url: 'https://example.com/' }])
      return { act: () => visitLink(pool, code, false), table: 'short_links', column: 'code', id: code }
    },
  ],
  [
    'message.clicked',
    'a button',
    async (sender) => {
      const buttons = [{ id: 'web', type: 'url', text: 'Web', url: 'https://example.com/' }]
      const messageId = await sentMessage(sender, { content: { ...TEXT, buttons } })
      return await answered(sender, tapped(sender, messageId, 'web'))
    },
  ],
  ['message.replied', 'a text', (sender) => answered(sender, wrote(sender, 'Hello'))],
  ['recipient.opted_out', 'a word', async (sender) => ({ ...(await answered(sender, wrote(sender, 'STOP'))), table: 'opt_outs' })],
  [
    'recipient.opted_out',
    'the operator’s hand',
    async ({ accountId, agentId }) => {
      const act = () => changeOptOut(pool, { accountId, agentId, phone: PHONE }, true)
      return { act, table: 'opt_outs', column: 'agent_id', id: agentId }
    },
  ],
  ['campaign.started', 'the clock', async (sender) => ofCampaign(await campaignOf(sender), () => startDue(pool))],
  [
    'campaign.completed',
    'its last message',
    async (sender) => {
      const campaignId = await campaignOf(sender, 0)
      await makeAll(pool)
      return ofCampaign(campaignId, () => completeDone(pool))
    },
  ],
  [
    'campaign.cancelled',
    'the operator’s hand',
    async (sender) => {
      const campaignId = await campaignOf(sender)
      return ofCampaign(campaignId, () => moveCampaign(pool, campaignId, 'CANCELLED'))
    },
  ],
]

const CHANGED = [
  ...['messages', 'message_events', 'queue', 'expiries', 'sms_fallbacks', 'sms_queue', 'sms_segments', 'sms_receipts', 'sms_contacts'],
  ...['recipient_actions', 'opt_outs', 'short_links', 'campaigns', 'report_deltas', 'report_totals', 'log_pages'],
]

/** Every row that a change could leave behind. */
async function everything(): Promise<Record<string, unknown>> {
  const all = CHANGED.map((table) => `(select coalesce(json_agg(t order by t::text), '[]') from ${table} t) as ${table}`)
  return (await pool.query(`select ${all.join()}`)).rows[0]
}

async function countRefused(): Promise<number> {
  return (await pool.query<{ n: number }>('select case when is_called then last_value else 0 end as n from refused')).rows[0]?.n ?? 0
}

describe('with its change, and not without it, is told', () => {
  before(async () => {
    await ensurePace(pool, CARRIER)
    await ensurePace(pool, SMS_CARRIER)
    // At the commit, when all has been written; a sequence keeps what is rolled back.
    await pool.query(`
      create sequence refused;
      create function refuse() returns trigger language plpgsql as $$ begin perform nextval('refused'); raise 'no events today'; end $$;
      create constraint trigger refusing after insert on log_pages deferrable initially deferred for each row execute function refuse();
      alter table log_pages disable trigger refusing`)
  })

  for (const [kind, way, road] of ROADS) {
    test(`${kind} by ${way}`, async () => {
      const { act, table, column, id } = await road(await createSender(pool))
      await pool.query('delete from log_pages')
      const was = await everything()
      const refusedBefore = await countRefused()
      await pool.query('alter table log_pages enable trigger refusing')
      await act().catch(() => {})
      await pool.query('alter table log_pages disable trigger refusing')
      assert.ok((await countRefused()) > refusedBefore, 'it was about to be told')
      assert.deepEqual(await everything(), was, 'what could not be told did not happen')

      await act()
      const { rows: changed } = await pool.query(`select xmin::text as transaction from ${table} where ${column} = $1`, [id])
      const { rows: told } = await pool.query(
        `select e.event ->> 0 as kind, p.xmin::text as transaction
         from log_pages p, json_array_elements(p.events) with ordinality as e (event, place) order by p.id, e.place`,
      )
      assert.equal(told.at(-1)?.kind, kind)
      assert.deepEqual(
        [...new Set(told.map(({ transaction }) => transaction))],
        [changed[0]?.transaction],
        'one transaction has written both',
      )
    })
  }

  test('every kind, but for those of endpoints', () => {
    const kinds = EVENT_KINDS.filter((kind) => !kind.startsWith('webhook.'))
    assert.deepEqual(new Set(ROADS.map(([kind]) => kind)), new Set<string>(kinds))
  })
})
