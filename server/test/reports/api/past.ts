import type { Executor, Pool } from '../../../src/db/pool.ts'
import type { Action } from '../../../src/replies/actions.ts'
import { COUNTED } from '../../../src/reports/counters.ts'
import { createMonths } from '../../support/database.ts'

// Writes messages, their SMS, actions of their recipients and the counters of all of it at any past time. Times are texts, as in reports.

export type PastAction = { kind: Action['kind']; at: string; buttonId?: string; text?: string; payload?: string; url?: string }

export type PastSms = { sentAt?: string; deliveredAt?: string; failedAt?: string; skippedAt?: string; reason?: string }

/** A time that is not given has not been reached. `actions`: in the order in which they were recorded. */
export type PastMessage = {
  recipient: string
  acceptedAt: string
  sentAt?: string
  deliveredAt?: string
  readAt?: string
  failedAt?: string
  /** Why it failed. */
  reason?: string
  expiredAt?: string
  /** The expiry, if the message has not expired. */
  expiresAt?: string
  sms?: PastSms
  actions?: PastAction[]
  test?: boolean
}

export type Written<Message extends PastMessage = PastMessage> = Message & { messageId: string }
export type Reached = { kind: string; at: string; reason: string | null }

/** The events of a message, each once. Of several actions of a kind, the one recorded first counts. */
export function reachedBy(message: PastMessage): Reached[] {
  const { sms = {}, actions = [] } = message
  const smsTrigger = message.expiredAt === undefined ? 'RCS_FAILED' : 'RCS_EXPIRED'
  const steps: [kind: string, at: string | undefined, reason?: string | undefined][] = [
    ['accepted', message.acceptedAt],
    ['sent', message.sentAt],
    ['delivered', message.deliveredAt],
    ['read', message.readAt],
    ['failed', message.failedAt, message.reason ?? 'REJECTED'],
    ['expired', message.expiredAt],
    ['sms-sent', sms.sentAt, smsTrigger],
    ['sms-delivered', sms.deliveredAt, smsTrigger],
    ['sms-failed', sms.failedAt, sms.reason],
    ['sms-skipped', sms.skippedAt, sms.reason],
  ]
  for (const kind of ['clicked', 'replied', 'opted-out']) steps.push([kind, actions.find((action) => kindOf(action) === kind)?.at])
  return steps.flatMap(([kind, at, reason = null]) => (at === undefined ? [] : [{ kind, at, reason }]))
}

function kindOf({ kind }: PastAction): string {
  return ['clicked', 'opted-out', 'opted-in'].includes(kind) ? kind : 'replied'
}

type Sender = { accountId: number; agentId: string }

/** A campaign that ran from the first to the last of these times, with these messages; returned with their ids. */
export async function writeCampaign<Message extends PastMessage>(pool: Pool, sender: Sender, messages: Message[]) {
  const times = messages.map(({ acceptedAt }) => Date.parse(acceptedAt))
  const [first, last] = times.length === 0 ? [Date.now(), Date.now()] : [Math.min(...times), Math.max(...times)]
  const campaignId = idAt(first)
  await pool.query(
    `insert into campaigns (id, account_id, agent_id, name, group_numbers, group_generations, basic, content_id, status, created_at, scheduled_at,
       started_at, fan_out_completed_at, completed_at, recipients)
     values ($1, $2, $3, 'Spring sale', '{1}', '{1}', false, 0, 'COMPLETED', $4, $4, $4, $5, $5, $6)`,
    [campaignId, sender.accountId, sender.agentId, new Date(first), new Date(last), messages.length],
  )
  return { campaignId, messages: await write(pool, sender, campaignId, messages) }
}

/** Single messages. */
export async function writeMessages<Message extends PastMessage>(pool: Pool, sender: Sender, messages: Message[]) {
  return await write(pool, sender, null, messages)
}

async function write<Message extends PastMessage>(pool: Pool, sender: Sender, campaignId: string | null, messages: Message[]) {
  await ensureMonths(
    pool,
    messages.map(({ acceptedAt }) => acceptedAt.slice(0, 7)),
  )
  const written: Written<Message>[] = messages.map((message) => ({ ...message, messageId: idAt(message.acceptedAt) }))
  const common = { account_id: sender.accountId, agent_id: sender.agentId, campaign_id: campaignId }
  await insert(
    pool,
    'messages',
    written.map((message) => ({ ...common, ...messageRow(message) })),
  )
  await insert(
    pool,
    'sms_fallbacks',
    written.flatMap((message) => (message.sms === undefined ? [] : [{ ...common, ...smsRow(message, message.sms) }])),
  )
  await insert(
    pool,
    'message_events',
    written.flatMap((message) => eventRows(message).map((row) => ({ ...common, campaign_id: row.listed ? campaignId : null, ...row }))),
  )
  await insert(
    pool,
    'recipient_actions',
    written.flatMap((message) => actionRows(message).map((row) => ({ ...common, ...row }))),
  )
  await insert(pool, 'report_deltas', counterRows(written, sender.accountId, campaignId))
  return written
}

async function insert(db: Executor, table: string, rows: object[]): Promise<void> {
  await db.query(`insert into ${table} select * from json_populate_recordset(null::${table}, $1)`, [JSON.stringify(rows)])
}

// By database: the files that share this process have several.
const monthsOf = new WeakMap<Pool, Set<string>>()

