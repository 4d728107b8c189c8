import { byMonth, fallbacksTable } from '../db/partitions.ts'
import type { Executor } from '../db/pool.ts'
import { mayBecome, PRIORITIES } from '../messages/states.ts'
import { LANES } from './claim.ts'
import { FAILURES } from './failures.ts'
import { scheduleFailed } from './sms/schedule.ts'

const MOST_AT_ONCE = 1_000

/**
 * Gives up what was accepted for agents that have been deactivated since. What is being sent at this moment is left to its outcome; if that
 * is to try again, the next round takes it. Returns whether there may be more.
 */
export async function failInactive(db: Executor): Promise<{ failed: number; mayBeMore: boolean }> {
  const { rows } = await db.query<{ messageId: string }>({ name: 'find-inactive', text: FIND, values: [MOST_AT_ONCE] })
  let failed = 0
  for (const [messages, ofMonth] of byMonth(rows, ({ messageId }) => messageId)) {
    const ids = ofMonth.map(({ messageId }) => messageId)
    const { rowCount } = await db.query({ name: `fail-inactive ${messages}`, text: fail(messages), values: [ids, FAILURES.AGENT_INACTIVE] })
    failed += rowCount ?? 0
  }
  return { failed, mayBeMore: failed > 0 && rows.length >= MOST_AT_ONCE }
}

const NOT_UNDER_WAY = '(q.lease is null or q.due_at <= now()) and q.expires_at > now()'

const FIND = `
  with recursive ${LANES}
  select q.message_id as "messageId"
  from lane l join agent_assignments s on s.account_id = l.account_id and s.agent_id = l.agent_id, lateral (
    select message_id from queue q
    where q.account_id = l.account_id and q.agent_id = l.agent_id and q.priority = l.priority and ${NOT_UNDER_WAY}
    order by due_at limit $1
  ) as q
  where not s.active and l.priority <> ${PRIORITIES.revoke}
  limit $1`

/** One that was tried, and whose answer was lost, may be with the network: it is taken back. */
const fail = (messages: string) => `
  with taken as materialized (
    select q.message_id, q.attempts
    from unnest($1::uuid[]) as ids (message_id) join queue q using (message_id)
    join agent_assignments s on s.account_id = q.account_id and s.agent_id = q.agent_id and not s.active
    where q.task = 'send' and ${NOT_UNDER_WAY}
    for update of q skip locked
  ), failed as (
    update ${messages} m set status = 'FAILED', failed_at = greatest(now(), m.accepted_at), failure_reason = 'AGENT_INACTIVE', failure_description = $2
    from taken
    where m.id = taken.message_id and ${mayBecome('FAILED', 'm.status')} and m.expires_at > clock_timestamp()
    returning m.id, m.account_id, m.recipient, m.traffic, m.failed_at, taken.attempts, taken.attempts > 0 as awaits_revocation
  ), dropped as (
    delete from queue q using failed where q.message_id = failed.id and failed.attempts = 0
  ), turned as (
    update queue q set task = 'revoke', priority = ${PRIORITIES.revoke}, due_at = now(), attempts = 0, lease = null
    from failed where q.message_id = failed.id and failed.attempts > 0
  ), settled as (
    delete from expiries e using failed where e.message_id = failed.id
  ), ${scheduleFailed(fallbacksTable(messages), 'failed')}, noted as (
    insert into message_events (message_id, account_id, kind, occurred_at, reason)
    select id, account_id, 'failed', failed_at, 'AGENT_INACTIVE' from failed
    on conflict do nothing
  )
  select id from failed`
