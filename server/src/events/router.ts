import { type Pool, transaction } from '../db/pool.ts'

const MOST_AT_ONCE = 1_000
// Any number that nothing else in this database locks: "hrlo" in ASCII.
const ROUTER_LOCK = 0x68726c6f

/**
 * Gives events their place in the log, and says where they are to be posted. One process at a time: the next one begins only when the
 * places of the one before are committed and can be seen, since a transaction lets its locks go last. So whoever has read up to a place has read all
 * that will ever be before it, however many transactions commit at once and in whichever order; and one that stays open for long holds
 * nobody up, as it would where readers wait for the oldest transaction.
 */
export async function routeEvents(pool: Pool): Promise<{ routed: number; mayBeMore: boolean }> {
  // Ten times a second, mostly in vain: a quarter of the round trips.
  const { rowCount } = await pool.query({ name: 'find-untold', text: 'select from outbox order by id limit 1' })
  if (rowCount === 0) return { routed: 0, mayBeMore: false }
  return await transaction(pool, async (tx) => {
    const { rows } = await tx.query<{ mine: boolean }>({
      name: 'hold-router',
      text: `select pg_try_advisory_xact_lock(${ROUTER_LOCK}) as mine`,
    })
    if (!rows[0]?.mine) return { routed: 0, mayBeMore: false }
    const { rows: routed } = await tx.query<{ count: number }>({ name: 'route-events', text: ROUTE, values: [MOST_AT_ONCE] })
    const count = routed[0]?.count ?? 0
    return { routed: count, mayBeMore: count === MOST_AT_ONCE }
  })
}

/**
 * A statement of its own after the lock, so that it sees all that was committed before. Numbers of the outbox grow with the changes of one
 * message, each of which waits for the one before to be committed: so they are in order in the log too; and, by the clock and not by
 * when the transaction began, in the order in which they are due. The endpoints are locked
 * against being removed meanwhile, which would leave deliveries to nobody behind.
 */
const ROUTE = `
  with taken as materialized (
    delete from outbox where id = any (array(select id from outbox order by id limit $1))
    returning id, account_id, kind, subject_id, occurred_at, data, endpoint_id
  ), placed as materialized (
    select nextval('event_positions') as position, t.* from (select * from taken order by id) as t
  ), logged as (
    insert into events (account_id, position, event_id, kind, subject_id, occurred_at, data, recorded_at)
    select account_id, position, uuid_v7(), kind, subject_id, occurred_at, data, clock_timestamp() from placed
  ), endpoint as materialized (
    select w.id
    from (select distinct account_id from placed order by account_id) as a, lateral (
      select id from webhook_endpoints w where w.account_id = a.account_id and w.status = 'ACTIVE' order by id for key share
    ) as w
  ), addressed as (
    insert into webhook_deliveries (endpoint_id, account_id, position, due_at)
    select w.id, p.account_id, p.position, clock_timestamp()
    from placed p join webhook_endpoints w on w.account_id = p.account_id and w.id = any (array(select id from endpoint))
    where case when p.endpoint_id is null then w.kinds is null or p.kind = any (w.kinds) else p.endpoint_id = w.id end
  )
  select count(*) from taken`