/** A database that is new has this month's partitions and later ones. */
async function ensureMonths(pool: Pool, wanted: string[]): Promise<void> {
  const months = monthsOf.get(pool) ?? new Set()
  monthsOf.set(pool, months)
  const missing = [...new Set(wanted)].filter((month) => !months.has(month))
  if (missing.length === 0) return
  for (const month of missing) months.add(month)
  const { rows } = await pool.query<{ month: string }>(
    `select month from unnest($1::text[]) as month where to_regclass('messages_' || replace(month, '-', '_')) is null`,
    [missing],
  )
  if (rows.length > 0)
    await createMonths(pool, `select (month || '-01')::timestamp from unnest('{${rows.map(({ month }) => month)}}'::text[]) as month`)
}

let made = 0

/** Of version 7, and within a millisecond in the order of the calls. */
function idAt(at: string | number): string {
  made += 1
  const time = new Date(at).getTime().toString(16).padStart(12, '0')
  const order = made.toString(16).padStart(6, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${order.slice(0, 3)}-8${order.slice(3)}-${crypto.randomUUID().slice(-12)}`
}

const DAY_MS = 86_400_000

function messageRow(message: Written) {
  const { acceptedAt, sentAt, deliveredAt, readAt, failedAt, expiredAt, reason = 'REJECTED' } = message
  return {
    id: message.messageId,
    recipient: message.recipient,
    status: statusOf(message),
    basic: false,
    test: message.test ?? false,
    content: { type: 'MESSAGE', content: 'Hello' },
    traffic: 'TRANSACTION',
    accepted_at: acceptedAt,
    expires_at: expiredAt ?? message.expiresAt ?? new Date(Date.parse(acceptedAt) + 15 * DAY_MS).toISOString(),
    sent_at: sentAt,
    delivered_at: deliveredAt,
    read_at: readAt,
    failed_at: failedAt,
    ...(failedAt !== undefined && { failure_reason: reason, failure_description: 'Words of the network.' }),
  }
}

function statusOf({ sentAt, deliveredAt, readAt, failedAt, expiredAt }: PastMessage): string {
  if (failedAt !== undefined) return 'FAILED'
  if (expiredAt !== undefined) return 'EXPIRED'
  if (readAt !== undefined) return 'READ'
  if (deliveredAt !== undefined) return 'DELIVERED'
  return sentAt === undefined ? 'ACCEPTED' : 'SENT'
}

function smsRow(message: Written, { sentAt, deliveredAt, failedAt, skippedAt, reason }: PastSms) {
  const reached = [skippedAt && 'SKIPPED', failedAt && 'FAILED', deliveredAt && 'DELIVERED', sentAt && 'SENT']
  const status = reached.find(Boolean) ?? 'WAITING'
  return {
    message_id: message.messageId,
    status,
    reason: status === 'WAITING' ? null : (reason ?? 'RCS_FAILED'),
    plan: {},
    segments: 1,
    delay_seconds: 0,
    after_expiry: false,
    due_at: sentAt ?? failedAt,
    sent_at: sentAt,
    delivered_at: deliveredAt,
    failed_at: failedAt,
  }
}

/** Accepting is no event, no report lists a skipped SMS, and actions of test messages are no events. */
function eventRows(message: Written) {
  return reachedBy(message)
    .filter(({ kind }) => kind !== 'accepted' && !(message.test && ['clicked', 'replied', 'opted-out'].includes(kind)))
    .map(({ kind, at, reason }) => ({
      message_id: message.messageId,
      kind,
      occurred_at: at,
      recorded_at: at,
      reason,
      detail: 'Words of the network.',
      listed: kind !== 'sms-skipped',
      recipient: kind === 'sms-skipped' ? null : message.recipient,
    }))
}

function actionRows({ messageId, recipient, actions = [] }: Written) {
  return actions.map(({ kind, at, buttonId, text, payload, url }) => ({
    id: idAt(Date.now()),
    message_id: messageId,
    recipient,
    kind,
    channel: 'rcs',
    button_id: buttonId,
    text,
    payload,
    url,
    latitude: 52.5,
    longitude: 13.25,
    occurred_at: at,
  }))
}

const NO_CAMPAIGN = '00000000-0000-0000-0000-000000000000'
const NOTHING = Object.fromEntries(COUNTED.map((counter) => [counter, 0]))

/** A row for each hour, as the service writes them. */
function counterRows(messages: Written[], accountId: number, campaignId: string | null): Record<string, unknown>[] {
  const own = messages.filter(({ test }) => !test)
  const unsent = own.flatMap(({ sentAt, failedAt, expiredAt }) => (sentAt === undefined ? (failedAt ?? expiredAt ?? []) : []))
  const claimed = campaignId === null ? [] : own.map(({ acceptedAt }) => ({ kind: 'claimed', at: acceptedAt }))
  const reached = [...own.flatMap(reachedBy), ...unsent.map((at) => ({ kind: 'unsent', at })), ...claimed]
  return [...Map.groupBy(reached, ({ at }) => `${at.slice(0, 13)}:00:00Z`)].map(([hour, inHour]) => {
    const counts = inHour.map(({ kind }) => kind.replaceAll('-', '_'))
    const row: Record<string, unknown> = { account_id: accountId, campaign_id: campaignId ?? NO_CAMPAIGN, hour, ...NOTHING }
    for (const counter of COUNTED) row[counter] = counts.filter((each) => each === counter).length
    return row
  })
}
