import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, describe, test } from 'node:test'
import { changeAgent } from '../../src/agents/agents.ts'
import { moveCampaign } from '../../src/campaigns/campaigns.ts'
import { completeDone, startDue } from '../../src/delivery/campaigns/lifecycle.ts'
import { withdrawCancelled } from '../../src/delivery/campaigns/withdraw.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { failInactive } from '../../src/delivery/fail.ts'
import { FAILURES, SMS_FAILURES } from '../../src/delivery/failures.ts'
import { processReplies } from '../../src/delivery/replies.ts'
import { type EntryResult, recordResults } from '../../src/delivery/results.ts'
import { recordSmsResults, type SmsEntryResult } from '../../src/delivery/sms/results.ts'
import { EVENT_KINDS } from '../../src/events/kinds.ts'
import { createLinks, visitLink } from '../../src/links/links.ts'
import { changeOptOut } from '../../src/replies/opt-outs.ts'
import { acceptedCampaign, fillGroup, makeAll, phones } from '../campaigns/support.ts'
import { smsReceipt } from '../delivery/sms/support.ts'
import { SMS_CARRIER } from '../delivery/sms/worker.ts'
import { createSender, receipt, type Sender } from '../delivery/support.ts'
import { logger } from '../delivery/worker.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { readEmitted } from '../support/emitted.ts'
import { erased } from '../support/erased.ts'
import { createSteps, type Made, type Sort } from '../support/steps.ts'
import { assertAsDocumented } from './documented.ts'

// Each kind of event, by each cause: its body, and that one transaction writes it and its change. Delivery tests walk the order and number of
// events; each of their databases is compared with its log when it is dropped.

const { hotPool: pool } = await createTestDatabase()
const { make, leaseOf, handOver, refuse, passExpiry, claimSmsOf, sendSms, receive, actionEvent, link } = await createSteps(pool)

const clientReferenceId = 'order "7" \\ zażółć 🎈'
const PHONE = '+48500100299'
const TEXT = { kind: 'wrote', text: 'Yes, "please" 🎈\n' }
const BUTTONS = [
  { id: 'yes', type: 'quick_reply', text: 'Yes', payload: 'order 7: "yes"' },
  { id: 'web', type: 'url', text: 'Web', url: 'https://example.com/a?b=c' },
  { id: 'call', type: 'call', text: 'Call', phoneNumber: '+48221234567' },
]

/** A change that is about to happen, the row that it changes, and the event that it emits. */
type Cause = { act: () => Promise<unknown>; table: string; column: string; id: string; subjectId: string | null; data: object }

function ofMessage({ sender, campaignId, messageId, phone }: Made, sort: Sort, act: Cause['act'], more: object = {}): Cause {
  // A campaign's reference is in its own events only.
  const origin = sort === 'campaign' ? { campaignId } : { clientReferenceId }
  const data = { messageId, ...origin, agentId: sender.agentId, recipient: phone, test: sort === 'test', ...more }
  return { act, table: 'messages', column: 'id', id: messageId, subjectId: messageId, data }
}

function ofSms(made: Made, act: Cause['act'], more: object): Cause {
  return { ...ofMessage(made, 'single', act, more), table: 'sms_fallbacks', column: 'message_id' }
}

async function sendResult(result: EntryResult, more: object = {}, sort: Sort = 'single'): Promise<Cause> {
  const made = await make(sort, { clientReferenceId })
  const [{ messageId }, lease] = [made, await leaseOf(made)]
  return ofMessage(made, sort, () => recordResults(pool, [{ messageId, lease, ...result }]), more)
}

async function sendReceipt(kind: 'delivered' | 'read'): Promise<Cause> {
  const made = await make('single', { clientReferenceId })
  await handOver(made)
  return ofMessage(made, 'single', () => receive([receipt({ ...made, kind })]))
}

/** A message whose SMS is due. */
async function failedMessage(): Promise<Made> {
  const made = await make('single', { clientReferenceId, sms: {} })
  await refuse(made)
  return made
}

async function smsResult(result: SmsEntryResult, more: object): Promise<Cause> {
  const made = await failedMessage()
  const { messageId, copy, lease } = await claimSmsOf(made)
  return ofSms(made, () => recordSmsResults(pool, SMS_CARRIER, [{ messageId, copy, lease, submittedSegments: [], ...result }]), more)
}

async function smsReceived(kind: 'sms-delivered' | 'sms-failed', more: object, detail = ''): Promise<Cause> {
  const made = await failedMessage()
  const id = await sendSms(made)
  return ofSms(made, () => receive([smsReceipt({ kind, phone: made.phone, ids: [id], detail })]), more)
}

