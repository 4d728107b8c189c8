import { randomUUID } from 'node:crypto'
import type { CarrierEvent } from '../../../src/carriers/carrier.ts'
import type { Pool } from '../../../src/db/pool.ts'
import { expireDue } from '../../../src/delivery/expiry.ts'
import { recordResults } from '../../../src/delivery/results.ts'
import { fallbackOf } from '../../../src/messages/sms-fallback.ts'
import { STEPS } from '../../../src/timeline/steps.ts'
import { moveExpiry } from '../../support/expiring.ts'
import { queueMessages, type Sender } from '../support.ts'
import { claimNow } from '../worker.ts'
import { PUBLIC_URL, SMS_CARRIER } from './worker.ts'

// What the tests of the SMS fallback share: messages with a fallback, what is stored about their SMS, and receipts.

export const TEXT = 'Your parcel is on its way.'
/** Three segments in GSM-7, of 153 characters at most. */
export const LONG_TEXT = Array.from({ length: 60 }, (_, n) => `word ${n}`)
  .join(' ')
  .slice(0, 400)

let numbers = 0
/** A new number each time, so that no test finds the SMS of another test. */
export function nextPhone(): string {
  numbers += 1
  return `+48600${String(numbers).padStart(6, '0')}`
}

type WithFallback = {
  count?: number
  /** One for each message; new numbers by default. */
  recipients?: string[]
  content?: string
  /** Other fields of the text. */
  variant?: object
  planParams?: Record<string, unknown>
  afterExpiry?: { delay?: number; sendTime?: string }
  traffic?: 'TRANSACTION' | 'PROMOTION'
  dueInMs?: number
}

/** Queues messages with a fallback as the API does, and returns their ids. */
export async function acceptMessages(pool: Pool, sender: Pick<Sender, 'accountId' | 'agentId'>, accepted: WithFallback = {}) {
  const { count = 1, content = TEXT, variant, planParams = {}, afterExpiry, traffic = 'TRANSACTION', dueInMs = 0 } = accepted
  const recipients = accepted.recipients ?? Array.from({ length: count }, nextPhone)
  const ids = await queueMessages(pool, sender, { count: recipients.length, dueInMs })
  const plan = { planParams: { sender: 'MyShop', ...planParams }, smsMessagesPlan: [{ content, multipart: true, ...variant }] }
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

/** Claims everything that is due by RCS. An account gets half of the free calls. */
export async function claimMessages(pool: Pool): Promise<{ messageId: string; lease: string }[]> {
  return (await claimNow(pool, { free: 5_000 })).entries
}

/** Messages that the RCS network has refused, so that their SMS are due; their ids. */
export async function refusedMessages(pool: Pool, sender: Pick<Sender, 'accountId' | 'agentId'>, accepted: WithFallback = {}) {
  const ids = await acceptMessages(pool, sender, accepted)
  const refused = { is: 'failed', reason: 'NOT_REACHABLE', detail: '404' } as const
  const claimed = await claimMessages(pool)
  await recordResults(
    pool,
    claimed.map(({ messageId, lease }) => ({ messageId, lease, ...refused })),
  )
  return ids
}

export async function refusedMessage(pool: Pool, sender: Pick<Sender, 'accountId' | 'agentId'>, accepted: WithFallback = {}) {
  return (await refusedMessages(pool, sender, accepted))[0] as string
}

/** A message that was sent and has expired, so that its SMS waits for the revocation. */
export async function expiredMessage(pool: Pool, sender: Sender, accepted: WithFallback): Promise<string> {
  const [messageId] = (await acceptMessages(pool, sender, accepted)) as [string]
  const { lease } = (await claimMessages(pool)).find((entry) => entry.messageId === messageId) as { lease: string }
  await recordResults(pool, [{ messageId, lease, is: 'sent' }])
  await moveExpiry(pool, [messageId])
  await expireDue(pool)
  return messageId
}

/** Everything that is stored about the SMS of a message. */
export async function readSms(pool: Pool, messageId: string) {
  const { rows } = await pool.query(
    `select to_jsonb(f) as fallback, (select to_jsonb(q) from sms_queue q where q.message_id = f.message_id and q.copy = 0) as queue,
       (select coalesce(jsonb_agg(to_jsonb(s) order by copy, segment), '[]') from sms_segments s where s.message_id = f.message_id) as segments,
       (select coalesce(jsonb_agg(to_jsonb(e) order by recorded_at, array_position($2, kind)), '[]')
        from message_events e where e.message_id = f.message_id and kind like 'sms-%') as events
     from sms_fallbacks f where f.message_id = $1`,
    // Two steps of one millisecond stand in the order of the timeline.
    [messageId, Object.keys(STEPS)],
  )
  return rows[0] as { fallback: any; queue: any; segments: any[]; events: any[] }
}

/** The status and reason of its SMS. */
export async function smsStatusOf(pool: Pool, messageId: string): Promise<[status: string, reason: string | null]> {
  const { fallback } = await readSms(pool, messageId)
  return [fallback.status, fallback.reason]
}

/** Ends the leases and pauses of all SMS. */
export async function passTime(pool: Pool): Promise<void> {
  await pool.query(`update sms_queue set due_at = now() - interval '1 millisecond' where due_at > now()`)
}

/** Ends the pauses of SMS without a lease, for tests with a running worker. */
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

/** A receipt of the SMS network. `ids`: the readings of the id, the likeliest first. */
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
