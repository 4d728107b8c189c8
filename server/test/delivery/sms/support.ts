import { randomBytes, randomUUID } from 'node:crypto'
import type { TestContext } from 'node:test'
import { Registry } from 'prom-client'
import type { CarrierEvent, SendResult, SmsCarrier, SmsPart } from '../../../src/carriers/carrier.ts'
import { createHotPool, type Pool } from '../../../src/db/pool.ts'
import { claim } from '../../../src/delivery/claim.ts'
import { createDeliveryMetrics } from '../../../src/delivery/metrics.ts'
import { recordResults } from '../../../src/delivery/results.ts'
import { claimSms, type SmsEntry } from '../../../src/delivery/sms/claim.ts'
import { createSmsDispatcher } from '../../../src/delivery/sms/dispatcher.ts'
import { recordSmsResults, type SubmittedPart } from '../../../src/delivery/sms/results.ts'
import type { Dispatcher } from '../../../src/delivery/worker.ts'
import { fallbackOf } from '../../../src/messages/sms-fallback.ts'
import { CARRIER, logger, queueMessages, type Sender } from '../support.ts'

// What tests of the SMS fallback share: messages that have one, an SMS network that does what a test wants, and what is stored.

export const SMS_CARRIER = 'sms-network'
export const TEXT = 'Your parcel is on its way.'
/** Three parts in GSM-7, of 153 characters at most. */
export const LONG_TEXT = Array.from({ length: 60 }, (_, n) => `word ${n}`)
  .join(' ')
  .slice(0, 400)

const PUBLIC_URL = 'http://127.0.0.1:8080'

let numbers = 0
/** Ever another number, so that no test finds another's SMS to the same person. */
export function nextPhone(): string {
  numbers += 1
  return `+48600${String(numbers).padStart(6, '0')}`
}

type WithFallback = {
  count?: number
  /** One for each message; else ever other ones. */
  recipients?: string[]
  content?: string
  planParams?: Record<string, unknown>
  afterExpiry?: { delay?: number; sendTime?: string }
  traffic?: 'TRANSACTION' | 'PROMOTION'
  dueInMs?: number
}

/** Messages as they are once accepted with a fallback, and their ids. */
export async function acceptMessages(pool: Pool, sender: Pick<Sender, 'accountId' | 'agentId'>, accepted: WithFallback = {}) {
  const { count = 1, content = TEXT, planParams = {}, afterExpiry, traffic = 'TRANSACTION', dueInMs = 0 } = accepted
  const recipients = accepted.recipients ?? Array.from({ length: count }, nextPhone)
  const ids = await queueMessages(pool, sender, { count: recipients.length, dueInMs })
  const plan = { planParams: { sender: 'MyShop', ...planParams }, smsMessagesPlan: [{ content, multipart: true }] }
  const fallback = fallbackOf(plan as Parameters<typeof fallbackOf>[0], afterExpiry, PUBLIC_URL)
  if (fallback.violations.length > 0) throw new Error(JSON.stringify(fallback.violations))
  await pool.query(
    `with given as (
       select * from unnest($1::uuid[], $2::text[]) as g (id, recipient)
     ), written as (
       update messages m set recipient = g.recipient, traffic = $3 from given g where m.id = g.id
     )
     insert into sms_fallbacks (message_id, account_id, plan, segments, delay_seconds, not_before, after_expiry, after_expiry_delay_seconds, after_expiry_not_before)
     select id, $4, $5, $6, $7, $8, $9, $10, $11 from given`,
    [
      ids,
      recipients,
      traffic,
      sender.accountId,
      JSON.stringify(fallback.plan),
      fallback.segments,
      fallback.delaySeconds,
      fallback.notBefore,
      fallback.afterExpiry,
      fallback.afterExpiryDelaySeconds,
      fallback.afterExpiryNotBefore,
    ],
  )
  return ids
}

/** Takes up all that is due by RCS. An account gets half of what is free. */
export async function claimMessages(pool: Pool): Promise<{ messageId: string; lease: string }[]> {
  const carrier = { name: CARRIER, messagesPerSecond: undefined, messagesPerSecondPerAgent: undefined }
  const { entries } = await claim(pool, { carrier, free: 5_000, leaseMs: 60_000, pausedAgents: [], calls: new Map() })
  return entries
}

/** Messages that the RCS network has refused, so that their SMS are due; their ids. */
export async function refusedMessages(pool: Pool, sender: Pick<Sender, 'accountId' | 'agentId'>, accepted: WithFallback = {}) {
  const ids = await acceptMessages(pool, sender, accepted)
  const claimed = await claimMessages(pool)
  await recordResults(
    pool,
    claimed.map(({ messageId, lease }) => ({ messageId, lease, is: 'failed', reason: 'NOT_REACHABLE', detail: '404' })),
  )
  return ids
}

/** As `refusedMessages`, one of them. */
export async function refusedMessage(pool: Pool, sender: Pick<Sender, 'accountId' | 'agentId'>, accepted: WithFallback = {}) {
  return (await refusedMessages(pool, sender, accepted))[0] as string
}

type Taking = { free?: number; messagesPerSecond?: number | undefined; abandoned?: string[] }

/** As a worker takes SMS up, and then nothing: whoever calls this is that worker. */
export async function takeSms(pool: Pool, { free = 1_000, messagesPerSecond, abandoned = [] }: Taking = {}): Promise<SmsEntry[]> {
  const carrier = { name: SMS_CARRIER, messagesPerSecond }
  return (await claimSms(pool, { carrier, free, lease: randomUUID(), partMs: 1_000, marginMs: 60_000, isPaused: false, abandoned })).entries
}

