import type { Executor, Pool } from '../db/pool.ts'
import { placeKey, readEventsAt } from '../events/pages.ts'
import { findEndpoint } from './endpoints.ts'
import { requireEvent } from './replay.ts'
import { isSuccess } from './schedule.ts'

/** One attempt to post an event. `eventId` and `type` are null if the event is no longer in the log. */
export type Attempt = {
  attemptId: string
  eventId: string | null
  type: string | null
  attempt: number
  attemptedAt: Date
  /** The status of the response. If there was no response, `error` says why. */
  status: number | null
  error: string | null
  durationMs: number
  /** The first KiB of the response. */
  response: string | null
  /** When the next attempt follows. Null unless this is the latest attempt to post the event. */
  nextAttemptAt: Date | null
}

type AttemptFilter = { eventId?: string | undefined; failedOnly?: boolean | undefined; limit: number }

export const ATTEMPT = 'position, attempt, attempted_at as "attemptedAt", status, error, duration_ms as "durationMs", response'

// The maximum number of rows that one statement reads. The matching rows may be few among millions, and a statement is cancelled after 3.5 s.
const CHUNK_ROWS = 20_000

/**
 * Lists attempts, newest first. Reads backwards in chunks until it has `limit` attempts, or has reached the oldest attempt or, for one event, the
 * time of the event.
 */
export async function listAttempts(
  pool: Pool,
  endpointId: number,
  { eventId, failedOnly = false, limit }: AttemptFilter,
  chunkRows = CHUNK_ROWS,
): Promise<Attempt[]> {
  const { accountId } = await findEndpoint(pool, endpointId)
  const event = eventId === undefined ? undefined : await requireEvent(pool, accountId, eventId)
  const attempts: Attempt[] = []
  let before: Date | 'infinity' = 'infinity'
  for (;;) {
    const filter = { position: event?.position ?? null, failedOnly, limit: limit - attempts.length }
    const { from, found } = await readChunkBefore(pool, { endpointId, accountId, before }, filter, chunkRows)
    attempts.push(...found)
    const isBeforeEvent = event !== undefined && from !== undefined && from < event.recordedAt
    if (from === undefined || isBeforeEvent || attempts.length >= limit) return attempts
    before = from
  }
}

type Filter = { position: number | null; failedOnly: boolean; limit: number }
type Chunk = { endpointId: number; accountId: number; from: Date | undefined; before: Date | 'infinity' }
type ChunkRead = { from: Date | undefined; found: Attempt[] }

async function readChunkBefore(db: Executor, range: Omit<Chunk, 'from'>, filter: Filter, chunkRows: number): Promise<ChunkRead> {
  const from = await startOfChunk(db, range.endpointId, range.before, chunkRows)
  return { from, found: await readChunk(db, { ...range, from }, filter) }
}

/** The time of the last row of a chunk; all rows of that time belong to the chunk. Undefined if the chunk is the last. */
async function startOfChunk(tx: Executor, endpointId: number, before: Date | 'infinity', rows: number): Promise<Date | undefined> {
  const { rows: start } = await tx.query<{ at: Date }>(
    `select attempted_at as at from webhook_attempts where endpoint_id = $1 and attempted_at < $2
     order by attempted_at desc offset $3 limit 1`,
    [endpointId, before, rows - 1],
  )
  return start[0]?.at
}

/** Reads the attempts of a chunk, newest first. */
export async function readChunk(
  tx: Executor,
  { endpointId, accountId, from, before }: Chunk,
  { position, failedOnly, limit }: Filter,
): Promise<Attempt[]> {
  const { rows } = await tx.query<AttemptRow>(
    `select ${ATTEMPT} from (
       select * from webhook_attempts
       where endpoint_id = $1 and account_id = $2 and attempted_at >= $3 and attempted_at < $4
         and ($5::bigint is null or position = $5) and not ($6 and coalesce(status between 200 and 299, false))
       order by attempted_at desc limit $7
     ) as a
     order by attempted_at desc, position desc`,
    [endpointId, accountId, from ?? '-infinity', before, position, failedOnly, limit],
  )
  return await toAttempts(tx, { endpointId, accountId }, rows)
}

export type AttemptRow = Omit<Attempt, 'attemptId' | 'eventId' | 'type' | 'nextAttemptAt'> & { position: number }
type Owner = { endpointId: number; accountId: number }

/** The fields that distinguish an attempt from the others of its endpoint. The status is 0 if there was no response. */
function attemptIdOf({ attemptedAt, position, attempt, durationMs, status }: AttemptRow): string {
  return ['wa', attemptedAt.getTime(), position, attempt, durationMs, status ?? 0].join('-')
}

/** Adds the ids, the ids and types of the events, and when the event is posted again. */
export async function toAttempts(tx: Executor, { endpointId, accountId }: Owner, rows: AttemptRow[]): Promise<Attempt[]> {
  const events = await readEventsAt(
    tx,
    rows.map((row) => ({ accountId, position: row.position })),
  )
  const nextAttempts = await readNextAttempts(tx, { endpointId, accountId }, rows)
  return rows.map((row) => {
    const { position, attempt, attemptedAt, status, error, durationMs, response } = row
    const { eventId = null, kind: type = null } = events.get(placeKey(accountId, position)) ?? {}
    const next = isSuccess(status) ? undefined : nextAttempts.get(position)
    const isLast = next?.attempts === attempt && (next.attemptedAt ?? attemptedAt).getTime() === attemptedAt.getTime()
    const nextAttemptAt = isLast ? next.at : null
    return { attemptId: attemptIdOf(row), eventId, type, attempt, attemptedAt, status, error, durationMs, response, nextAttemptAt }
  })
}

/** `attempts`: the number of the attempt that this one follows; `attemptedAt`: its time. */
type NextAttempt = { position: number; attempts: number; attemptedAt: Date | null; at: Date }

/** When the events of these attempts are due again, by position. A disabled endpoint gets none; a paused one, none before the end of its pause. */
async function readNextAttempts(tx: Executor, { endpointId, accountId }: Owner, rows: AttemptRow[]): Promise<Map<number, NextAttempt>> {
  const failed = rows.filter(({ status }) => !isSuccess(status))
  if (failed.length === 0) return new Map()
  const { rows: next } = await tx.query<NextAttempt>(
    `select d.position, d.attempts, d.attempted_at as "attemptedAt", greatest(d.due_at, e.paused_until)::timestamptz(3) as at
     from webhook_deliveries d join webhook_endpoints e on e.id = d.endpoint_id
     where d.endpoint_id = $1 and d.account_id = $2 and d.position = any ($3::bigint[]) and d.due_at is not null and e.status = 'ACTIVE'`,
    [endpointId, accountId, failed.map(({ position }) => position)],
  )
  return new Map(next.map((delivery) => [delivery.position, delivery]))
}
