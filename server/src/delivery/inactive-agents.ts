import type { Executor } from '../db/pool.ts'
import { mayBecome, PRIORITIES } from '../messages/states.ts'
import { LANES } from './claim.ts'
import { FAILURES } from './failures.ts'

const MOST_AT_ONCE = 1_000

/**
 * Gives up what was accepted for agents that have been deactivated since. What is being sent at this moment is left to its outcome; if that
 * is to try again, the next round takes it. Returns whether there may be more.
 */
export async function failInactive(db: Executor): Promise<{ failed: number; mayBeMore: boolean }> {
  const { rowCount } = await db.query({ name: 'fail-inactive', text: FAIL_INACTIVE, values: [MOST_AT_ONCE, FAILURES.AGENT_INACTIVE] })
  return { failed: rowCount ?? 0, mayBeMore: (rowCount ?? 0) >= MOST_AT_ONCE }
}

const FAIL_INACTIVE = `
  with recursive ${LANES}, closed_lane as materialized (
    select l.* from lane l
    join agent_assignments s on s.account_id = l.account_id and s.agent_id = l.agent_id
    where not s.active and l.priority <> ${PRIORITIES.revoke}
  ), taken as materialized (
    select q.message_id, q.account_id
    from closed_lane l, lateral (
      select message_id, account_id from queue q
      where q.account_id = l.account_id and q.agent_id = l.agent_id and q.priority = l.priority and (q.lease is null or q.due_at <= now())
      order by due_at limit $1
      for update skip locked
    ) as q
  ), ended as (
    delete from queue q using taken where q.message_id = taken.message_id
  ), failed as (
    update messages m set status = 'FAILED', failed_at = greatest(now(), m.accepted_at), failure_reason = 'AGENT_INACTIVE', failure_description = $2
    from taken
    where m.id = taken.message_id and ${mayBecome('FAILED', 'm.status')} and m.expires_at > clock_timestamp()
    returning m.id, m.account_id, m.failed_at
  ), settled as (
    delete from expiries e using failed where e.message_id = failed.id
  ), noted as (
    insert into message_events (message_id, account_id, kind, occurred_at, reason)
    select id, account_id, 'failed', failed_at, 'AGENT_INACTIVE' from failed
    on conflict do nothing
  )
  select message_id from taken`
