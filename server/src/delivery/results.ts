import type { SendResult } from '../carriers/carrier.ts'
import { eventsTable, forEachMonth } from '../db/partitions.ts'
import { columns, type Executor, lists } from '../db/pool.ts'
import { MESSAGE_FACTS, recordChanges } from '../events/changes.ts'
import { mayBecome } from '../messages/states.ts'
import { learn } from './capabilities.ts'
import { type FallBack, failMessages } from './fail.ts'
import { describeFailure, FAILURES, type Failure, LOOKED_UP } from './failures.ts'
import { REVOCATION_GRACE_SECONDS, releaseRevoked, scheduleFailed, skipErased } from './sms/schedule.ts'

/** What to record about a claimed entry. `detail`: the network's own text, if it sent one. */
export type EntryResult =
  | { is: 'sent' }
  | Extract<SendResult, { is: 'retry' | 'unknown' | 'not-tried' }>
  /** The message fails permanently. */
  | { is: 'failed'; reason: Failure; detail: string; hasNoRcs?: true }
  /** The network said in a look-up that the number has no RCS: the message fails permanently, without a call. */
  | { is: 'no-rcs' }
  /** The recipient was erased: the message fails permanently, and its SMS is skipped. */
  | { is: 'erased' }
  /** No call was made, and none will be, unless the recipient opts in again or is unblocked. */
  | { is: 'held-back'; afterMs: number }
  /** The revocation has ended: the network accepted the request, or no further attempt is made. */
  | { is: 'revoke-asked' | 'revoke-refused'; detail: string }

export type Result = { messageId: string; lease: string } & EntryResult

/**
 * Records results, and returns for each whether it was recorded. A result counts only if its queue entry still has the lease token of the worker.
 * If the worker was frozen past its lease, another worker may have claimed the entry under a new token, or a receipt may have deleted the entry.
 * One statement records the results of one month and one kind. Nearly always all results are of one month, and `sent`.
 */
export async function recordResults(db: Executor, results: Result[]): Promise<boolean[]> {
  const rows: Recorded[] = []
  for (const [statement, ofStatement] of Map.groupBy(results, ({ is }) => STATEMENTS[is])) {
    const record = (messagesTable: string, ofMonth: Result[]) => recordMonth(db, messagesTable, statement, ofMonth)
    rows.push(
      ...(await forEachMonth(
        ofStatement,
        ({ messageId }) => messageId,
        record,
        (ofMonth) => dropEntries(db, ofMonth),
      )),
    )
  }
  const recorded = new Set(rows.map(({ messageId }) => messageId))
  return results.map(({ messageId }) => recorded.has(messageId))
}

type Recorded = { messageId: string }

type Statement = (typeof STATEMENTS)[EntryResult['is']]

async function recordMonth(db: Executor, messagesTable: string, statement: Statement, results: Result[]): Promise<Recorded[]> {
  const { name, text, fields } = statement
  const described = results.map((result) => {
    if (result.is === 'no-rcs') return { ...result, reason: 'NOT_REACHABLE', description: LOOKED_UP }
    if (result.is === 'erased') return { ...result, reason: 'ERASED', description: FAILURES.ERASED }
    return result.is === 'failed' ? { ...result, description: describeFailure(FAILURES[result.reason], result.detail) } : result
  })
  const values = columns(described, 'messageId', 'lease', ...fields)
  return (await db.query<Recorded>({ name: `record-${name} ${messagesTable}`, text: text(messagesTable), values })).rows
}

/** The partition of the month has been dropped, so only the queue entries are left to delete. */
async function dropEntries(db: Executor, results: Result[]): Promise<Recorded[]> {
  const text = 'delete from queue where message_id = any ($1::uuid[]) returning message_id as "messageId"'
  return (await db.query<Recorded>(text, columns(results, 'messageId'))).rows
}

/** In SQL: the entry is one of `$1`, and has the lease at the same index of `$2`. */
const IS_HELD = `q.message_id = any (${lists('uuid')}::uuid[]) and (q.message_id, q.lease) in (select * from unnest(${lists('uuid', 'uuid')}))`

/** A message that has expired meanwhile leaves the queue and keeps its status: the expiry loop marks it and queues its revocation. */
const recordSent = (messagesTable: string) => `
  with held as materialized (
    delete from queue q where ${IS_HELD} returning q.message_id
  ), sent as (
    update ${messagesTable} m set status = 'SENT', sent_at = greatest(now(), m.accepted_at)
    where m.id = any (array(select message_id from held)) and m.expires_at > clock_timestamp() and ${mayBecome('SENT', 'm.status')}
    returning ${MESSAGE_FACTS}, m.sent_at
  ), ${recordChanges('sent', [{ kind: 'message.sent', at: 'sent_at' }])}
  select message_id as "messageId" from held`

/**
 * A message that has expired meanwhile leaves the queue, and the expiry loop queues its revocation. If the recipient opted out, was blocked or was
 * erased after an attempt with an unknown result, the network may have the message, so it fails and is revoked. A message that the network
 * refused needs no revocation.
 */