/** Processes the replies that wait. The worker postpones a failed reply by a minute, which passes at once here. */
async function processWaiting(): Promise<void> {
  await pool.query('update carrier_events set process_after = now() where process_after is not null')
  await processReplies(pool, logger, erased)
}

type Action = { action: Record<string, unknown>; more: object; sort?: Sort; table?: string }

/** The recipient of a sent message acts. */
async function reply({ action, more, sort = 'single', table = 'recipient_actions' }: Action): Promise<Cause> {
  const made = await make(sort, { clientReferenceId, buttons: BUTTONS })
  await handOver(made)
  const tapped = action.kind === 'tapped' ? { messageId: made.messageId, text: undefined } : {}
  await receive([actionEvent(made, { ...action, ...tapped })])
  const cause = ofMessage(made, sort, processWaiting, { channel: 'rcs', ...more })
  return { ...cause, table, column: 'agent_id', id: made.sender.agentId }
}

/** A person writes to an agent that has not sent them anything. */
async function writeFirst(text: string, more: object): Promise<Cause> {
  const sender = await createSender(pool)
  await receive([actionEvent({ sender, phone: PHONE, campaignId: '', messageId: '' }, { kind: 'wrote', text })])
  const data = { agentId: sender.agentId, recipient: PHONE, channel: 'rcs', ...more }
  return { act: processWaiting, table: 'recipient_actions', column: 'agent_id', id: sender.agentId, subjectId: null, data }
}

/** A person replies to the SMS of a message that has been dropped. */
async function replyToSms(): Promise<Cause> {
  const { accountId, agentId } = await createSender(pool)
  const [messageId, senderNumber] = [randomUUID(), '48732000001']
  await pool.query('insert into sms_contacts values ($1, $2, $3, $4, $5, false, now())', [
    accountId,
    PHONE,
    senderNumber,
    agentId,
    messageId,
  ])
  await receive([{ ...actionEvent({ sender: {}, phone: PHONE } as Made, { ...TEXT, senderNumber }), carrier: SMS_CARRIER }])
  const data = { messageId, agentId, recipient: PHONE, channel: 'sms', action: 'wrote', text: TEXT.text }
  return { act: processWaiting, table: 'recipient_actions', column: 'agent_id', id: agentId, subjectId: messageId, data }
}

async function campaignOf(sender: Sender, people = 1): Promise<string> {
  await fillGroup(pool, sender.accountId, 1, phones(0, people))
  return await acceptedCampaign(pool, sender, { clientReferenceId })
}

function ofCampaign({ agentId }: Sender, campaignId: string, act: Cause['act'], more: object = {}): Cause {
  const data = { campaignId, clientReferenceId, name: 'Spring sale', agentId, ...more }
  return { act, table: 'campaigns', column: 'id', id: campaignId, subjectId: campaignId, data }
}

const failure = (reason: keyof typeof FAILURES, words = '') => ({
  failure: { reason, description: `${FAILURES[reason]}${words && ` The network said: ${words}`}` },
})
const smsFailure = (reason: keyof typeof SMS_FAILURES, words = '') => ({
  failure: { reason, description: `${SMS_FAILURES[reason]}${words && ` The network said: ${words}`}` },
})
const REFUSED = { is: 'failed', reason: 'NOT_REACHABLE' } as const
const FILE = { kind: 'sent-file', url: 'https://example.com/f.png', mimeType: 'image/png', name: 'f.png' }

