import { columns, isTimedOut, lists, type Pool, transaction } from '../db/pool.ts'

const BATCH_PAGES = 100
// Any number that nothing else in this database locks: "hrlo" in ASCII.
const ROUTER_LOCK = 0x68726c6f

/** `from`: the smallest number of a page to look for. */
export type RouteOptions = { from?: number; limit?: number }
/** `last`: the greatest number of the routed pages. */
export type Routed = { routed: number; mayBeMore: boolean; last: number }
const NOTHING: Routed = { routed: 0, mayBeMore: false, last: 0 }

/** What was added to the log of an account: positions above `after`. */
type Grown = { accountId: number; after: number; events: number; pages: number; last: number }

/**
 * Gives pages their position in the log of their account, and queues their events for the endpoints. One process at a time routes, and the next
 * one begins after the commit of the one before, since a transaction releases its locks last. So a reader that has read up to a position has
 * read every event that will ever precede it, in whichever order transactions commit. A long transaction delays no reader, as it would if
 * readers waited for the oldest transaction.
 */
export async function routeEvents(pool: Pool, { from = 0, limit = BATCH_PAGES }: RouteOptions = {}): Promise<Routed> {
  // This runs ten times a second, mostly in vain: one statement finds that out with a quarter of the round trips.
  const { rowCount } = await pool.query({ name: 'find-unplaced', text: FIND, values: [from] })
  if (rowCount === 0) return NOTHING
  return await transaction(pool, async (tx) => {
    const { rows: turn } = await tx.query<{ mine: boolean }>({ name: 'hold-router', text: HOLD })
    if (!turn[0]?.mine) return NOTHING
    const { rows } = await tx.query<Grown>({ name: 'place-pages', text: PLACE, values: [limit, from] })
    if (rows.length > 0) await tx.query({ name: 'address-events', text: ADDRESS, values: columns(rows, 'accountId', 'after') })
    const total = (of: 'events' | 'pages') => rows.reduce((sum, row) => sum + row[of], 0)
    return { routed: total('events'), mayBeMore: total('pages') === limit, last: Math.max(0, ...rows.map(({ last }) => last)) }
  })
}

const HOLD = `select pg_try_advisory_xact_lock(${ROUTER_LOCK}) as mine`
const FIND = 'select from log_pages where last_position is null and id >= $1 order by id limit 1'

/**
 * A separate statement after the lock, so that it sees everything committed before. Each change of a message waits for the commit of the one
 * before, so the page numbers of its changes grow, and the log has them in order. By `ctid`, since nobody else changes a page without a position.
 */
const PLACE = `
  with unplaced as materialized (
    select ctid, id, account_id, event_count from log_pages where last_position is null and id >= $2 order by id limit $1
  ), grown as materialized (
    select account_id, sum(event_count) as events, count(*) as pages, max(id) as last from unplaced group by account_id order by account_id
  ), head as materialized (
    insert into log_heads as h (account_id, last_position) select account_id, events from grown
    on conflict (account_id) do update set last_position = h.last_position + excluded.last_position
    returning account_id, last_position
  ), placed as (
    update log_pages p set last_position = h.last_position - u.events_after
    from (select *, sum(event_count) over (partition by account_id order by id desc) - event_count as events_after from unplaced) as u
    join head h using (account_id)
    where p.ctid = u.ctid
  )
  select account_id as "accountId", h.last_position - events as after, events, pages, last from grown join head h using (account_id)
  order by account_id`

/**
 * A separate statement, too: it sees the endpoints as they are once the heads are moved (webhooks/endpoints.ts). Its time is after the lock, so
 * that deliveries are due in the order of the log. It locks the endpoints, or a removal could leave deliveries without an endpoint. A test
 * goes to the endpoint that it names. "offset 0" fixes the order: the account's endpoints, its new pages, each parsed once, then the
 * endpoints that want an event. By a join, PostgreSQL reads all of the account's pages, or parses each page for every endpoint.
 */
const ADDRESS = `
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

// Every poll looks for pages committed within this time; a statement takes 3.5 s at most.
const SLACK_MS = 10_000
// Pages of a transaction that stayed open for longer are found by a look at all pages.
const LOOK_AT_ALL_EVERY_MS = 10_000

/**
 * Polls of the router, one after the other. They begin at recent numbers: while another transaction stays open for long, such as a backup,
 * PostgreSQL can't remove the routed entries, and a look from the beginning would read all of them. Measured: half a second for
 * 300,000, ten times a second.
 *
 * If a poll takes too long, the next one takes half as many pages, down to one: no page can stop the router for good.
 */
export function createRounds(pool: Pool): () => Promise<Routed> {
  let limit = BATCH_PAGES
  let lookedAtAllAt = Number.NEGATIVE_INFINITY
  // The greatest numbers that were routed: in all, up to a mark, and up to the mark before, which is at least as old as the slack.
  let last = 0
  let mark = { at: Number.NEGATIVE_INFINITY, last }
  let old = 0

  return async () => {
    const now = performance.now()
    const isMarkOld = now - mark.at >= SLACK_MS
    if (isMarkOld) old = mark.last
    const from = now - lookedAtAllAt > LOOK_AT_ALL_EVERY_MS ? 0 : old
    try {
      const routed = await routeEvents(pool, { from, limit })
      if (from === 0 && !routed.mayBeMore) lookedAtAllAt = now
      last = Math.max(last, routed.last)
      if (isMarkOld) mark = { at: now, last }
      limit = Math.min(limit * 2, BATCH_PAGES)
      return routed
    } catch (error) {
      if (isTimedOut(error)) limit = Math.max(1, Math.floor(limit / 2))
      throw error
    }
  }
}
