import type { RecordChange } from '../audit/record.ts'
import { timeOf } from '../db/partitions.ts'
import { type Executor, listed, type Pool, transaction } from '../db/pool.ts'
import { eventsOf, findEvent, type PlacedEvent, placeKey, readEventsAt, readHead, readPages } from '../events/pages.ts'
import { Refusal } from '../refusal.ts'
import { timeInIds } from '../time.ts'
import { type Endpoint, endPause, holdActiveEndpoint } from './endpoints.ts'

// A replay makes deliveries due as if they had never been attempted. It skips deliveries that are already due, possibly in progress: they are
// posted anyway. It ends a pause of the endpoint: an operator replays when the endpoint is back. Each chunk is its own transaction, so a killed
// replay keeps its progress. If the operator runs it again, it does the rest, and repeats what was posted meanwhile, as at-least-once delivery
// allows.

export type ReplayResult = {
  endpointId: number
  /** Deliveries made due again. */
  replayed: number
  /** Deliveries that were already due. */
  alreadyDue: number
}

/** `share`: how much of the range is done, 0 to 1. */
export type ReplayProgress = { replayed: number; share: number }

type ReplayOptions = {
  /** Only events recorded before this time. */
  until?: Date | undefined
  /** Refuse a replay that has to look at more events. Unlimited by default. */
  maxEvents?: number
  onProgress?: (progress: ReplayProgress) => void
  /** Called in the first transaction that makes a delivery due or ends a pause. */
  record?: RecordChange | undefined
  chunkRows?: number
}

// Measured: 5,000 rows take a tenth of a second, half a second on a busy machine. A statement is cancelled after 3.5 s.
const CHUNK_ROWS = 5_000
// Times grow with positions, unless the database's clock was set back. `findRange` checks this many pages for exceptions.
const NEARLY_IN_ORDER_PAGES = 10_000
const LOG_DAYS = 30

/** For operators: finds an event of this account by the id that callers know. */
export async function requireEvent(db: Executor, accountId: number, eventId: string): Promise<{ position: number; recordedAt: Date }> {
  const event = await findEvent(db, accountId, eventId)
  if (event !== undefined) return event
  throw new Refusal(`Account ${accountId} has no event ${eventId}; its log keeps events for ${LOG_DAYS} days.`, {
    code: 'RCS_EVENT_NOT_FOUND',
    path: '/eventId',
    reason: 'names no event in the log of this account',
  })
}

/** Replays one event, of any kind and in any state. */
export async function replayEvent(
  pool: Pool,
  endpointId: number,
  eventId: string,
  record: RecordChange = async () => {},
): Promise<ReplayResult> {
  return await transaction(pool, async (tx) => {
    const endpoint = await holdActiveEndpoint(tx, endpointId)
    const replayed = await makeDue(tx, endpoint, [await readWantedEvent(tx, endpoint, eventId)])
    const isResumed = await endPause(tx, endpointId)
    if (replayed > 0 || isResumed) await record(tx)
    return { endpointId, replayed, alreadyDue: 1 - replayed }
  })
}

async function readWantedEvent(tx: Executor, { accountId }: Endpoint, eventId: string): Promise<Wanted> {
  const { position } = await requireEvent(tx, accountId, eventId)
  const events = await readEventsAt(tx, [{ accountId, position }])
  return { position, subjectId: events.get(placeKey(accountId, position))?.subjectId ?? null }
}

/**
 * Replays the events since a time that have failed attempts and no successful one. Some have failed permanently, others wait for a retry.
 */
export async function replayFailed(pool: Pool, endpointId: number, since: Date, options: ReplayOptions = {}): Promise<ReplayResult> {
  return await replayChunks(pool, endpointId, since, FAILED, options)
}

/** Replays all events of the endpoint's kinds since a time, in any state, except tests. */
export async function replayAll(pool: Pool, endpointId: number, since: Date, options: ReplayOptions = {}): Promise<ReplayResult> {
  return await replayChunks(pool, endpointId, since, ALL, options)
}

/** An operator's selection: exactly one of these fields is set. */
type ReplaySelection = { event?: string; failedSince?: Date; since?: Date }

/** `isMore`: counting stopped before the end of the log. */
export type ReplayCount = { events: number; isMore: boolean }

// 40 chunks take a second or two. The count of a larger replay is shown as "at least".
const COUNTED_CHUNKS = 40

