import { timeOf } from '../db/partitions.ts'
import { type Executor, listed, type Pool, transaction } from '../db/pool.ts'
import { OperatorError } from '../errors.ts'
import { eventsOf, findEvent, type PlacedEvent, placeKey, readEventsAt, readHead, readPages } from '../events/pages.ts'
import { type Endpoint, holdActiveEndpoint } from './endpoints.ts'

// A replay makes deliveries due as if they had never been tried. What is due already, on its way perhaps at this moment, is left alone: it
// is posted anyhow. Each portion is a transaction of its own, so that a replay that is killed has done what it has done; run again, it does
// the rest, and sends once more what has gone out meanwhile, as at-least-once allows.

export type ReplayResult = {
  endpointId: number
  /** How many are posted again. */
  replayed: number
  /** How many are due anyhow. */
  alreadyDue: number
}

/** `share`: of the log that was gone through, 0 to 1. */
export type ReplayProgress = { replayed: number; share: number }

export type ReplayOptions = { onProgress?: (progress: ReplayProgress) => void; portionRows?: number }

// Measured: 5,000 take a tenth of a second, and half a second on a machine that is busy, of the 3.5 s that a statement may take.
const PORTION_ROWS = 5_000
// Times grow with the positions, unless the database's clock was set back.
const NEARLY_IN_ORDER_PAGES = 10_000
const KEPT_DAYS = 30

/** For operators: an event of this account, by the id that callers know. */
export async function requireEvent(db: Executor, accountId: number, eventId: string): Promise<{ position: number; recordedAt: Date }> {
  const event = await findEvent(db, accountId, eventId)
  if (event !== undefined) return event
  throw new OperatorError(`Account ${accountId} has no event ${eventId} in its log, which keeps them for ${KEPT_DAYS} days.`)
}

/** One event, of whichever kind and whatever became of it. */
export async function replayEvent(pool: Pool, endpointId: number, eventId: string): Promise<ReplayResult> {
  return await transaction(pool, async (tx) => {
    const endpoint = await holdActiveEndpoint(tx, endpointId)
    const replayed = await makeDue(tx, endpoint, [await readOne(tx, endpoint, eventId)])
    return { endpointId, replayed, alreadyDue: 1 - replayed }
  })
}

async function readOne(tx: Executor, { accountId }: Endpoint, eventId: string): Promise<Wanted> {
  const { position } = await requireEvent(tx, accountId, eventId)
  const events = await readEventsAt(tx, [{ accountId, position }])
  return { position, subjectId: events.get(placeKey(accountId, position))?.subjectId ?? null }
}

/** All of which a try has failed and none has succeeded, of the events since a time: those given up, and those that wait for their next try. */
export async function replayFailed(pool: Pool, endpointId: number, since: Date, options: ReplayOptions = {}): Promise<ReplayResult> {
  return await replayPortions(pool, endpointId, since, readFailed, options)
}

/** All events of its kinds since a time, whatever became of them; but tests are not repeated. */
export async function replayAll(pool: Pool, endpointId: number, since: Date, options: ReplayOptions = {}): Promise<ReplayResult> {
  return await replayPortions(pool, endpointId, since, readWanted, options)
}

/** What an operator names to be posted again: one of these. */
export type ReplaySelection = { event?: string; failedSince?: Date; since?: Date }

/** `isMore`: counting ended before the log did. */
export type ReplayCount = { events: number; isMore: boolean }

// 40 portions take a second or two. A replay that is larger says "at least".
const COUNTED_PORTIONS = 40

