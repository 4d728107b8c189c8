import { byMonth, fallbacksTable, isMissingMonth } from '../db/partitions.ts'
import { type Executor, lists } from '../db/pool.ts'
import { FAILURE, MESSAGE_FACTS, tellOfMessages } from '../events/outbox.ts'
import { mayBecome } from '../messages/states.ts'
import { countReached, LISTED } from '../reports/counters.ts'
import { countMoves } from './campaigns/counts.ts'
import { TRIES } from './claim.ts'
import { describeFailure, FAILURES, type Failure } from './failures.ts'
import { TO_REVOKE } from './give-up.ts'
import { REVOCATION_GRACE_SECONDS, releaseRevoked, scheduleFailed } from './sms/schedule.ts'

/** What came of a claimed entry. `detail`: the network's own words, where it had any. */
export type Verdict =
  | { is: 'sent' }
  /** For good. */
  | { is: 'failed'; reason: Failure; detail: string }
  | { is: 'again'; afterMs: number; detail: string }
  /** Nothing was asked of the network. `held-back`: nor will it be, unless the recipient wants messages again. */
  | { is: 'put-back' | 'held-back'; afterMs: number }
  /** There is nothing left to do about taking the message back. */
  | { is: 'revoke-asked' | 'revoke-refused'; detail: string }

export type Result = { messageId: string; lease: string } & Verdict

// Of a message that is tried for two days, the timeline keeps as many as tell the story.
const ATTEMPTS_NOTED = 10

/**
 * Writes results down, those of a month in one statement, and returns the ids of those that counted: only who still holds the lease may
 * write. A worker that was stopped past its lease, whose entries others have taken up or which are gone from the queue, changes nothing.
 *
 * What was sent, but has run out meanwhile, leaves the queue and stays as it is: at its expiry it is taken back like any other.
 */
export async function recordResults(db: Executor, results: Result[]): Promise<Set<string>> {
  const counted = new Set<string>()
  for (const [messages, ofMonth] of byMonth(results, ({ messageId }) => messageId)) {
    for (const { messageId } of await recordMonth(db, messages, ofMonth)) counted.add(messageId)
  }
  return counted
}

/** Says for each whether it counted. */
export async function recordEach(db: Executor, results: Result[]): Promise<boolean[]> {
  const counted = await recordResults(db, results)
  return results.map(({ messageId }) => counted.has(messageId))
}

async function recordMonth(db: Executor, messages: string, results: Result[]): Promise<{ messageId: string }[]> {
  try {
    const query = { name: `record-results ${messages}`, text: record(messages), values: valuesOf(results) }
    return (await db.query<{ messageId: string }>(query)).rows
  } catch (error) {
    if (!isMissingMonth(error, messages)) throw error
    // The month has been dropped, with all its messages: nothing is left to do about them.
    const ids = results.map(({ messageId }) => messageId)
    const gone = 'delete from queue where message_id = any ($1::uuid[]) returning message_id as "messageId"'
    return (await db.query<{ messageId: string }>(gone, [ids])).rows
  }
}

function valuesOf(results: Result[]): unknown[] {
  return [
    results.map(({ messageId }) => messageId),
    results.map(({ lease }) => lease),
    results.map(({ is }) => is),
    results.map((result) => (result.is === 'failed' ? result.reason : null)),
    results.map((result) => (result.is === 'failed' ? describeFailure(FAILURES[result.reason], result.detail) : null)),
    results.map((result) => ('detail' in result ? result.detail : null)),
    results.map((result) => ('afterMs' in result ? Math.round(result.afterMs) : null)),
  ]
}

const TOLD = [
  { kind: 'message.sent', at: 'sent_at' },
  { kind: 'message.failed', at: 'failed_at', more: FAILURE('reason', 'description') },
] as const

/**
 * One whose recipient opted out after a try whose outcome is not known may be with the network: it fails, and is taken back, here or, where it
 * has just run out, with its expiry. One that the network itself refused is not there.
 */
const record = (messages: string) => `
  with held as materialized (
    select r.*, q.account_id, q.attempts, r.verdict in ('again', 'put-back', 'held-back') as stays,
      coalesce(r.reason = 'OPTED_OUT' and q.attempts > 1, false) as may_be_there
    from (
      select * from unnest(${lists('uuid', 'uuid', 'text', 'text', 'text', 'text', 'int')})
        as r (message_id, lease, verdict, reason, description, detail, after_ms)
      order by message_id
    ) as r, lateral (
      select account_id, attempts from queue q where q.message_id = r.message_id and q.lease = r.lease for update
    ) as q
  ), put_off as (
    update queue q set
      lease = null,
      due_at = now() + (select h.after_ms from held h where h.message_id = q.message_id) * interval '1 millisecond',
      attempts = q.attempts - (select case h.verdict when 'again' then 0 else 1 end from held h where h.message_id = q.message_id)
    where q.message_id = any (array(select message_id from held where stays))
  ), moved as (
    update ${messages} m set
      status = case h.verdict when 'sent' then 'SENT' else 'FAILED' end,
      sent_at = case h.verdict when 'sent' then greatest(now(), m.accepted_at) end,
      failed_at = case h.verdict when 'failed' then greatest(now(), m.accepted_at) end,
      failure_reason = h.reason,
      failure_description = h.description
    from held h
    where m.id = h.message_id and m.expires_at > clock_timestamp()
      and (h.verdict = 'sent' and ${mayBecome('SENT', 'm.status')} or h.verdict = 'failed' and ${mayBecome('FAILED', 'm.status')})
    returning ${MESSAGE_FACTS}, m.traffic, h.verdict, m.sent_at, m.failed_at, coalesce(m.failed_at, m.sent_at) as at, h.reason, h.description, h.detail,
      h.may_be_there as awaits_revocation, 'ACCEPTED' as was, m.status as became
  ), turned as (
    update queue q set ${TO_REVOKE}
    where q.message_id = any (array(select id from moved where awaits_revocation))
  ), ended as (
    delete from queue where message_id = any (array(select message_id from held where not stays and not may_be_there))
  ), settled as (
    delete from expiries where message_id = any (array(select id from moved where verdict = 'failed'))
  ), ${scheduleFailed(fallbacksTable(messages), 'moved')}, ${countMoves('moved')}, ${tellOfMessages('moved', TOLD)}, ${countReached('moved', TOLD)}, revoking as (
    select message_id from held where verdict = 'revoke-asked'
  ), ${releaseRevoked('revoking', REVOCATION_GRACE_SECONDS.taken)}, noted as (
    insert into message_events (message_id, account_id, kind, occurred_at, reason, detail, campaign_id, recipient)
    select id, account_id, verdict, at, reason, detail, ${LISTED} from moved
    union all
    select message_id, account_id, 'attempt-failed', now(), null, detail, null, null from held where verdict = 'again' and attempts <= ${ATTEMPTS_NOTED}
    union all
    select message_id, account_id, verdict, now(), null, ${TRIES('attempts - 1')}, null, null from held where verdict = 'held-back'
    union all
    select message_id, account_id, verdict, now(), null, detail, null, null from held where verdict in ('revoke-asked', 'revoke-refused')
    on conflict do nothing
  )
  select message_id as "messageId" from held`
