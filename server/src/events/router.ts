import { type Executor, lists, type Pool, transaction } from '../db/pool.ts'
import { eventsOf, type PageRow, type PlacedEvent } from './pages.ts'

export const BATCH_PAGES = 100
// Any number that nothing else in this database locks: "hrlo" in ASCII.
const ROUTER_LOCK = 0x68726c6f

/** `from`: the least number of a page that is looked for. */
export type RouteOptions = { from?: number; limit?: number }
/** `last`: the greatest number among the pages that were routed. */
export type Routed = { routed: number; mayBeMore: boolean; last: number }
const NOTHING: Routed = { routed: 0, mayBeMore: false, last: 0 }

type Unplaced = { id: number; accountId: number; pageId: string; eventCount: number }
type Placed = Unplaced & { lastPosition: number }

/**
 * Gives pages their place in the log of their account, and says where their events are to be posted. One process at a time: the next one
 * begins only when the places of the one before are committed and can be seen, since a transaction lets its locks go last. So a reader who
 * has read up to a place has read all that will ever be before it, however many transactions commit at once and in whichever order; and a
 * transaction that stays open for long holds nobody up, as it would where readers wait for the oldest transaction.
 */
export async function routeEvents(pool: Pool, { from = 0, limit = BATCH_PAGES }: RouteOptions = {}): Promise<Routed> {
  // Ten times a second, mostly in vain: a quarter of the round trips.
  const { rowCount } = await pool.query({ name: 'find-unplaced', text: FIND, values: [from] })
  if (rowCount === 0) return NOTHING
  return await transaction(pool, async (tx) => {
    const { rows } = await tx.query<{ mine: boolean }>({
      name: 'hold-router',
      text: `select pg_try_advisory_xact_lock(${ROUTER_LOCK}) as mine`,
    })
    if (!rows[0]?.mine) return NOTHING
    const pages = await placePages(tx, from, limit)
    const endpoints = await holdEndpoints(tx, pages)
    if (endpoints.length > 0) await address(tx, pages, endpoints)
    const routed = pages.reduce((sum, { eventCount }) => sum + eventCount, 0)
    return { routed, mayBeMore: pages.length === limit, last: pages.at(-1)?.id ?? 0 }
  })
}

const FIND = 'select from log_pages where last_position is null and id >= $1 order by id limit 1'

/**
 * A statement of its own after the lock, so that it sees all that was committed before. The numbers of pages grow with the changes of one
 * message, each of which waits for the one before to be committed: so they are in order in the log, too.
 */
async function placePages(tx: Executor, from: number, limit: number): Promise<Placed[]> {
  const { rows } = await tx.query<Unplaced>({
    name: 'read-unplaced',
    text: `select id, account_id as "accountId", page_id as "pageId", event_count as "eventCount"
           from log_pages where last_position is null and id >= $2 order by id limit $1`,
    values: [limit, from],
  })
  const next = await moveHeads(tx, rows)
  const placed = rows.map((page) => {
    const lastPosition = (next.get(page.accountId) ?? 0) + page.eventCount
    next.set(page.accountId, lastPosition)
    return { ...page, lastPosition }
  })
  await tx.query({
    name: 'place-pages',
    text: `update log_pages p set last_position = placed.position
           from unnest(${lists('int', 'uuid', 'bigint')}) as placed (account_id, page_id, position)
           where p.account_id = placed.account_id and p.page_id = placed.page_id`,
    values: [placed.map(({ accountId }) => accountId), placed.map(({ pageId }) => pageId), placed.map(({ lastPosition }) => lastPosition)],
  })
  return placed
}

/** Returns the last position of each account before these pages. */
async function moveHeads(tx: Executor, pages: Unplaced[]): Promise<Map<number, number>> {
  const events = new Map<number, number>()
  for (const { accountId, eventCount } of pages) events.set(accountId, (events.get(accountId) ?? 0) + eventCount)
  const { rows } = await tx.query<{ accountId: number; position: number }>({
    name: 'move-heads',
    text: `insert into log_heads as h (account_id, last_position) select * from unnest(${lists('int', 'bigint')}) order by 1
           on conflict (account_id) do update set last_position = h.last_position + excluded.last_position
           returning account_id as "accountId", last_position as position`,
    values: [[...events.keys()], [...events.values()]],
  })
  return new Map(rows.map(({ accountId, position }) => [accountId, position - (events.get(accountId) ?? 0)]))
}

type Endpoint = { id: number; accountId: number; kinds: string[] | null }

/** The endpoints of these accounts. They can't be removed meanwhile, which would leave deliveries to nobody behind. */
async function holdEndpoints(tx: Executor, pages: Placed[]): Promise<Endpoint[]> {
  const { rows } = await tx.query<Endpoint>({
    name: 'hold-endpoints',
    text: `select w.id, w.account_id as "accountId", w.kinds from unnest(${lists('int')}) as a (account_id), lateral (
             select * from webhook_endpoints w where w.account_id = a.account_id and w.status = 'ACTIVE' order by w.id for key share
           ) as w`,
    values: [[...new Set(pages.map(({ accountId }) => accountId))].sort((a, b) => a - b)],
  })
  return rows
}

/** Due at the time of this statement, which begins after the lock: so the deliveries are due in the order of the log. */
async function address(tx: Executor, pages: Placed[], endpoints: Endpoint[]): Promise<void> {
  const byAccount = Map.groupBy(endpoints, ({ accountId }) => accountId)
  const wanted = pages.filter(({ accountId }) => byAccount.has(accountId))
  const { rows } = await tx.query<Pick<PageRow, 'events'>>({
    name: 'read-placed',
    text: `select p.events from unnest(${lists('int', 'uuid')}) with ordinality as w (account_id, page_id, place)
           join log_pages p on p.account_id = w.account_id and p.page_id = w.page_id order by w.place`,
    values: [wanted.map(({ accountId }) => accountId), wanted.map(({ pageId }) => pageId)],
  })
  const deliveries = wanted.flatMap((page, index) =>
    eventsOf({ ...page, events: rows[index]?.events ?? [] }).flatMap((event) =>
      (byAccount.get(page.accountId) ?? []).filter((endpoint) => isFor(event, endpoint)).map(({ id }) => ({ id, page, event })),
    ),
  )
  await tx.query({
    name: 'address-events',
    text: `insert into webhook_deliveries (endpoint_id, account_id, position, subject_id, due_at)
           select d.*, statement_timestamp() from unnest(${lists('int', 'int', 'bigint', 'text')}) as d`,
    values: [
      deliveries.map(({ id }) => id),
      deliveries.map(({ page }) => page.accountId),
      deliveries.map(({ event }) => event.position),
      deliveries.map(({ event }) => event.subjectId),
    ],
  })
}

/** A test is for the endpoint that it names. */
function isFor({ kind, data }: PlacedEvent, { id, kinds }: Endpoint): boolean {
  if (kind === 'webhook.test') return (JSON.parse(data) as { endpointId: number }).endpointId === id
  return kinds === null || kinds.includes(kind)
}
