import { byMonth, fallbacksTable, isMissingMonth } from '../../db/partitions.ts'
import { type Executor, lists, type Pool, transaction } from '../../db/pool.ts'
import { type Change, MESSAGE_FACTS, recordChanges, SEGMENTS, smsFailure } from '../../events/changes.ts'
import { fallbackMayBecome, NO_CAMPAIGN, PRIORITIES } from '../../messages/states.ts'
import { describeFailure, type SkipReason, SMS_FAILURES, type SmsFailure } from '../failures.ts'
import { applyReceipts, holdReceipts } from './receipts.ts'
import { LIFE_HOURS, SKIPPED } from './schedule.ts'

/** What came of an SMS that was claimed. `detail`: the network's own words, where it had any. */
export type SmsVerdict =
  /** `segments`: how many there were, should a link have got longer since the text was counted. */
  | { is: 'sent'; segments: number }
  | { is: 'failed'; reason: SmsFailure; detail: string }
  | { is: 'skipped'; reason: SkipReason }
  | { is: 'not-needed' }
  /** Its message has been dropped. */
  | { is: 'gone' }
  | { is: 'again'; afterMs: number; detail: string }
  /** Nothing was asked of the network. */
  | { is: 'put-back'; afterMs: number }

/** A part that the network took, numbered from 1. */
export type SubmittedPart = { part: number; carrierMessageId: string }

export type SmsResult = { messageId: string; copy: number; lease: string; parts: SubmittedPart[] } & SmsVerdict

/**
 * Writes results down, and returns for each whether it counted: only who holds the lease may write. All of a batch in one transaction: the
 * queue, the parts that receipts will be of, the fallbacks, and the copies that go out now. Receipts that were quicker than the answer to
 * their submit are applied at once.
 */
export async function recordSmsResults(pool: Pool, carrier: string, results: SmsResult[]): Promise<boolean[]> {
  return await transaction(pool, async (tx) => {
    // Only what has parts can have receipts.
    if (results.some(({ parts }) => parts.length > 0)) await holdReceipts(tx)
    const held = new Set(await settleQueue(tx, carrier, results))
    const counted = results.filter(({ messageId, copy }) => held.has(`${messageId} ${copy}`))
    const ended = counted.filter(({ copy, is }) => copy === 0 && is in STATUSES)
    for (const [messages, ofMonth] of byMonth(ended, ({ messageId }) => messageId)) await endMonth(tx, messages, ofMonth)
    await noteCopies(
      tx,
      counted.filter(({ copy, parts }) => copy > 0 && parts.length > 0),
    )
    const submitted = counted.filter(({ parts }) => parts.length > 0)
    if (submitted.length > 0) await applyReceipts(tx, { messageIds: submitted.map(({ messageId }) => messageId) })
    return results.map(({ messageId, copy }) => held.has(`${messageId} ${copy}`))
  })
}

/** Those that its lease still holds. */
async function settleQueue(tx: Executor, carrier: string, results: SmsResult[]): Promise<string[]> {
  const parts = results.flatMap(({ messageId, copy, lease, parts: submitted }) =>
    submitted.map((part) => ({ messageId, copy, lease, ...part })),
  )
  const { rows } = await tx.query<{ entry: string }>({
    name: 'settle-sms-queue',
    text: SETTLE_QUEUE,
    values: [
      results.map(({ messageId }) => messageId),
      results.map(({ copy }) => copy),
      results.map(({ lease }) => lease),
      results.map((result) => ('afterMs' in result ? Math.round(result.afterMs) : null)),
      results.map(({ is }) => (is === 'put-back' ? 1 : 0)),
      results.map(({ parts: submitted }) => submitted.length),
      parts.map(({ messageId }) => messageId),
      parts.map(({ copy }) => copy),
      parts.map(({ lease }) => lease),
      parts.map(({ part }) => part),
      parts.map(({ carrierMessageId }) => carrierMessageId),
      carrier,
    ],
  })
  return rows.map(({ entry }) => entry)
}