/** Counts the deliveries that the replay would make due now. Changes nothing, and stops after 40 chunks, however long the log is. */
export async function countReplay(pool: Pool, endpointId: number, { event, failedSince, since }: ReplaySelection): Promise<ReplayCount> {
  if (event !== undefined) {
    const events = await transaction(pool, async (tx) => {
      const endpoint = await holdActiveEndpoint(tx, endpointId)
      return await countIdle(tx, endpoint, [await readWantedEvent(tx, endpoint, event)])
    })
    return { events, isMore: false }
  }
  const from = failedSince ?? since ?? new Date()
  const chunks = walkLog(pool, { endpointId, since: from, selection: failedSince ? FAILED : ALL, use: countIdle })
  const count = { events: 0, isMore: false }
  let chunksLeft = COUNTED_CHUNKS
  for await (const { used, share } of chunks) {
    count.events += used
    chunksLeft -= 1
    if (chunksLeft === 0) return { ...count, isMore: share < 1 }
  }
  return count
}

/** The range to walk: positions above `after`, up to `last`, of events recorded from `since` and before `until`. */
type Range = { since: Date; until: Date | undefined; after: number; last: number; limit: number }

/** An event to post. Events of one subject are posted in order. */
type Wanted = Pick<PlacedEvent, 'position' | 'subjectId'>
/** `last`: the last position of this chunk; null if there are no more. */
type Chunk = { last: number | null; wanted: Wanted[] }
/** How the wanted events are read, and an upper bound of how many have to be looked at. */
type Selection = {
  read: (tx: Executor, endpoint: Endpoint, range: Range) => Promise<Chunk>
  count: (tx: Executor, endpoint: Endpoint, first: number, last: number, max: number) => Promise<number>
}

async function replayChunks(
  pool: Pool,
  endpointId: number,
  since: Date,
  selection: Selection,
  { onProgress = () => {}, record = async () => {}, ...options }: ReplayOptions,
): Promise<ReplayResult> {
  const result = { endpointId, replayed: 0, alreadyDue: 0 }
  let isRecorded = false
  const use: Walk['use'] = async (tx, endpoint, wanted) => {
    const made = await makeDue(tx, endpoint, wanted)
    const isResumed = wanted.length > 0 && (await endPause(tx, endpointId))
    if (!isRecorded && (made > 0 || isResumed)) {
      await record(tx)
      isRecorded = true
    }
    return made
  }
  for await (const { wanted, used, share } of walkLog(pool, { endpointId, since, selection, use, ...options })) {
    result.replayed += used
    result.alreadyDue += wanted - used
    onProgress({ replayed: result.replayed, share })
  }
  return result
}

/** `use` gets the events of each chunk in its transaction, and returns how many it changes or would change. */
type Walk = Pick<ReplayOptions, 'until' | 'maxEvents' | 'chunkRows'> & {
  endpointId: number
  since: Date
  selection: Selection
  use: (tx: Executor, endpoint: Endpoint, wanted: Wanted[]) => Promise<number>
}

async function* walkLog(
  pool: Pool,
  { endpointId, selection, use, maxEvents, chunkRows = CHUNK_ROWS, ...given }: Walk,
): AsyncGenerator<{ wanted: number; used: number; share: number }> {
  const [since, until] = [timeInIds(given.since), given.until && timeInIds(given.until)]
  const { first, last } = await transaction(pool, async (tx) => {
    const endpoint = await holdActiveEndpoint(tx, endpointId)
    const range = await findRange(tx, endpoint, since, until)
    if (maxEvents !== undefined && (await selection.count(tx, endpoint, range.first, range.last, maxEvents)) > maxEvents) {
      throw tooMany(maxEvents)
    }
    return range
  })
  for (let after: number | null = first - 1; after !== null && after < last; ) {
    const range: Range = { since, until, after, last, limit: chunkRows }
    const chunk = await transaction(pool, async (tx) => {
      // Checked for each chunk: the endpoint may be disabled or removed meanwhile.
      const endpoint = await holdActiveEndpoint(tx, endpointId)
      const { last, wanted } = await selection.read(tx, endpoint, range)
      return { last, wanted: wanted.length, used: await use(tx, endpoint, wanted) }
    })
    after = chunk.last
    yield { ...chunk, share: after === null ? 1 : (after - first + 1) / (last - first + 1) }
  }
}

function tooMany(maxEvents: number): Refusal {
  const reason = `The range has more than ${maxEvents} events: choose a later from, or an earlier to`
  return new Refusal(`${reason}.`, { code: 'RCS_INVALID_REQUEST', path: '/from', reason })
}