const CAUSES: [kind: string, by: string, cause: () => Promise<Cause>][] = [
  ['message.sent', 'the response to a send', () => sendResult({ is: 'sent' })],
  ['message.sent', 'the response to a send of a campaign', () => sendResult({ is: 'sent' }, {}, 'campaign')],
  ['message.sent', 'the response to a send of a test', () => sendResult({ is: 'sent' }, {}, 'test')],
  ['message.failed', 'a refusal', () => sendResult({ ...REFUSED, detail: '404 "no"' }, failure('NOT_REACHABLE', '404 "no"'))],
  ['message.failed', 'a refusal without words', () => sendResult({ ...REFUSED, detail: '' }, failure('NOT_REACHABLE'))],
  ['message.delivered', 'a receipt', () => sendReceipt('delivered')],
  ['message.read', 'a receipt', () => sendReceipt('read')],
  [
    'message.failed',
    'a deactivated agent',
    async () => {
      const made = await make('single', { clientReferenceId })
      await changeAgent(pool, made.sender.accountId, made.sender.agentId, { active: false })
      return ofMessage(made, 'single', () => failInactive(pool), failure('AGENT_INACTIVE'))
    },
  ],
  [
    'message.failed',
    'a cancelled campaign',
    async () => {
      const sender = await createSender(pool)
      const campaignId = await campaignOf(sender)
      await makeAll(pool)
      await moveCampaign(pool, campaignId, 'CANCELLED')
      const { rows } = await pool.query('select id as "messageId", recipient from messages where campaign_id = $1', [campaignId])
      const data = { ...rows[0], agentId: sender.agentId, campaignId, test: false, ...failure('CAMPAIGN_CANCELLED') }
      const [{ messageId }, act] = [rows[0], () => withdrawCancelled(pool)]
      return { act, table: 'messages', column: 'id', id: messageId, subjectId: messageId, data }
    },
  ],
  [
    'message.expired',
    'its expiry',
    async () => {
      const made = await make('single', { clientReferenceId })
      await passExpiry(made)
      return ofMessage(made, 'single', () => expireDue(pool))
    },
  ],
  ['sms.sent', 'the response to a submit', () => smsResult({ is: 'sent', segments: 2 }, { segments: 2 })],
  [
    'sms.failed',
    'the response to a submit',
    () => smsResult({ is: 'failed', reason: 'REJECTED', detail: '69' }, { segments: 1, ...smsFailure('REJECTED', '69') }),
  ],
  ['sms.delivered', 'a receipt', () => smsReceived('sms-delivered', { segments: 1 })],
  ['sms.failed', 'a receipt', () => smsReceived('sms-failed', { segments: 1, ...smsFailure('UNDELIVERABLE', '011') }, '011')],
  ['sms.failed', 'a receipt without words', () => smsReceived('sms-failed', { segments: 1, ...smsFailure('UNDELIVERABLE') })],
  [
    'message.clicked',
    'a short link',
    async () => {
      const made = await make('single', { clientReferenceId })
      await handOver(made)
      const code = await link(made)
      const more = { channel: 'sms', action: 'clicked', url: 'https://shop.example/' }
      return { ...ofMessage(made, 'single', () => visitLink(pool, code, false), more), table: 'short_links', column: 'code', id: code }
    },
  ],
  [
    'message.clicked',
    'a short link of a dropped message',
    async () => {
      const { accountId, agentId } = await createSender(pool)
      const [messageId, code, url] = [randomUUID(), randomUUID().slice(0, 8), 'https://example.com/"a"?b=c']
      await createLinks(pool, [{ code, accountId, messageId, copy: 0, agentId, recipient: PHONE, url }])
      const data = { messageId, agentId, recipient: PHONE, channel: 'sms', action: 'clicked', url }
      return { act: () => visitLink(pool, code, false), table: 'short_links', column: 'code', id: code, subjectId: messageId, data }
    },
  ],
  [
    'message.clicked',
    'a button',
    () =>
      reply({
        action: { kind: 'tapped', buttonId: 'web' },
        more: { action: 'clicked', buttonId: 'web', text: 'Web', url: 'https://example.com/a?b=c' },
      }),
  ],
  [
    'message.replied',
    'a button with a payload',
    () =>
      reply({
        action: { kind: 'tapped', buttonId: 'yes' },
        more: { action: 'tapped', buttonId: 'yes', text: 'Yes', payload: 'order 7: "yes"' },
      }),
  ],
  [
    'message.replied',
    'a button of a test message',
    () => reply({ action: { kind: 'tapped', buttonId: 'call' }, more: { action: 'tapped', buttonId: 'call', text: 'Call' }, sort: 'test' }),
  ],
  ['message.replied', 'a text', () => reply({ action: TEXT, more: { action: 'wrote', text: TEXT.text } })],
  [
    'message.replied',
    'a place',
    () => {
      const place = { latitude: -33.9, longitude: 0 }
      return reply({ action: { kind: 'shared-location', ...place }, more: { action: 'shared-location', ...place } })
    },
  ],
  [
    'message.replied',
    'a file',
    () => reply({ action: FILE, more: { action: 'sent-file', text: 'f.png', payload: 'image/png', url: FILE.url } }),
  ],
  ['message.replied', 'a text to no message', () => writeFirst('Hello', { action: 'wrote', text: 'Hello' })],
  ['message.replied', 'an SMS', replyToSms],
  [
    'recipient.opted_out',
    'a word',
    () => reply({ action: { kind: 'wrote', text: 'Stop!' }, more: { source: 'word', text: 'Stop!' }, table: 'opt_outs' }),
  ],
  [
    'recipient.opted_out',
    'an unsubscribe event',
    () => reply({ action: { kind: 'unsubscribed' }, more: { source: 'unsubscribe' }, table: 'opt_outs' }),
  ],
  ['recipient.opted_out', 'a word to no message', () => writeFirst('Rezygnuję', { source: 'word', text: 'Rezygnuję' })],
  [
    'recipient.opted_out',
    'the operator',
    async () => {
      const { accountId, agentId } = await createSender(pool)
      const act = () => changeOptOut(pool, { accountId, agentId, phone: PHONE }, true)
      const data = { agentId, recipient: PHONE, source: 'operator' }
      return { act, table: 'opt_outs', column: 'agent_id', id: agentId, subjectId: null, data }
    },
  ],
  [
    'campaign.started',
    'its scheduled time',
    async () => {
      const sender = await createSender(pool)
      return ofCampaign(sender, await campaignOf(sender), () => startDue(pool))
    },
  ],
  [
    'campaign.completed',
    'its last message',
    async () => {
      const sender = await createSender(pool)
      const campaignId = await campaignOf(sender, 0)
      await makeAll(pool)
      return ofCampaign(sender, campaignId, () => completeDone(pool), { recipients: 0 })
    },
  ],
  [
    'campaign.cancelled',
    'the operator before its start',
    async () => {
      const sender = await createSender(pool)
      const campaignId = await campaignOf(sender)
      return ofCampaign(sender, campaignId, () => moveCampaign(pool, campaignId, 'CANCELLED'))
    },
  ],
  [
    'campaign.cancelled',
    'the operator after its fan-out',
    async () => {
      const sender = await createSender(pool)
      const campaignId = await campaignOf(sender, 3)
      await makeAll(pool)
      return ofCampaign(sender, campaignId, () => moveCampaign(pool, campaignId, 'CANCELLED'), { recipients: 3 })
    },
  ],
]