const recordFailed = (fallBack: FallBack) => (messagesTable: string) =>
  `
  with held as materialized (
    select r.message_id, r.reason, r.description, r.reason in ('OPTED_OUT', 'BLOCKED', 'ERASED') and q.attempts > 1 as awaits_revocation,
      true as was_claimed, r.has_no_rcs
    from unnest(${lists('uuid', 'uuid', 'text', 'text', 'bool')}) as r (message_id, lease, reason, description, has_no_rcs), lateral (
      select attempts from queue q where q.message_id = r.message_id and q.lease = r.lease for update
    ) as q
  ), ${failMessages(messagesTable, 'held', fallBack, 'select message_id from held where not awaits_revocation')}, ${learn(false, WITHOUT_RCS, 'failed_at')}
  select message_id as "messageId" from held`

/** In SQL: the failed messages whose numbers have no RCS. Herald's own results of look-ups teach nothing: they would confirm themselves. */
const WITHOUT_RCS = '(select * from failed where id not in (select message_id from held where has_no_rcs is not true))'

// By default Herald can try a message for two days. The timeline has only this many failed attempts, which is enough to see why they fail.
export const MAX_NOTED_ATTEMPTS = 10

/**
 * Releases entries, and postpones them. If no call was made, the attempt does not count. The wait for the receipt starts when an entry is first
 * held back. Holding it back again does not restart the wait; a call in between does.
 */
const recordReleased = (messagesTable: string) => `
  with held as (
    update queue q set
      lease = null,
      leased_until = '-infinity',
      due_at = now() + r.after_ms * interval '1 millisecond',
      attempts = q.attempts - case when r.outcome in ('retry', 'unknown') then 0 else 1 end,
      held_back_at = case when r.outcome <> 'held-back' then q.held_back_at
        when q.held_back_attempts = q.attempts - 1 then least(q.held_back_at, now()) else now() end,
      held_back_attempts = case r.outcome when 'held-back' then q.attempts - 1 else q.held_back_attempts end
    from unnest(${lists('uuid', 'uuid', 'text', 'text', 'float8')}) as r (message_id, lease, outcome, detail, after_ms)
    where q.message_id = r.message_id and q.lease = r.lease
    returning q.message_id, q.account_id, q.attempts, r.outcome, r.detail
  ), noted as (
    insert into ${eventsTable(messagesTable)} (message_id, account_id, kind, occurred_at, detail)
    select message_id, account_id, case outcome when 'held-back' then 'held-back' else 'attempt-failed' end, now(), detail
    from held where outcome = 'held-back' or outcome in ('retry', 'unknown') and attempts <= ${MAX_NOTED_ATTEMPTS}
    on conflict do nothing
  )
  select message_id as "messageId" from held`

/** Ends revocations. If the network accepted the request, the SMS waits only for the short grace. */
const recordRevoked = (messagesTable: string) => `
  with held as materialized (
    delete from queue q where ${IS_HELD} returning q.message_id, q.account_id
  ), result as materialized (
    select * from unnest(${lists('uuid', 'uuid', 'text', 'text')}) as r (message_id, lease, outcome, detail) join held using (message_id)
  ), asked as (
    select message_id from result where outcome = 'revoke-asked'
  ), ${releaseRevoked('asked', REVOCATION_GRACE_SECONDS.accepted)}, noted as (
    insert into ${eventsTable(messagesTable)} (message_id, account_id, kind, occurred_at, detail)
    select message_id, account_id, outcome, now(), detail from result r
    -- If a message has expired at the network, the network says so first, and then refuses the request as too late.
    left join lateral (
      select kind from ${eventsTable(messagesTable)} e where e.message_id = r.message_id and e.kind = 'revoked' limit 1
    ) as revoked on true
    where outcome <> 'revoke-refused' or revoked.kind is null
    on conflict do nothing
  )
  select message_id as "messageId" from held`

// `fields`: the fields of each result that a statement gets, after its message and lease.
const RELEASED = { name: 'released', text: recordReleased, fields: ['is', 'detail', 'afterMs'] } as const
const FAILED_FIELDS = ['reason', 'description', 'hasNoRcs'] as const
const FAILED = { name: 'failed', text: recordFailed(scheduleFailed), fields: FAILED_FIELDS } as const
const REVOKED = { name: 'revoked', text: recordRevoked, fields: ['is', 'detail'] } as const
export const STATEMENTS = {
  sent: { name: 'sent', text: recordSent, fields: [] },
  failed: FAILED,
  'no-rcs': FAILED,
  erased: { name: 'erased', text: recordFailed(skipErased), fields: FAILED_FIELDS },
  retry: RELEASED,
  unknown: RELEASED,
  'not-tried': RELEASED,
  'held-back': RELEASED,
  'revoke-asked': REVOKED,
  'revoke-refused': REVOKED,
} as const
