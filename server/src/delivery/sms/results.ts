import type { SendResult } from '../../carriers/carrier.ts'
import { eventsTable, fallbacksTable, forEachMonth, queryInSavepoint } from '../../db/partitions.ts'
import { columns, type Executor, lists, type Pool, transaction } from '../../db/pool.ts'
import { type Change, MESSAGE_FACTS, recordChanges, SEGMENTS, smsFailure } from '../../events/changes.ts'
import { NO_CAMPAIGN } from '../../ids.ts'
import { fallbackMayBecome, PRIORITIES } from '../../messages/states.ts'
import { describeFailure, type SkipReason, SMS_FAILURES, type SmsFailure } from '../failures.ts'
import { MAX_NOTED_ATTEMPTS } from '../results.ts'
import { applyReceipts, lockReceipts } from './receipts.ts'
import { LIFE_HOURS, noteSms, SKIPPED } from './schedule.ts'

/** What to record about a claimed SMS. `detail`: the network's own text, if it sent one. */
export type SmsEntryResult =
  /** `segments`: how many were sent. A short link may have become longer since the text was measured. */
  | { is: 'sent'; segments: number }
  | { is: 'failed'; reason: SmsFailure; detail: string }
  | { is: 'skipped'; reason: SkipReason }
  | { is: 'not-needed' }
  /** The partition of its message was dropped. */
  | { is: 'gone' }
  | Extract<SendResult, { is: 'retry' | 'not-tried' }>

/** A segment that the network accepted, numbered from 1. */
export type SubmittedSegment = { segment: number; carrierMessageId: string }

export type SmsResult = { messageId: string; copy: number; lease: string; submittedSegments: SubmittedSegment[] } & SmsEntryResult

/**
 * Records results, and returns for each whether it was recorded: only the holder of a lease may record. One transaction writes the whole
 * batch: the queue, the segments that receipts refer to, the fallbacks, and the copies that go out now. It also applies receipts that came
 * before the response to their submit.
 */
export async function recordSmsResults(pool: Pool, carrier: string, results: SmsResult[]): Promise<boolean[]> {
  return await transaction(pool, async (tx) => {
    const hasSegments = ({ submittedSegments }: SmsResult) => submittedSegments.length > 0
    // Only an SMS with segments can have receipts.
    if (results.some(hasSegments)) await lockReceipts(tx)
    const held = await settleQueue(tx, carrier, results)
    const recorded = results.filter((_, index) => held.has(index + 1))
    const ended = recorded.filter((result) => result.copy === 0 && result.is !== 'gone' && !('afterMs' in result))
    await forEachMonth(
      ended,
      ({ messageId }) => messageId,
      (messagesTable, ofMonth) => endMonth(tx, messagesTable, ofMonth),
      () => [],
    )
    await noteRetries(tx, recorded)
    const contacts = [...ended, ...recorded.filter((result) => result.copy > 0 && hasSegments(result))]
    if (contacts.length > 0) await tx.query({ name: 'note-contacts', text: NOTE_CONTACTS, values: columns(contacts, 'messageId', 'copy') })
    const messageIds = recorded.filter(hasSegments).map(({ messageId }) => messageId)
    if (messageIds.length > 0) await applyReceipts(tx, [], messageIds)
    return results.map((_, index) => held.has(index + 1))
  })
}

/** Updates the queue. Returns the places, from 1 on, of the results whose lease still holds their entry. */
async function settleQueue(tx: Executor, carrier: string, results: SmsResult[]): Promise<Set<number>> {
  const entries = results.map((result) => ({
    ...result,
    afterMs: 'afterMs' in result ? Math.round(result.afterMs) : null,
    submitted: result.submittedSegments.length,
  }))
  const segments = results.flatMap((result, index) => result.submittedSegments.map((segment) => ({ ...segment, place: index + 1 })))
  const values = [
    ...columns(entries, 'messageId', 'copy', 'lease', 'is', 'afterMs', 'submitted'),
    ...columns(segments, 'place', 'segment', 'carrierMessageId'),
    carrier,
  ]
  const { rows } = await tx.query<{ place: number }>({ name: 'settle-sms-queue', text: SETTLE_QUEUE, values })
  return new Set(rows.map(({ place }) => place))
}

export const SETTLE_QUEUE = `
  with held as materialized (
    select r.*, q.recipient
    from (
      select * from unnest(${lists('uuid', 'smallint', 'uuid', 'text', 'int', 'int')})
        with ordinality as r (message_id, copy, lease, outcome, after_ms, submitted, place)
      order by message_id, copy
    ) as r, lateral (
      select recipient from sms_queue q where q.message_id = r.message_id and q.copy = r.copy and q.lease = r.lease for update
    ) as q
  ), released as (
    update sms_queue q set lease = null, submitted_under = null, due_at = now() + h.after_ms * interval '1 millisecond',
      segments_sent = q.segments_sent + h.submitted, attempts = q.attempts - case h.outcome when 'not-tried' then 1 else 0 end
    from held h
    where q.message_id = any (array(select message_id from held)) and q.message_id = h.message_id and q.copy = h.copy and h.after_ms is not null
  ), ended as (
    delete from sms_queue q using held h
    where q.message_id = any (array(select message_id from held)) and q.message_id = h.message_id and q.copy = h.copy and h.after_ms is null
  ), submitted as (
    insert into sms_segments (message_id, copy, segment, carrier, carrier_message_id, recipient)
    select h.message_id, h.copy, s.segment, $10, s.carrier_message_id, h.recipient
    from unnest($7::int[], $8::smallint[], $9::text[]) as s (place, segment, carrier_message_id) join held h on h.place = s.place
  )
  select place::int from held`

