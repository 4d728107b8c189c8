import { columns, type Executor, lists, type Pool, transaction } from '../db/pool.ts'

export const BATCH_PAGES = 100
// The key of an advisory lock, unique in this database: "hrlo" in ASCII.
const ROUTER_LOCK = 0x68726c6f

/** `from`: the smallest page number to look for. */
type RouteOptions = { from?: number; limit?: number | undefined }
/** `last`: the greatest page number that is known to be routed. */
export type Routed = { routed: number; mayBeMore: boolean; last: number }
export const NOTHING: Routed = { routed: 0, mayBeMore: false, last: 0 }

/** The positions after `after` that were added to the log of an account. */
type Grown = { accountId: number; after: number; events: number; pages: number; last: number }

/**
 * Gives pages their positions in the log of their account, and queues their events for the endpoints. One process at a time routes, and the next
 * process begins after that commit, since a transaction releases its locks last. So a reader that has read up to a position has read every event
 * that will ever precede it, in whichever order transactions commit. A long transaction delays no reader, as it would if readers waited for
 * the oldest transaction.
 */
export async function routeEvents(pool: Pool, { from = 0, limit = BATCH_PAGES }: RouteOptions = {}): Promise<Routed> {
  // This runs ten times a second and rarely finds pages. One statement finds that out with a quarter of the round trips.
  if ((await findUnplaced(pool, from)) === undefined) return NOTHING
  return await transaction(pool, async (tx) => {
    const { rows: lock } = await tx.query<{ mine: boolean }>({ name: 'hold-router', text: LOCK })
    if (!lock[0]?.mine) return NOTHING
    const { rows } = await tx.query<Grown>({ name: 'place-pages', text: PLACE, values: [limit, from] })
    if (rows.length > 0) await tx.query({ name: 'address-events', text: ADDRESS, values: columns(rows, 'accountId', 'after') })
    const total = (of: 'events' | 'pages') => rows.reduce((sum, row) => sum + row[of], 0)
    return { routed: total('events'), mayBeMore: total('pages') === limit, last: Math.max(0, ...rows.map(({ last }) => last)) }
  })
}

/** Returns the smallest page number from `from` on that has no position; undefined if there is none. */
export async function findUnplaced(db: Executor, from: number): Promise<number | undefined> {
  const { rows } = await db.query<{ id: number }>({ name: 'find-unplaced', text: FIND_UNPLACED, values: [from] })
  return rows[0]?.id
}

/** Keeps the router from routing until this transaction ends. */
export async function lockRouter(tx: Executor): Promise<void> {
  await tx.query('select pg_advisory_xact_lock($1)', [ROUTER_LOCK])
}

const LOCK = `select pg_try_advisory_xact_lock(${ROUTER_LOCK}) as mine`
export const FIND_UNPLACED = 'select id from log_pages where last_position is null and id >= $1 order by id limit 1'

/**
 * Runs as a separate statement after the lock, so that it sees everything that was committed before. Each change of a message waits for the
 * commit of the previous change, so the page numbers of its changes grow, and the log has them in order. The update finds pages by `ctid`,
 * since every other statement that changes a page without a position holds the same lock. The clock is read after the snapshot, so the time is
 * after the start of every transaction whose page it places.
 */
export const PLACE = `
  with unplaced as materialized (
    select ctid, id, account_id, event_count from log_pages where last_position is null and id >= $2 order by id limit $1
  ), grown as materialized (
    select account_id, sum(event_count) as events, count(*) as pages, max(id) as last from unplaced group by account_id order by account_id
  ), head as materialized (
    insert into log_heads as h (account_id, last_position, placed_at) select account_id, events, clock_timestamp() from grown
    on conflict (account_id) do update set last_position = h.last_position + excluded.last_position,
      placed_at = greatest(h.placed_at, excluded.placed_at)
    returning account_id, last_position, placed_at
  ), placed as (
    update log_pages p set last_position = h.last_position - u.events_after, placed_at = h.placed_at
    from (select *, sum(event_count) over (partition by account_id order by id desc) - event_count as events_after from unplaced) as u
    join head h using (account_id)
    where p.ctid = u.ctid
  )
  select account_id as "accountId", h.last_position - events as after, events, pages, last from grown join head h using (account_id)
  order by account_id`

/**
 * Runs as a separate statement too, so that it sees the endpoints after the heads were moved (webhooks/endpoints.ts). `statement_timestamp()` is
 * after the lock, so deliveries are due in the order of the log. It locks the endpoints, since a removal could leave deliveries without an
 * endpoint. A test goes to the endpoint that it names. "offset 0" fixes the order of the steps: the account's endpoints, its new pages, each
 * parsed once, then the endpoints that want an event. With a join, PostgreSQL reads all pages of the account, or parses each page for every
 * endpoint.
 */
export const ADDRESS = `
  insert into webhook_deliveries (endpoint_id, account_id, position, subject_id, due_at)
  select wanting.id, grown.account_id, e.position, e.event ->> 2, statement_timestamp()
  from unnest(${lists('int', 'bigint')}) as grown (account_id, after), lateral (
    select array_agg(id) as ids, array_agg(array_to_string(kinds, ',')) as kinds from (
      select id, kinds from webhook_endpoints w where w.account_id = grown.account_id and w.status = 'ACTIVE' order by w.id for key share
    ) as locked
  ) as endpoints, lateral (
    select p.last_position - p.event_count + e.place as position, e.event, e.event ->> 0 as kind
    from log_pages p, json_array_elements(p.events) with ordinality as e (event, place)
    where endpoints.ids is not null and p.account_id = grown.account_id and p.last_position > grown.after offset 0
  ) as e, lateral (
    select w.id from unnest(endpoints.ids, endpoints.kinds) as w (id, kinds)
    where case e.kind when 'webhook.test' then e.event -> 8 ->> 'endpointId' = w.id::text
      else w.kinds is null or e.kind = any (string_to_array(w.kinds, ',')) end offset 0
  ) as wanting`