/** How many deliveries the replay would make due now. Changes nothing, and ends after 40 portions, however long the log is. */
export async function countReplay(pool: Pool, endpointId: number, { event, failedSince, since }: ReplaySelection): Promise<ReplayCount> {
  if (event !== undefined) {
    const events = await transaction(pool, async (tx) => {
      const endpoint = await holdActiveEndpoint(tx, endpointId)
      return await countIdle(tx, endpoint, [await readOne(tx, endpoint, event)])
    })
    return { events, isMore: false }
  }
  const from = failedSince ?? since ?? new Date()
  const portions = goThrough(pool, { endpointId, since: from, read: failedSince ? readFailed : readWanted, use: countIdle })
  const count = { events: 0, isMore: false }
  let portionsLeft = COUNTED_PORTIONS
  for await (const { used, share } of portions) {
    count.events += used
    portionsLeft -= 1
    if (portionsLeft === 0) return { ...count, isMore: share < 1 }
  }
  return count
}

/** What to go through: positions above `after`, up to `last`, of what was recorded since. */
type Range = { since: Date; after: number; last: number; limit: number }

/** An event to be posted. Its subject keeps the order of what is posted. */
type Wanted = Pick<PlacedEvent, 'position' | 'subjectId'>
/** `last`: how far this portion went; null where there is nothing more. */
type Portion = { last: number | null; wanted: Wanted[] }
type ReadPortion = (tx: Executor, endpoint: Endpoint, range: Range) => Promise<Portion>

async function replayPortions(
  pool: Pool,
  endpointId: number,
  since: Date,
  read: ReadPortion,
  { onProgress = () => {}, portionRows = PORTION_ROWS }: ReplayOptions,
): Promise<ReplayResult> {
  const result = { endpointId, replayed: 0, alreadyDue: 0 }
  for await (const { wanted, used, share } of goThrough(pool, { endpointId, since, read, use: makeDue, portionRows })) {
    result.replayed += used
    result.alreadyDue += wanted - used
    onProgress({ replayed: result.replayed, share })
  }
  return result
}

/** `use` gets the events of each portion in its transaction, and returns how many it changes or would change. */
type Walk = {
  endpointId: number
  since: Date
  read: ReadPortion
  use: (tx: Executor, endpoint: Endpoint, wanted: Wanted[]) => Promise<number>
  portionRows?: number
}

async function* goThrough(
  pool: Pool,
  { endpointId, since, read, use, portionRows = PORTION_ROWS }: Walk,
): AsyncGenerator<{ wanted: number; used: number; share: number }> {
  const { first, last } = await transaction(pool, async (tx) => await findRange(tx, await holdActiveEndpoint(tx, endpointId), since))
  for (let after: number | null = first - 1; after !== null && after < last; ) {
    const range: Range = { since, after, last, limit: portionRows }
    const portion = await transaction(pool, async (tx) => {
      // Looked at anew each time: it may be disabled or removed meanwhile.
      const endpoint = await holdActiveEndpoint(tx, endpointId)
      const { last, wanted } = await read(tx, endpoint, range)
      return { last, wanted: wanted.length, used: await use(tx, endpoint, wanted) }
    })
    after = portion.last
    yield { ...portion, share: after === null ? 1 : (after - first + 1) / (last - first + 1) }
  }
}

/**
 * Where to begin in the log, and where to end: what comes after this moment is posted by itself. The ids of pages begin with their time. Positions
 * grow with it, but for pages that were written at once.
 */
async function findRange(db: Executor, { accountId }: Endpoint, since: Date): Promise<{ first: number; last: number }> {
  const { rows } = await db.query<{ isFuture: boolean; first: number | null }>(
    `select $2 > clock_timestamp() as "isFuture",
       (select min(last_position - event_count + 1) from (
          select last_position, event_count from log_pages where account_id = $1 and page_id >= uuid_v7_from($2) and last_position is not null
          order by page_id limit ${NEARLY_IN_ORDER_PAGES}
        ) as since) as first`,
    [accountId, since],
  )
  const { isFuture, first } = rows[0] as { isFuture: boolean; first: number | null }
  if (isFuture) throw new OperatorError(`The time ${since.toISOString()} is in the future; a replay begins at one that has passed.`)
  return { first: first ?? 1, last: first === null ? 0 : await readHead(db, accountId) }
}

