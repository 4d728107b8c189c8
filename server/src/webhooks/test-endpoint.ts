import { setTimeout as sleep } from 'node:timers/promises'
import type { RecordChange } from '../audit/record.ts'
import { type Executor, type Pool, transaction } from '../db/pool.ts'
import { recordEvent } from '../events/changes.ts'
import { eventsOf, type PlacedEvent, readHead, readPages } from '../events/pages.ts'
import { Refusal } from '../refusal.ts'
import { type Attempt, readChunk } from './attempts.ts'
import { endPause, findEndpoint, holdActiveEndpoint } from './endpoints.ts'

/** `occurredAt` identifies the event in the log once the router has placed it. */
type EndpointTest = { endpointId: number; accountId: number; occurredAt: Date; after: number }

/** Emits a test event for this endpoint only. `after`: the position in the log to read from. */
export async function testEndpoint(pool: Pool, endpointId: number, record: RecordChange = async () => {}): Promise<EndpointTest> {
  return await transaction(pool, async (tx) => {
    const { accountId } = await holdActiveEndpoint(tx, endpointId)
    const { rows } = await tx.query<{ occurredAt: Date }>('select now()::timestamptz(3) as "occurredAt"')
    const after = await readHead(tx, accountId)
    await endPause(tx, endpointId)
    await recordEvent(tx, { accountId, kind: 'webhook.test', data: { endpointId } })
    await record(tx)
    return { endpointId, accountId, after, ...(rows[0] as { occurredAt: Date }) }
  })
}

export type TestOutcome = Attempt & { endpointId: number }

// Longer than the 15 s that one call may take.
const TEST_TIMEOUT_MS = 20_000
const POLL_MS = 100
const RETRY_AFTER_SECONDS = 10
const LOG_CHUNK_EVENTS = 5_000

type Waiting = { timeoutMs?: number; signal?: AbortSignal }

/**
 * Waits for the first attempt of a test event. After the timeout, throws an error that says how far the event got; it is still posted once
 * a worker runs. `signal`: aborted when the caller no longer waits.
 */
export async function awaitTest(
  pool: Pool,
  test: EndpointTest,
  { timeoutMs = TEST_TIMEOUT_MS, signal }: Waiting = {},
): Promise<TestOutcome> {
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
    // Throws if the endpoint was removed meanwhile: nothing will be posted.
    await findEndpoint(pool, test.endpointId)
    if (performance.now() > deadline) throw notAttempted(test.endpointId, position !== undefined, timeoutMs)
    await sleep(POLL_MS, undefined, { signal })
  }
}

function notAttempted(endpointId: number, isInLog: boolean, timeoutMs: number): Refusal {
  const within = `within ${timeoutMs / 1_000} s`
  return new Refusal(
    isInLog
      ? `The test was not posted ${within}. Is "herald serve" running with the role webhooks? Earlier events go first; see "herald webhook attempts ${endpointId}".`
      : `No process claimed the test ${within}: is "herald serve" running? The test is posted once it runs.`,
    {
      code: 'RCS_UNAVAILABLE',
      reason: `The test was not posted ${within}, since earlier events go first or no process posts events; it is posted later.`,
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    },
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
  const test = pages.flatMap((page) => eventsOf(page)).find((event) => event.position > after && isTest(event))
  return { last: pages.at(-1)?.lastPosition ?? after, position: test?.position }
}

/** The endpoint may have many thousands of attempts since the test. Read them only once the delivery shows an attempt. */
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
