import type { Executor } from '../db/pool.ts'
import { mayBecome, PRIORITIES } from '../messages/states.ts'

const MOST_AT_ONCE = 1_000
// Any number that nothing else in this database locks: "hrle" in ASCII.
const EXPIRY_LOCK = 0x68726c65

/**
 * Marks what has run out, by the database's clock, and has it taken back at the network where the network may have it. One worker at a time;
 * the others find nothing. Returns how many were due, and whether there may be more.
 *
 * A message that was never taken up is just not sent. One whose call is under way is taken back when the call has surely ended, and its
 * result no longer counts. A receipt that came in time has taken its message out of `expiries` in its own transaction, or waits here
 * for the message's lock and finds it expired.
 */
export async function expireDue(db: Executor): Promise<{ expired: number; mayBeMore: boolean }> {
  const { rows } = await db.query<{ due: number; expired: number }>({ name: 'expire-due', text: EXPIRE, values: [MOST_AT_ONCE] })
  const { due = 0, expired = 0 } = rows[0] ?? {}
  return { expired, mayBeMore: due === MOST_AT_ONCE }
}

const EXPIRE = `
  with turn as materialized (
    select pg_try_advisory_xact_lock(${EXPIRY_LOCK}) as is_mine
  ), due as materialized (
    select message_id from expiries where (select is_mine from turn) and expires_at <= now() order by expires_at limit $1
  ), queued as materialized (
    select q.message_id, q.attempts from queue q join due using (message_id) order by q.message_id for update of q
  ), locked as materialized (
    select m.id from messages m join due on due.message_id = m.id
    where (select count(*) from queued) >= 0 -- Its locks come first.
    order by m.id for no key update of m
  ), expired as (
    update messages m set status = 'EXPIRED'
    from locked where m.id = locked.id and ${mayBecome('EXPIRED', 'm.status')}
    returning m.id, m.account_id, m.agent_id, m.expires_at
  ), dropped as (
    delete from queue q using queued, expired
    where q.message_id = queued.message_id and queued.attempts = 0 and expired.id = q.message_id
    returning q.message_id
  ), revoking as (
    insert into queue as q (message_id, account_id, agent_id, task, priority, due_at, expires_at)
    select id, account_id, agent_id, 'revoke', ${PRIORITIES.revoke}, now(), expires_at
    from expired where not exists (select from dropped where dropped.message_id = expired.id)
    on conflict (message_id) do update set
      task = 'revoke',
      priority = excluded.priority,
      -- A lease that runs is a call under way.
      due_at = case when q.lease is null then now() else greatest(q.due_at, now()) end,
      attempts = 0,
      lease = null
  ), settled as (
    delete from expiries e using due where e.message_id = due.message_id
  ), noted as (
    insert into message_events (message_id, account_id, kind, occurred_at)
    select id, account_id, 'expired', expires_at from expired
    on conflict do nothing
  )
  select (select count(*) from due) as due, (select count(*) from expired) as expired`