const SETTLE_QUEUE = `
  with held as materialized (
    select r.*, q.recipient
    from (
      select * from unnest(${lists('uuid', 'smallint', 'uuid', 'int', 'int', 'int')})
        as r (message_id, copy, lease, after_ms, not_asked, parts)
      order by message_id, copy
    ) as r, lateral (
      select recipient from sms_queue q where q.message_id = r.message_id and q.copy = r.copy and q.lease = r.lease for update
    ) as q
  ), put_off as (
    update sms_queue q set
      lease = null,
      submitted_under = null,
      due_at = now() + (select h.after_ms from held h where h.message_id = q.message_id and h.copy = q.copy) * interval '1 millisecond',
      segments_sent = q.segments_sent + (select h.parts from held h where h.message_id = q.message_id and h.copy = q.copy),
      attempts = q.attempts - (select h.not_asked from held h where h.message_id = q.message_id and h.copy = q.copy)
    where q.message_id = any (array(select message_id from held where after_ms is not null))
      and (q.message_id, q.copy) in (select message_id, copy from held where after_ms is not null)
  ), ended as (
    delete from sms_queue q
    where q.message_id = any (array(select message_id from held where after_ms is null))
      and (q.message_id, q.copy) in (select message_id, copy from held where after_ms is null)
  ), submitted as (
    insert into sms_parts (message_id, copy, part, carrier, carrier_message_id, recipient)
    select p.message_id, p.copy, p.part, $12, p.carrier_message_id, h.recipient
    from unnest($7::uuid[], $8::smallint[], $9::uuid[], $10::smallint[], $11::text[]) as p (message_id, copy, lease, part, carrier_message_id)
    join held h on h.message_id = p.message_id and h.copy = p.copy and h.lease = p.lease
  )
  select message_id || ' ' || copy as entry from held`

/** How results that end a fallback are stored. */
const STATUSES: Record<string, string> = { sent: 'SENT', failed: 'FAILED', skipped: 'SKIPPED', 'not-needed': 'NOT_NEEDED' }

async function endMonth(tx: Executor, messages: string, results: SmsResult[]): Promise<void> {
  await tx.query('savepoint month')
  try {
    await tx.query({
      name: `end-sms ${messages}`,
      text: end(messages, fallbacksTable(messages)),
      values: [
        results.map(({ messageId }) => messageId),
        results.map(({ is }) => STATUSES[is]),
        results.map((result) => (result.is === 'not-needed' ? 'RCS_DELIVERED' : 'reason' in result ? result.reason : null)),
        results.map((result) => (result.is === 'failed' ? describeFailure(SMS_FAILURES[result.reason], result.detail) : null)),
        results.map((result) => (result.is === 'sent' ? result.segments : null)),
      ],
    })
  } catch (error) {
    if (!isMissingMonth(error, messages)) throw error
    // The month has been dropped, with all its messages.
    await tx.query('rollback to savepoint month')
  }
}

const MOVES = (['SENT', 'FAILED', 'SKIPPED', 'NOT_NEEDED'] as const)
  .map((status) => `r.status = '${status}' and ${fallbackMayBecome(status, 'f.status')}`)
  .join(' or ')

/** Remembers who had an SMS, for replies and the quarantine. `known` names a step; of several by one sender to one person, the last counts. */
const contact = (known: string, isCopy: boolean) => `
    insert into sms_contacts as c (account_id, recipient, sender, agent_id, message_id, is_copy, sent_at)
    select distinct on (account_id, recipient, plan ->> 'sender', agent_id) account_id, recipient, plan ->> 'sender', agent_id, message_id, ${isCopy}, now()
    from ${known} order by account_id, recipient, plan ->> 'sender', agent_id, message_id desc
    on conflict (account_id, recipient, sender, agent_id, is_copy) do update
    set message_id = excluded.message_id, sent_at = greatest(c.sent_at, excluded.sent_at)`