/** Notes in the timeline why an SMS was not accepted and is tried again. */
async function noteRetries(tx: Executor, recorded: SmsResult[]): Promise<void> {
  await forEachMonth(
    recorded.filter(({ is, copy }) => is === 'retry' && copy === 0),
    ({ messageId }) => messageId,
    async (messagesTable, ofMonth) => {
      const name = `note-sms-retries ${messagesTable}`
      await queryInSavepoint(tx, { name, text: noteRetriesOf(messagesTable), values: columns(ofMonth, 'messageId', 'detail') })
      return []
    },
    () => [],
  )
}

/** The timeline has only the first failed attempts, like that of an RCS message. */
export const noteRetriesOf = (messagesTable: string) => `
  insert into ${eventsTable(messagesTable)} (message_id, account_id, kind, occurred_at, detail)
  select q.message_id, q.account_id, 'sms-attempt-failed', now(), r.detail
  from unnest(${lists('uuid', 'text')}) as r (message_id, detail), lateral (
    select message_id, account_id, attempts from sms_queue q where q.message_id = r.message_id and q.copy = 0 offset 0
  ) as q
  where q.attempts <= ${MAX_NOTED_ATTEMPTS}
  on conflict do nothing`

async function endMonth(tx: Executor, messagesTable: string, results: SmsResult[]): Promise<[]> {
  const ends = results.map((result) => ({
    messageId: result.messageId,
    status: result.is.toUpperCase().replace('-', '_'),
    reason: result.is === 'not-needed' ? 'RCS_DELIVERED' : 'reason' in result ? result.reason : null,
    detail: result.is === 'failed' ? describeFailure(SMS_FAILURES[result.reason], result.detail) : null,
    segments: result.is === 'sent' ? result.segments : null,
  }))
  const values = columns(ends, 'messageId', 'status', 'reason', 'detail', 'segments')
  await queryInSavepoint(tx, { name: `end-sms ${messagesTable}`, text: endSms(messagesTable), values })
  return []
}

const ENDS: Change[] = [
  { kind: 'sms.sent', at: 'sent_at', more: SEGMENTS, reason: 'reason' },
  { kind: 'sms.failed', at: 'failed_at', more: smsFailure('reason', 'detail'), reason: 'reason' },
  SKIPPED,
]

/**
 * Ends SMS, which are SCHEDULED as long as they are in the queue. Once an SMS is sent to the recipient, its copies to test numbers are
 * queued, with the priority of campaigns. Each test number gets one copy per campaign.
 */
export const endSms = (messagesTable: string) => `
  with moved as (
    update ${fallbacksTable(messagesTable)} f set
      status = r.status,
      reason = coalesce(r.reason, f.reason),
      sent_at = case r.status when 'SENT' then now() end,
      failed_at = case r.status when 'FAILED' then now() end,
      detail = r.detail,
      segments = coalesce(r.segments, f.segments)
    from unnest(${lists('uuid', 'text', 'text', 'text', 'int')}) as r (message_id, status, reason, detail, segments)
    join ${messagesTable} m on m.id = r.message_id
    where f.message_id = r.message_id and ${fallbackMayBecome('SENT', 'f.status')}
    returning ${MESSAGE_FACTS}, f.status, f.reason, f.plan, f.segments, f.detail, f.sent_at, f.failed_at
  ), ${recordChanges('moved', ENDS)}, ${noteSms(`moved where status in ('SKIPPED', 'NOT_NEEDED')`)}, copy as materialized (
    select distinct on (coalesce(m.campaign_id, m.id), copy.number) m.*, copy.number, copy.place
    from moved m, json_array_elements_text(m.plan -> 'copies') with ordinality as copy (number, place)
    where m.status = 'SENT' and copy.number <> m.recipient
  ), first_of_campaign as (
    insert into campaign_copies (campaign_id, phone) select campaign_id, number from copy where campaign_id is not null order by 1, 2
    on conflict do nothing
    returning campaign_id, phone
  )
  insert into sms_queue (message_id, copy, account_id, recipient, priority, campaign_id, planned_at, due_at, expires_at, segments)
  select id, place, account_id, number, ${PRIORITIES.campaign}, coalesce(campaign_id, '${NO_CAMPAIGN}'), now(), now(),
    now() + interval '${LIFE_HOURS} hours', segments
  from copy where campaign_id is null or (campaign_id, number) in (select campaign_id, phone from first_of_campaign)`

/**
 * Notes which recipients have an SMS or may have it, even if only its first segments: they may reply to it, and it counts for the quarantine
 * unless it is a copy. If one sender sent several SMS to one person, the last one counts.
 */
export const NOTE_CONTACTS = `
  insert into sms_contacts as c (account_id, recipient, sender, agent_id, message_id, is_copy, sent_at)
  select distinct on (1, 2, 3, 4, 6) m.account_id, coalesce(s.recipient, m.recipient), f.plan ->> 'sender', m.agent_id, m.id, r.copy > 0, now()
  from unnest(${lists('uuid', 'smallint')}) as r (message_id, copy)
  join sms_fallbacks f on f.message_id = r.message_id
  join messages m on m.id = r.message_id
  left join lateral (select recipient from sms_segments s where s.message_id = r.message_id and s.copy = r.copy limit 1) as s on true
  where s.recipient is not null or r.copy = 0 and (f.status = 'SENT' or f.reason = 'OUTCOME_UNKNOWN')
  order by 1, 2, 3, 4, 6, m.id desc
  on conflict (account_id, recipient, sender, agent_id, is_copy) do update
  set message_id = excluded.message_id, sent_at = greatest(c.sent_at, excluded.sent_at)`