/** The entry of one message, taken up with all that is due. */
export async function takeOne(pool: Pool, messageId: string, copy = 0): Promise<SmsEntry> {
  const entry = (await takeSms(pool)).find((one) => one.messageId === messageId && one.copy === copy)
  if (entry === undefined) throw new Error(`the SMS of ${messageId} was not due`)
  return entry
}

/** Writes down that the network took all parts of an SMS, by these ids. */
export async function recordSent(pool: Pool, { messageId, copy, lease }: SmsEntry, carrierMessageIds: string[], carrier = SMS_CARRIER) {
  const parts: SubmittedPart[] = carrierMessageIds.map((carrierMessageId, index) => ({ part: index + 1, carrierMessageId }))
  const [counted] = await recordSmsResults(pool, carrier, [{ messageId, copy, lease, is: 'sent', segments: parts.length, parts }])
  return counted
}

export type TestSmsCarrier = SmsCarrier & {
  /** All that was submitted, in order. `at`: by performance.now(). */
  seen: (SmsPart & { at: number })[]
  /** To this phone. */
  to: (recipient: string) => SmsPart[]
}

type SmsCarrierOptions = Partial<Omit<SmsCarrier, 'submit'>> & {
  onSubmit?: (part: SmsPart, id: string) => Promise<SendResult> | SendResult
}

let carrierMessageIds = 0

/** The outside world: takes whatever it is given, unless a test has it do otherwise. */
export function createSmsCarrier({ onSubmit = taken, ...options }: SmsCarrierOptions = {}): TestSmsCarrier {
  const seen: TestSmsCarrier['seen'] = []
  return {
    name: SMS_CARRIER,
    longestCallMs: 1_000,
    concurrency: 10,
    messagesPerSecond: undefined,
    pausedForMs: () => 0,
    close: async () => {},
    ...options,
    seen,
    to: (recipient) => seen.filter((part) => part.recipient === recipient),
    submit: async (part) => {
      seen.push({ ...part, at: performance.now() })
      carrierMessageIds += 1
      return await onSubmit(part, `${carrierMessageIds}`)
    },
  }
}

export function taken(_part: SmsPart, carrierMessageId: string): SendResult {
  return { is: 'sent', carrierMessageId }
}

/** A worker as a process has one, with connections of its own; stopped when the test ends. */
export function startSmsWorker(t: TestContext, databaseUrl: string, carrier: SmsCarrier | undefined): Dispatcher {
  const pool = createHotPool({ connectionString: databaseUrl }, () => {})
  const links = { key: randomBytes(32), publicUrl: PUBLIC_URL }
  const dispatcher = createSmsDispatcher({ pool, carrier, links, logger, metrics: createDeliveryMetrics(new Registry()) })
  let stopped: Promise<void> | undefined
  function stop(): Promise<void> {
    stopped ??= dispatcher.stop()
    return stopped
  }
  t.after(async () => {
    await stop()
    await pool.end()
  })
  return { ...dispatcher, stop }
}

/** All that is stored about the SMS of a message. */
export async function readSms(pool: Pool, messageId: string) {
  const { rows } = await pool.query(
    `select to_jsonb(f) as fallback, (select to_jsonb(q) from sms_queue q where q.message_id = f.message_id and q.copy = 0) as queue,
       (select coalesce(jsonb_agg(to_jsonb(p) order by copy, segment), '[]') from sms_segments p where p.message_id = f.message_id) as parts,
       (select coalesce(jsonb_agg(to_jsonb(e) order by recorded_at, kind), '[]')
        from message_events e where e.message_id = f.message_id and kind like 'sms-%') as events
     from sms_fallbacks f where f.message_id = $1`,
    [messageId],
  )
  return rows[0] as { fallback: any; queue: any; parts: any[]; events: any[] }
}

/** Its status and reason, in a word each. */
export async function fateOf(pool: Pool, messageId: string): Promise<[status: string, reason: string | null]> {
  const { fallback } = await readSms(pool, messageId)
  return [fallback.status, fallback.reason]
}

/** The time until which SMS are held or put off passes at once. */
export async function passTime(pool: Pool): Promise<void> {
  await pool.query(`update sms_queue set due_at = now() - interval '1 millisecond' where due_at > now()`)
}

/** As `passTime`, but only for what nobody holds: where a worker runs, it may have taken something up since one looked. */
export async function passPauses(pool: Pool): Promise<void> {
  await pool.query(`update sms_queue set due_at = now() - interval '1 millisecond' where due_at > now() and lease is null`)
}

export async function countQueued(pool: Pool): Promise<number> {
  return (await pool.query('select from sms_queue')).rowCount ?? 0
}

type SmsReceiptFields = {
  kind?: 'sms-delivered' | 'sms-failed' | 'sms-underway'
  phone: string
  ids: string[]
  detail?: string
  carrier?: string
  eventId?: string
}

/** What the SMS network tells. `ids`: the readings of the id, the likeliest first. */
export function smsReceipt({
  kind = 'sms-delivered',
  phone,
  ids,
  detail = '',
  carrier = SMS_CARRIER,
  eventId = randomUUID(),
}: SmsReceiptFields) {
  return { carrier, eventId, kind, phone, carrierMessageIds: ids, detail, occurredAt: new Date() } satisfies CarrierEvent
}

export function putBack(db: Pool, entries: SmsEntry[]): Promise<boolean[]> {
  return recordSmsResults(
    db,
    SMS_CARRIER,
    entries.map(({ messageId, copy, lease }) => ({ messageId, copy, lease, is: 'not-tried', afterMs: 0, parts: [] })),
  )
}
