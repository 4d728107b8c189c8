import { setTimeout as sleep } from 'node:timers/promises'
import type { Executor, Pool } from '../db/pool.ts'
import { OperatorError } from '../errors.ts'
import { eventsOf, type PlacedEvent, placeKey, readEventsAt, readPages } from '../events/pages.ts'
import { type EndpointTest, findEndpoint } from './endpoints.ts'
import { requireEvent } from './replay.ts'

/** One attempt to post an event. `eventId` and `type` are null if the event is no longer in the log. */
export type Attempt = {
  eventId: string | null
  type: string | null
  attempt: number
  attemptedAt: Date
  /** The status of the response. If there was no response, `error` says why. */
  status: number | null
  error: string | null
  durationMs: number
  /** The first KiB of the response. */
  answer: string | null
}

type AttemptFilter = { eventId?: string | undefined; failedOnly?: boolean | undefined; limit: number }

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

async function readChunk(
  tx: Executor,
  { endpointId, accountId, from, before }: Chunk,
  { position, failedOnly, limit }: Filter,
): Promise<Attempt[]> {
  const { rows } = await tx.query<Omit<Attempt, 'eventId' | 'type'> & { position: number }>(
    `select position, attempt, attempted_at as "attemptedAt", status, error, duration_ms as "durationMs", answer from (
       select * from webhook_attempts
       where endpoint_id = $1 and account_id = $2 and attempted_at >= $3 and attempted_at < $4
         and ($5::bigint is null or position = $5) and not ($6 and coalesce(status between 200 and 299, false))
       order by attempted_at desc limit $7
     ) as a
     order by attempted_at desc, position desc`,
    [endpointId, accountId, from ?? '-infinity', before, position, failedOnly, limit],
  )
  const events = await readEventsAt(
    tx,
    rows.map((row) => ({ accountId, position: row.position })),
  )
  return rows.map(({ position: at, ...attempt }) => {
    const event = events.get(placeKey(accountId, at))
    return { eventId: event?.eventId ?? null, type: event?.kind ?? null, ...attempt }
  })
}

export type TestOutcome = Attempt & { endpointId: number }

// Longer than the 15 s that one call may take.
const TEST_TIMEOUT_MS = 20_000
const POLL_MS = 100
const LOG_CHUNK_EVENTS = 5_000

/**
 * Waits for the first attempt of a test event. After the timeout, throws an error that says how far the event got; it is still posted once
 * a worker runs.
 */
export async function awaitTest(pool: Pool, test: EndpointTest, timeoutMs = TEST_TIMEOUT_MS): Promise<TestOutcome> {
  const deadline = performance.now() + timeoutMs
  let { after } = test
  let position: number | undefined
  for (;;) {
    if (position === undefined) {
      const read = await readLog(pool, test, after)
      position = read.position
      after = read.last
    }
    const outcome = position === undefined ? undefined : await readFirstAttempt(pool, test, position)
    if (outcome !== undefined) return { endpointId: test.endpointId, ...outcome }
    if (performance.now() > deadline) throw notAttempted(test.endpointId, position !== undefined, timeoutMs)
    await sleep(POLL_MS)
  }
}

function notAttempted(endpointId: number, isInLog: boolean, timeoutMs: number): OperatorError {
  const within = `within ${timeoutMs / 1_000} s`
  return new OperatorError(
    isInLog
      ? `The test was not posted ${within}. Is "herald serve" running with the role webhooks? Earlier events go first; see "herald webhook attempts ${endpointId}".`
      : `No process claimed the test ${within}: is "herald serve" running? The test is posted once it runs.`,
  )
}

/**
 * Reads the next pages of the log. Returns the position of the test's event if they contain it, and their last position. No event ever
 * appears behind a position that was read.
 */
async function readLog(tx: Executor, { endpointId, accountId, occurredAt }: EndpointTest, after: number) {
  const pages = await readPages(tx, accountId, { after, last: Number.MAX_SAFE_INTEGER, limit: LOG_CHUNK_EVENTS })
  const isTest = ({ kind, occurredAt: at, data }: PlacedEvent) =>
    kind === 'webhook.test' && at.getTime() === occurredAt.getTime() && data === JSON.stringify({ endpointId })
  const test = pages.flatMap(eventsOf).find((event) => event.position > after && isTest(event))
  return { last: pages.at(-1)?.lastPosition ?? after, position: test?.position }
}

/** Reads attempts only once the delivery shows one: the endpoint may have many thousands of attempts since the test. */
async function readFirstAttempt(tx: Executor, test: EndpointTest, position: number): Promise<Attempt | undefined> {
  const { endpointId, accountId, occurredAt } = test
  const { rowCount } = await tx.query({
    name: 'find-untried-webhook',
    text: 'select from webhook_deliveries where endpoint_id = $1 and account_id = $2 and position = $3 and attempts = 0',
    values: [endpointId, accountId, position],
  })
  if (rowCount === 1) return undefined
  const chunk = { endpointId, accountId, from: occurredAt, before: 'infinity' } as const
  const attempts = await readChunk(tx, chunk, { position, failedOnly: false, limit: 10 })
  return attempts.at(-1)
}
