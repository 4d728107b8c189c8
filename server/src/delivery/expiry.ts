import { byMonth } from '../db/partitions.ts'
import type { Executor } from '../db/pool.ts'
import { mayBecome, PRIORITIES } from '../messages/states.ts'

const MOST_AT_ONCE = 1_000
// Any number that nothing else in this database locks: "hrle" in ASCII.
const EXPIRY_LOCK = 0x68726c65

/**
 * Marks what has run out, by the database's clock, and has it taken back at the network where the network may have it. Returns how many were
 * marked, and whether there may be more.
 */
export async function expireDue(db: Executor): Promise<{ expired: number; mayBeMore: boolean }> {
  const { rows } = await db.query<{ messageId: string }>({
    name: 'find-expired',
    text: 'select message_id as "messageId" from expiries where expires_at <= now() order by expires_at limit $1',
    values: [MOST_AT_ONCE],
  })
  let expired = 0
  for (const [messages, ofMonth] of byMonth(rows, ({ messageId }) => messageId)) {
    const ids = ofMonth.map(({ messageId }) => messageId)
    const { rowCount } = await db.query({ name: `expire ${messages}`, text: expire(messages), values: [ids] })
    expired += rowCount ?? 0
  }
  // None, though some were found: another worker has them.
  return { expired, mayBeMore: expired > 0 && rows.length === MOST_AT_ONCE }
}

/**
 * A message that was never taken up is just not sent. One whose call is under way is taken back when the call has surely ended, and its
 * result no longer counts. A receipt that came in time has taken its message out of `expiries` in its own transaction; one that comes at
 * this moment waits for the message's lock, and finds it expired. One worker at a time: another would find the same ones.
 */
const expire = (messages: string) => `
  with due as materialized (
    select message_id from unnest($1::uuid[]) as message_id where (select pg_try_advisory_xact_lock(${EXPIRY_LOCK}))
  ), queued as materialized (
    select q.message_id from due join queue q using (message_id) order by q.message_id for update of q
  ), locked as materialized (
    select m.id from due join ${messages} m on m.id = due.message_id
    where (select count(*) from queued) >= 0 -- Its locks come first.
    order by m.id for no key update of m
  ), expired as (
    update ${messages} m set status = 'EXPIRED'
    from locked where m.id = locked.id and ${mayBecome('EXPIRED', 'm.status')} and m.expires_at <= now()
    returning m.id, m.account_id, m.agent_id, m.expires_at
  ), dropped as (
    delete from queue q using expired where q.message_id = expired.id and q.attempts = 0
  ), turned as (
    update queue q set
      task = 'revoke',
      priority = ${PRIORITIES.revoke},
      -- A lease that runs is a call under way.
      due_at = case when q.lease is null then now() else greatest(q.due_at, now()) end,
      attempts = 0,
      lease = null
    from expired where q.message_id = expired.id and q.attempts > 0
  ), revoking as (
    insert into queue (message_id, account_id, agent_id, task, priority, due_at, expires_at)
    select id, account_id, agent_id, 'revoke', ${PRIORITIES.revoke}, now(), expires_at
    from expired where id not in (select message_id from queued)
  ), settled as (
    delete from expiries e using due where e.message_id = due.message_id and e.expires_at <= now()
  ), noted as (
    insert into message_events (message_id, account_id, kind, occurred_at)
    select id, account_id, 'expired', expires_at from expired
    on conflict do nothing
  )
  select id from expired`