/** Who has a copy may answer it, to get no more of them above all. */
async function noteCopies(tx: Executor, copies: SmsResult[]): Promise<void> {
  if (copies.length === 0) return
  await tx.query({
    name: 'note-sms-copies',
    text: `
      with known as materialized (
        select f.account_id, p.recipient, f.plan, m.agent_id, m.id as message_id
        from unnest($1::uuid[], $2::smallint[]) as r (message_id, copy)
        cross join lateral (select recipient from sms_parts p where p.message_id = r.message_id and p.copy = r.copy limit 1) as p
        join sms_fallbacks f on f.message_id = r.message_id
        join messages m on m.id = r.message_id
      )
      ${contact('known', true)}`,
    values: [copies.map(({ messageId }) => messageId), copies.map(({ copy }) => copy)],
  })
}

const ENDS: Change[] = [
  { kind: 'sms.sent', at: 'sent_at', more: SEGMENTS, reason: 'reason' },
  { kind: 'sms.failed', at: 'failed_at', more: smsFailure('reason', 'detail'), reason: 'reason' },
  SKIPPED,
]

/** Copies are not for the recipient, who has it already; they wait for all that is not a copy, and of a campaign each number gets one. */
const end = (messages: string, fallbacks: string) => `
  with result as (
    select * from unnest(${lists('uuid', 'text', 'text', 'text', 'int')}) as r (message_id, status, reason, detail, segments)
  ), ended as (
    update ${fallbacks} f set
      status = r.status,
      reason = coalesce(r.reason, f.reason),
      sent_at = case r.status when 'SENT' then now() end,
      failed_at = case r.status when 'FAILED' then now() end,
      detail = r.detail,
      segments = coalesce(r.segments, f.segments)
    from result r
    where f.message_id = r.message_id and (${MOVES})
    returning f.message_id, f.status, f.reason, f.plan, f.segments, f.detail, f.sent_at, f.failed_at, now()::timestamptz(3) as at,
      case f.status when 'SKIPPED' then now()::timestamptz(3) end as skipped_at
  ), moved as materialized (
    select e.*, ${MESSAGE_FACTS} from ended e join ${messages} m on m.id = e.message_id
  ), ${recordChanges('moved', ENDS)}, known as materialized (
    -- Those that the phone has, or may have: all of it or the beginning.
    select e.* from moved e
    left join lateral (select part from sms_parts p where p.message_id = e.message_id and p.copy = 0 limit 1) as begun on true
    where e.status = 'SENT' or e.reason = 'OUTCOME_UNKNOWN' or begun.part is not null
  ), contacted as (
    ${contact('known', false)}
  ), copy as materialized (
    select distinct on (coalesce(k.campaign_id, k.message_id), copy.number) k.*, copy.number, copy.place
    from known k, json_array_elements_text(k.plan -> 'copies') with ordinality as copy (number, place)
    where k.status = 'SENT' and copy.number <> k.recipient
  ), first_of_campaign as (
    insert into campaign_copies (campaign_id, phone) select campaign_id, number from copy where campaign_id is not null order by 1, 2
    on conflict do nothing
    returning campaign_id, phone
  ), copied as (
    insert into sms_queue (message_id, copy, account_id, recipient, priority, campaign_id, planned_at, due_at, expires_at, segments)
    select message_id, place, account_id, number, ${PRIORITIES.campaign}, coalesce(campaign_id, '${NO_CAMPAIGN}'), now(), now(),
      now() + interval '${LIFE_HOURS} hours', segments
    from copy where campaign_id is null or (campaign_id, number) in (select campaign_id, phone from first_of_campaign)
  )
  insert into message_events (message_id, account_id, kind, occurred_at, reason)
  select message_id, account_id, 'sms-' || replace(lower(status), '_', '-'), at, reason from moved where status in ('SKIPPED', 'NOT_NEEDED')
  on conflict do nothing`