/** Goes through the account's log: a portion costs the same wherever it is and however few of it are wanted. */
async function readWanted(tx: Executor, { accountId, events }: Endpoint, { since, after, last, limit }: Range): Promise<Portion> {
  const pages = await readPages(tx, accountId, { after, last, limit })
  const read = pages.flatMap((page) => (timeOf(page.pageId) < since ? [] : eventsOf(page)))
  const wanted = read.filter(
    ({ position, kind }) =>
      position > after && position <= last && kind !== 'webhook.test' && (events?.some((one) => one === kind) ?? true),
  )
  return { last: pages.at(-1)?.lastPosition ?? null, wanted }
}

/** Goes through the endpoint's deliveries, of which those that have failed may be few among many. One whose event is forgotten has nothing to post. */
async function readFailed(tx: Executor, endpoint: Endpoint, { since, after, last, limit }: Range): Promise<Portion> {
  const { rows } = await tx.query<Wanted & { isWanted: boolean | null }>({
    name: 'read-failed-webhooks',
    text: `select d.position, d.subject_id as "subjectId", (d.due_at is null or d.attempts > 0) and (
          select p.page_id >= uuid_v7_from($5) and p.last_position - p.event_count < d.position
          from log_pages p where p.account_id = $2 and p.last_position >= d.position order by p.last_position limit 1
        ) as "isWanted"
      from webhook_deliveries d
      where d.endpoint_id = $1 and d.account_id = $2 and d.position > $3 and d.position <= $4 order by d.position limit $6`,
    values: [endpoint.endpointId, endpoint.accountId, after, last, since, limit],
  })
  return { last: rows.at(-1)?.position ?? null, wanted: rows.filter(({ isWanted }) => isWanted) }
}

/**
 * Makes these due now, and returns how many that changed. A delivery that is due is left as it is, and so is one that somebody writes at this
 * moment: a result counts for the try it is of. Waits for nobody while it holds rows, but for an equal replay, which goes the same way.
 */
async function makeDue(tx: Executor, { endpointId, accountId }: Endpoint, wanted: Wanted[]): Promise<number> {
  const { rows } = await tx.query<{ count: number }>({
    name: 'replay-webhooks',
    text: `
      with wanted as materialized (
        select position, subject_id from unnest(${listed('$3::bigint[]')}, ${listed('$4::text[]')}) as w (position, subject_id) order by position
      ), idle as materialized (
        select d.position from wanted w, lateral (
          select position from webhook_deliveries d
          where d.endpoint_id = $1 and d.account_id = $2 and d.position = w.position and (d.due_at is null or d.due_at > clock_timestamp())
          for update skip locked
        ) as d
      ), again as (
        update webhook_deliveries set attempts = 0, due_at = now(), generation = pg_current_xact_id() where endpoint_id = $1 and position = any (array(select position from idle))
        returning position
      ), added as (
        insert into webhook_deliveries (endpoint_id, account_id, position, subject_id, due_at)
        select $1, $2, w.position, w.subject_id, now() from wanted w
        where not exists (select from webhook_deliveries d where d.endpoint_id = $1 and d.position = w.position)
        on conflict (endpoint_id, position) do nothing
        returning position
      )
      select (select count(*) from again) + (select count(*) from added) as count`,
    values: [endpointId, accountId, wanted.map(({ position }) => position), wanted.map(({ subjectId }) => subjectId)],
  })
  return rows[0]?.count ?? 0
}

/** How many of these `makeDue` would change: all but the deliveries that are due already. */
async function countIdle(tx: Executor, { endpointId, accountId }: Endpoint, wanted: Wanted[]): Promise<number> {
  const { rows } = await tx.query<{ count: number }>({
    name: 'count-webhook-replay',
    text: `select count(*) from unnest($3::bigint[]) as w (position)
      where not exists (
        select from webhook_deliveries d
        where d.endpoint_id = $1 and d.account_id = $2 and d.position = w.position and d.due_at <= clock_timestamp()
      )`,
    values: [endpointId, accountId, wanted.map(({ position }) => position)],
  })
  return rows[0]?.count ?? 0
}