const TABLES = [
  ...['messages', 'message_events', 'queue', 'expiries', 'sms_fallbacks', 'sms_queue', 'sms_segments', 'sms_receipts', 'sms_contacts'],
  ...['recipient_actions', 'opt_outs', 'short_links', 'campaigns', 'report_deltas', 'report_totals', 'log_pages'],
]

/** Every row that a change could leave behind. */
async function everything(): Promise<Record<string, unknown>> {
  const all = TABLES.map((table) => `(select coalesce(json_agg(t order by t::text), '[]') from ${table} t) as ${table}`)
  return (await pool.query(`select ${all.join()}`)).rows[0]
}

async function countRefused(): Promise<number> {
  return (await pool.query<{ n: number }>('select case when is_called then last_value else 0 end as n from refused')).rows[0]?.n ?? 0
}

describe('emits, in the transaction of the change,', () => {
  before(async () => {
    // The trigger fires at the commit, when everything is written. A sequence survives the rollback.
    await ownerOf(pool).query(`
      create sequence refused;
      grant all on sequence refused to herald_service;
      create function refuse() returns trigger language plpgsql as $$ begin perform nextval('refused'); raise 'no events'; end $$;
      create constraint trigger refusing after insert on log_pages deferrable initially deferred for each row execute function refuse();
      alter table log_pages disable trigger refusing`)
  })

  for (const [kind, by, createCause] of CAUSES) {
    test(`${kind} by ${by}`, async () => {
      const { act, table, column, id, subjectId, data } = await createCause()
      const was = await everything()
      const refusedBefore = await countRefused()
      await ownerOf(pool).query('alter table log_pages enable trigger refusing')
      await act().catch(() => {})
      await ownerOf(pool).query('alter table log_pages disable trigger refusing')
      assert.ok((await countRefused()) > refusedBefore, 'the transaction wrote an event')
      assert.deepEqual(await everything(), was, 'without its event, the change is rolled back')

      const { rows: last } = await pool.query('select coalesce(max(id), 0) as page from log_pages')
      await act()
      const { rows: changed } = await pool.query(`select xmin::text as transaction from ${table} where ${column} = $1`, [id])
      const { rows: pages } = await pool.query(
        'select account_id as "accountId", xmin::text as transaction from log_pages where id > $1 order by id',
        [last[0].page],
      )
      assert.deepEqual(new Set(pages.map(({ transaction }) => transaction)), new Set([changed[0]?.transaction]))
      const event = (await readEmitted(pool, pages.at(-1))).at(-1)
      assert.deepEqual([event?.kind, event?.subjectId, event?.data], [kind, subjectId, data])
    })
  }

  test('every kind except those of endpoints, as documented', async () => {
    const kinds = EVENT_KINDS.filter((kind) => !kind.startsWith('webhook.'))
    assert.deepEqual(new Set(CAUSES.map(([kind]) => kind)), new Set<string>(kinds))
    await assertAsDocumented(pool)
  })
})
