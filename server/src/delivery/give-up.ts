import { fallbacksTable } from '../db/partitions.ts'
import { FAILURE, MESSAGE_FACTS, tellOfMessages } from '../events/outbox.ts'
import { mayBecome, PRIORITIES } from '../messages/states.ts'
import { countReached, LISTED } from '../reports/counters.ts'
import { countMoves } from './campaigns/counts.ts'
import type { Failure } from './failures.ts'

/** What is being sent at this moment is left to its outcome, and what has run out to its expiry. */
export const NOT_UNDER_WAY = '(q.lease is null or q.due_at <= now()) and q.expires_at > now()'

/** What an entry becomes whose message is to be taken back at once. */
export const TO_REVOKE = `task = 'revoke', priority = ${PRIORITIES.revoke}, due_at = now(), attempts = 0, lease = null`

/**
 * A statement that gives messages up that wait to be sent: `$1` are their ids, `$2` is the sentence for callers. `because` joins the queue's
 * entry q with what is the reason, which may have gone since they were found. `fallBack` are the steps that say what becomes of their SMS.
 *
 * One that was tried, and whose answer was lost, may be with the network: it is taken back.
 */
export function giveUp(
  messages: string,
  reason: Failure,
  because: string,
  fallBack: (fallbacks: string, failed: string) => string,
): string {
  const told = [{ kind: 'message.failed', at: 'failed_at', more: FAILURE(`'${reason}'`, '$2') }] as const
  return `
  with taken as materialized (
    select q.message_id, q.attempts
    from unnest($1::uuid[]) as ids (message_id), lateral (
      select * from queue q where q.message_id = ids.message_id and q.task = 'send' and ${NOT_UNDER_WAY} for update skip locked
    ) as q
    ${because}
  ), failed as (
    update ${messages} m set status = 'FAILED', failed_at = greatest(now(), m.accepted_at), failure_reason = '${reason}', failure_description = $2
    from taken
    where m.id = taken.message_id and ${mayBecome('FAILED', 'm.status')} and m.expires_at > clock_timestamp()
    returning ${MESSAGE_FACTS}, m.traffic, m.failed_at, taken.attempts, taken.attempts > 0 as awaits_revocation,
      'ACCEPTED' as was, 'FAILED' as became
  ), dropped as (
    delete from queue where message_id = any (array(select id from failed where attempts = 0))
  ), turned as (
    update queue q set ${TO_REVOKE}
    where q.message_id = any (array(select id from failed where attempts > 0))
  ), settled as (
    delete from expiries where message_id = any (array(select id from failed))
  ), ${fallBack(fallbacksTable(messages), 'failed')}, ${countMoves('failed')}, ${tellOfMessages('failed', told)}, ${countReached('failed', told)}, noted as (
    insert into message_events (message_id, account_id, kind, occurred_at, reason, campaign_id, recipient)
    select id, account_id, 'failed', failed_at, '${reason}', ${LISTED} from failed
    on conflict do nothing
  )
  select id from failed`
}
