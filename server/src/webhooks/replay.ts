import { type Executor, type Pool, transaction } from '../db/pool.ts'
import { OperatorError } from '../errors.ts'
import { UUID } from '../messages/messages.ts'
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
const NEARLY_IN_ORDER_ROWS = 10_000
const KEPT_DAYS = 30

/** For operators: an event of this account, by the id that callers know. */
export async function findEvent(db: Executor, accountId: number, eventId: string): Promise<{ position: number; recordedAt: Date }> {
  const { rows } = UUID.test(eventId)
    ? await db.query<{ position: number; recordedAt: Date }>(
        'select position, recorded_at as "recordedAt" from events where event_id = $1 and account_id = $2',
        [eventId, accountId],
      )
    : { rows: [] }
  if (rows[0] === undefined) {
    throw new OperatorError(`Account ${accountId} has no event ${eventId} in its log, which keeps them for ${KEPT_DAYS} days.`)
  }
  return rows[0]
}

/** One event, of whichever kind and whatever became of it. */
export async function replayEvent(pool: Pool, endpointId: number, eventId: string): Promise<ReplayResult> {
  return await transaction(pool, async (tx) => {
    const endpoint = await holdActiveEndpoint(tx, endpointId)
    const { position } = await findEvent(tx, endpoint.accountId, eventId)
    const replayed = await makeDue(tx, endpoint, [position])
    return { endpointId, replayed, alreadyDue: 1 - replayed }
  })
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
      return await countIdle(tx, endpoint, [(await findEvent(tx, endpoint.accountId, event)).position])
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

/** `last`: how far this portion went; null where there is nothing more. */
type Portion = { last: number | null; positions: number[] }
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

/** `use` gets the positions of each portion in its transaction, and returns how many it changes or would change. */
type Walk = {
  endpointId: number
  since: Date
  read: ReadPortion
  use: (tx: Executor, endpoint: Endpoint, positions: number[]) => Promise<number>
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
      const { last, positions } = await read(tx, endpoint, range)
      return { last, wanted: positions.length, used: await use(tx, endpoint, positions) }
    })
    after = portion.last
    yield { ...portion, share: after === null ? 1 : (after - first + 1) / (last - first + 1) }
  }
}

/**
 * Where to begin in the log, and where to end: what comes after this moment is posted by itself. By an index that is not the account's, whose
 * first rows since a time tell where all others begin.
 */
async function findRange(db: Executor, { accountId }: Endpoint, since: Date): Promise<{ first: number; last: number }> {
  const { rows } = await db.query<{ isFuture: boolean; first: number | null; last: number | null }>(
    `select $2 > clock_timestamp() as "isFuture",
       (select min(position) from (
          select position from events where recorded_at >= $2 order by recorded_at, position limit ${NEARLY_IN_ORDER_ROWS}
        ) as since) as first,
       (select position from events where account_id = $1 order by position desc limit 1) as last`,
    [accountId, since],
  )
  const { isFuture, first, last } = rows[0] as { isFuture: boolean; first: number | null; last: number | null }
  if (isFuture) throw new OperatorError(`The time ${since.toISOString()} is in the future; a replay begins at one that has passed.`)
  return { first: first ?? 1, last: first === null || last === null ? 0 : last }
}

/** Goes through the account's log: a portion costs the same wherever it is and however few of it are wanted. */
async function readWanted(tx: Executor, { accountId, events }: Endpoint, { since, after, last, limit }: Range): Promise<Portion> {
  const { rows } = await tx.query<Portion>({
    name: 'read-webhook-replay',
    text: `select max(position) as last, coalesce(array_agg(position order by position) filter (
        where recorded_at >= $4 and kind <> 'webhook.test' and ($5::text[] is null or kind = any ($5))), '{}') as positions
      from (
        select position, recorded_at, kind from events where account_id = $1 and position > $2 and position <= $3 order by position limit $6
      ) as portion`,
    values: [accountId, after, last, since, events, limit],
  })
  return numbered(rows[0])
}

/** Goes through the endpoint's deliveries, of which those that have failed may be few among many. */
async function readFailed(tx: Executor, endpoint: Endpoint, { since, after, last, limit }: Range): Promise<Portion> {
  const { rows } = await tx.query<Portion>({
    name: 'read-failed-webhooks',
    text: `select max(d.position) as last, coalesce(array_agg(d.position order by d.position) filter (
        where (d.due_at is null or d.attempts > 0) and exists (
          select from events e where e.account_id = $2 and e.position = d.position and e.recorded_at >= $5)), '{}') as positions
      from (
        select position, attempts, due_at from webhook_deliveries
        where endpoint_id = $1 and account_id = $2 and position > $3 and position <= $4 order by position limit $6
      ) as d`,
    values: [endpoint.endpointId, endpoint.accountId, after, last, since, limit],
  })
  return numbered(rows[0])
}

/** The driver gives the elements of an array of 64-bit integers as texts. */
function numbered(portion: Portion | undefined): Portion {
  return { last: portion?.last ?? null, positions: (portion?.positions ?? []).map(Number) }
}

/**
 * Makes these due now, and returns how many that changed. A delivery that is due is left as it is, and so is one that somebody writes at this
 * moment: a result counts for the try it is of. Waits for nobody while it holds rows, but for an equal replay, which goes the same way.
 */
async function makeDue(tx: Executor, { endpointId, accountId }: Endpoint, positions: number[]): Promise<number> {
  const { rows } = await tx.query<{ count: number }>({
    name: 'replay-webhooks',
    text: `
      with wanted as materialized (
        select position from unnest($3::bigint[]) as w (position) order by position
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
        insert into webhook_deliveries (endpoint_id, account_id, position, due_at)
        select $1, $2, w.position, now() from wanted w
        where not exists (select from webhook_deliveries d where d.endpoint_id = $1 and d.position = w.position)
        on conflict (endpoint_id, position) do nothing
        returning position
      )
      select (select count(*) from again) + (select count(*) from added) as count`,
    values: [endpointId, accountId, positions],
  })
  return rows[0]?.count ?? 0
}

/** How many of these `makeDue` would change: all but the deliveries that are due already. */
async function countIdle(tx: Executor, { endpointId, accountId }: Endpoint, positions: number[]): Promise<number> {
  const { rows } = await tx.query<{ count: number }>({
    name: 'count-webhook-replay',
    text: `select count(*) from unnest($3::bigint[]) as w (position)
      where not exists (
        select from webhook_deliveries d
        where d.endpoint_id = $1 and d.account_id = $2 and d.position = w.position and d.due_at <= clock_timestamp()
      )`,
    values: [endpointId, accountId, positions],
  })
  return rows[0]?.count ?? 0
}