/**
 * The positions to start and end at. Events after this moment are posted anyway, so the end is at most the current head. Page ids begin with
 * their time; positions grow with it, except for pages that were written concurrently.
 */
async function findRange(db: Executor, { accountId }: Endpoint, since: Date, until?: Date): Promise<{ first: number; last: number }> {
  const { rows } = await db.query<{ isFuture: boolean; first: number | null; last: number | null }>(
    `select $2 > clock_timestamp() as "isFuture",
       (select min(last_position - event_count + 1) from (
          select last_position, event_count from log_pages where account_id = $1 and page_id >= uuid_v7_from($2) and last_position is not null
          order by page_id limit ${NEARLY_IN_ORDER_PAGES}
        ) as since) as first,
       (select max(last_position) from (
          select last_position from log_pages where account_id = $1 and page_id < uuid_v7_from($3) and last_position is not null
          order by page_id desc limit ${NEARLY_IN_ORDER_PAGES}
        ) as until) as last`,
    [accountId, since, until ?? null],
  )
  const { isFuture, first, last } = rows[0] as { isFuture: boolean; first: number | null; last: number | null }
  if (isFuture) {
    throw new Refusal(`The time ${since.toISOString()} is in the future; a replay must start in the past.`, {
      code: 'RCS_INVALID_REQUEST',
      path: '/from',
      reason: 'must be in the past',
    })
  }
  if (first === null) return { first: 1, last: 0 }
  return { first, last: until === undefined ? await readHead(db, accountId) : (last ?? 0) }
}

/** Walks the account's log. A chunk costs the same wherever it is and however few of its events are wanted. */
async function readWanted(tx: Executor, { accountId, types }: Endpoint, { since, until, after, last, limit }: Range): Promise<Chunk> {
  const pages = await readPages(tx, accountId, { after, last, limit })
  const isWithin = (time: Date) => time >= since && (until === undefined || time < until)
  const read = pages.flatMap((page) => (isWithin(timeOf(page.pageId)) ? eventsOf(page) : []))
  const wanted = read.filter(
    ({ position, kind }) =>
      position > after && position <= last && kind !== 'webhook.test' && (types?.some((wantedKind) => wantedKind === kind) ?? true),
  )
  return { last: pages.at(-1)?.lastPosition ?? null, wanted }
}

/** Walks the endpoint's deliveries, of which few may have failed. A delivery whose event is no longer in the log has nothing to post. */
async function readFailed(tx: Executor, endpoint: Endpoint, { since, until, after, last, limit }: Range): Promise<Chunk> {
  const { rows } = await tx.query<Wanted & { isWanted: boolean | null }>({
    name: 'read-failed-webhooks',
    text: `select d.position, d.subject_id as "subjectId", (d.due_at is null or d.attempts > 0) and (
          select p.page_id >= uuid_v7_from($5) and ($7::timestamptz is null or p.page_id < uuid_v7_from($7)) and p.last_position - p.event_count < d.position
          from log_pages p where p.account_id = $2 and p.last_position >= d.position order by p.last_position limit 1
        ) as "isWanted"
      from webhook_deliveries d
      where d.endpoint_id = $1 and d.account_id = $2 and d.position > $3 and d.position <= $4 order by d.position limit $6`,
    values: [endpoint.endpointId, endpoint.accountId, after, last, since, limit, until ?? null],
  })
  return { last: rows.at(-1)?.position ?? null, wanted: rows.filter(({ isWanted }) => isWanted) }
}

const ALL: Selection = { read: readWanted, count: async (_tx, _endpoint, first, last) => last - first + 1 }
const FAILED: Selection = {
  read: readFailed,
  count: async (tx, { endpointId }, first, last, max) => {
    const { rowCount } = await tx.query('select from webhook_deliveries where endpoint_id = $1 and position between $2 and $3 limit $4', [
      endpointId,
      first,
      last,
      max + 1,
    ])
    return rowCount ?? 0
  },
}

/**
 * Makes deliveries due now, and returns how many it changed. Skips deliveries that are already due, and deliveries that another statement has
 * locked: a result counts for its own attempt only. While it holds locks it waits for no other lock, except for a replay of the same events, which
 * locks them in the same order.
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
        update webhook_deliveries set attempts = 0, due_at = now(), generation = pg_current_xact_id()
        where endpoint_id = $1 and position = any (array(select position from idle))
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

/** Counts how many deliveries `makeDue` would change: all except deliveries that are already due. */
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
