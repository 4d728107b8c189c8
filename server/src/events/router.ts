import { type Pool, transaction } from '../db/pool.ts'

export const MOST_AT_ONCE = 1_000
// Any number that nothing else in this database locks: "hrlo" in ASCII.
const ROUTER_LOCK = 0x68726c6f

/** `from`: the least number of the outbox that is looked for. */
export type RouteOptions = { from?: number; limit?: number }
/** `last`: the greatest number among those that were routed. */
export type Routed = { routed: number; mayBeMore: boolean; last: number }
const NOTHING: Routed = { routed: 0, mayBeMore: false, last: 0 }

/**
 * Gives events their place in the log, and says where they are to be posted. One process at a time: the next one begins only when the
 * places of the one before are committed and can be seen, since a transaction lets its locks go last. So whoever has read up to a place has read all
 * that will ever be before it, however many transactions commit at once and in whichever order; and one that stays open for long holds
 * nobody up, as it would where readers wait for the oldest transaction.
 */
export async function routeEvents(pool: Pool, { from = 0, limit = MOST_AT_ONCE }: RouteOptions = {}): Promise<Routed> {
  // Ten times a second, mostly in vain: a quarter of the round trips.
  const { rowCount } = await pool.query({ name: 'find-untold', text: FIND, values: [from] })
  if (rowCount === 0) return NOTHING
  return await transaction(pool, async (tx) => {
    const { rows } = await tx.query<{ mine: boolean }>({
      name: 'hold-router',
      text: `select pg_try_advisory_xact_lock(${ROUTER_LOCK}) as mine`,
    })
    if (!rows[0]?.mine) return NOTHING
    const { rows: routed } = await tx.query<{ count: number; last: number | null }>({
      name: 'route-events',
      text: ROUTE,
      values: [limit, from],
    })
    const { count, last } = routed[0] as { count: number; last: number | null }
    return { routed: count, mayBeMore: count === limit, last: last ?? 0 }
  })
}

const FIND = 'select from outbox where id >= $1 order by id limit 1'

/**
 * A statement of its own after the lock, so that it sees all that was committed before. Numbers of the outbox grow with the changes of one
 * message, each of which waits for the one before to be committed: so they are in order in the log too; and, since this
 * statement begins after the lock, as its transaction need not, in the order in which they are due. The endpoints are locked
 * against being removed meanwhile, which would leave deliveries to nobody behind.
 */
const ROUTE = `
  with taken as materialized (
    delete from outbox where id = any (array(select id from outbox where id >= $2 order by id limit $1))
    returning id, account_id, kind, subject_id, occurred_at, data, endpoint_id
  ), placed as materialized (
    select nextval('event_positions') as position, t.* from (select * from taken order by id) as t
  ), logged as (
    insert into events (account_id, position, event_id, kind, subject_id, occurred_at, data, recorded_at)
    select account_id, position, uuid_v7(), kind, subject_id, occurred_at, data, clock_timestamp() from placed
  ), of_account as materialized (
    -- By account first: each event compared with each endpoint took 2.4 s for 1,000 events and 5,000 endpoints.
    select account_id, array_agg(position order by position) as positions, array_agg(kind order by position) as kinds,
      array_agg(endpoint_id order by position) as endpoint_ids
    from placed group by account_id order by account_id
  ), addressed as (
    insert into webhook_deliveries (endpoint_id, account_id, position, due_at)
    select w.id, a.account_id, p.position, statement_timestamp()
    from of_account a, lateral (
      select id, kinds from webhook_endpoints w where w.account_id = a.account_id and w.status = 'ACTIVE' order by id for key share
    ) as w, lateral unnest(a.positions, a.kinds, a.endpoint_ids) as p (position, kind, endpoint_id)
    where case when p.endpoint_id is null then w.kinds is null or p.kind = any (w.kinds) else p.endpoint_id = w.id end
  )
  select count(*), max(id) as last from taken`
