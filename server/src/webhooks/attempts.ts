import { setTimeout as sleep } from 'node:timers/promises'
import type { Executor, Pool } from '../db/pool.ts'
import { OperatorError } from '../errors.ts'
import { eventsOf, type PlacedEvent, placeKey, readEventsAt, readPages } from '../events/pages.ts'
import { type EndpointTest, findEndpoint } from './endpoints.ts'
import { requireEvent } from './replay.ts'

/** One try to post an event. `eventId` and `type` are null where the event is no longer in the log. */
export type Attempt = {
  eventId: string | null
  type: string | null
  attempt: number
  attemptedAt: Date
  /** The answer's; where there was none, `error` says why. */
  status: number | null
  error: string | null
  durationMs: number
  /** Its first KiB. */
  answer: string | null
}

export type AttemptFilter = { eventId?: string | undefined; failedOnly?: boolean | undefined; limit: number }

// What one statement reads at the most. Those wanted can be few among millions, and a statement ends after 3.5 s.
const PORTION_ROWS = 20_000

/** The newest first. Goes back in time portion by portion, until there are enough of them or no more; those of one event to its begin. */
export async function listAttempts(
  pool: Pool,
  endpointId: number,
  { eventId, failedOnly = false, limit }: AttemptFilter,
  portionRows = PORTION_ROWS,
): Promise<Attempt[]> {
  const { accountId } = await findEndpoint(pool, endpointId)
  const event = eventId === undefined ? undefined : await requireEvent(pool, accountId, eventId)
  const attempts: Attempt[] = []
  let before: Date | 'infinity' = 'infinity'
  for (;;) {
    const filter = { position: event?.position ?? null, failedOnly, limit: limit - attempts.length }
    const { from, found } = await readBack(pool, { endpointId, accountId, before }, filter, portionRows)
    attempts.push(...found)
    const isBeforeEvent = event !== undefined && from !== undefined && from < event.recordedAt
    if (from === undefined || isBeforeEvent || attempts.length >= limit) return attempts
    before = from
  }
}

type Filter = { position: number | null; failedOnly: boolean; limit: number }
type Portion = { endpointId: number; accountId: number; from: Date | undefined; before: Date | 'infinity' }
type Back = { from: Date | undefined; found: Attempt[] }

async function readBack(db: Executor, place: Omit<Portion, 'from'>, filter: Filter, portionRows: number): Promise<Back> {
  const from = await beginOfPortion(db, place.endpointId, place.before, portionRows)
  return { from, found: await readPortion(db, { ...place, from }, filter) }
}

/** The time of the last row of a portion, with which all rows of the same time belong to it; undefined where the portion is the last. */
async function beginOfPortion(tx: Executor, endpointId: number, before: Date | 'infinity', rows: number): Promise<Date | undefined> {
  const { rows: begin } = await tx.query<{ at: Date }>(
    `select attempted_at as at from webhook_attempts where endpoint_id = $1 and attempted_at < $2
     order by attempted_at desc offset $3 limit 1`,
    [endpointId, before, rows - 1],
  )
  return begin[0]?.at
}

async function readPortion(
  tx: Executor,
  { endpointId, accountId, from, before }: Portion,
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

// The longest that a call may take is 15 s.
const PATIENCE_MS = 20_000
const LOOK_EVERY_MS = 100
const LOG_PORTION_EVENTS = 5_000

/** Waits for what comes of a test. Where nothing does, an error says how far it got; it goes out all the same once a worker is there. */
export async function awaitTest(pool: Pool, test: EndpointTest, patienceMs = PATIENCE_MS): Promise<TestOutcome> {
  const giveUpAt = performance.now() + patienceMs
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
    if (performance.now() > giveUpAt) throw notTaken(test.endpointId, position !== undefined, patienceMs)
    await sleep(LOOK_EVERY_MS)
  }
}

function notTaken(endpointId: number, isInLog: boolean, patienceMs: number): OperatorError {
  const within = `within ${patienceMs / 1_000} s`
  return new OperatorError(
    isInLog
      ? `The test was not posted ${within}: others that are due go first, or it is on its way; "herald webhook attempts ${endpointId}" will show it.`
      : `No worker took the test up ${within}: is "herald serve" running, with the role webhooks? It is posted once one runs.`,
  )
}

/** The next pages of the log: where they have the test's event, and how far they go. Nothing ever appears behind a place that was read. */
async function readLog(tx: Executor, { endpointId, accountId, occurredAt }: EndpointTest, after: number) {
  const pages = await readPages(tx, accountId, { after, last: Number.MAX_SAFE_INTEGER, limit: LOG_PORTION_EVENTS })
  const isTest = ({ kind, occurredAt: at, data }: PlacedEvent) =>
    kind === 'webhook.test' && at.getTime() === occurredAt.getTime() && data === JSON.stringify({ endpointId })
  const test = pages.flatMap(eventsOf).find((event) => event.position > after && isTest(event))
  return { last: pages.at(-1)?.lastPosition ?? after, position: test?.position }
}

/** Looks through the endpoint's attempts since then, which may be many thousands, only once there is one: it has changed the delivery. */
async function readFirstAttempt(tx: Executor, test: EndpointTest, position: number): Promise<Attempt | undefined> {
  const { endpointId, accountId, occurredAt } = test
  const { rowCount } = await tx.query({
    name: 'find-untried-webhook',
    text: 'select from webhook_deliveries where endpoint_id = $1 and account_id = $2 and position = $3 and attempts = 0',
    values: [endpointId, accountId, position],
  })
  if (rowCount === 1) return undefined
  const portion = { endpointId, accountId, from: occurredAt, before: 'infinity' } as const
  const attempts = await readPortion(tx, portion, { position, failedOnly: false, limit: 10 })
  return attempts.at(-1)
}
