import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, type TestContext } from 'node:test'
import { Registry } from 'prom-client'
import { createAccount } from '../../src/accounts/accounts.ts'
import { createHotPool, type Pool } from '../../src/db/pool.ts'
import { OperatorError } from '../../src/errors.ts'
import type { EventKind } from '../../src/events/kinds.ts'
import { createLogger } from '../../src/http/log.ts'
import { enableEndpoint } from '../../src/webhooks/change-endpoint.ts'
import { createDispatcher } from '../../src/webhooks/dispatcher.ts'
import { addEndpoint } from '../../src/webhooks/endpoints.ts'
import { createWebhookMetrics } from '../../src/webhooks/metrics.ts'
import { replayAll } from '../../src/webhooks/replay.ts'
import { ownerOf } from '../support/database.ts'
import { keyring } from '../support/keyring.ts'
import { LOGGED_EVENTS, routeUntilDone } from '../support/log.ts'
import { until } from '../support/until.ts'

// What the tests of webhooks share: endpoints that respond as a test wants, events, and workers.

export type Arrived = { path: string; headers: IncomingHttpHeaders; body: string; event: any; at: number }
/** Returns a status, or undefined if it writes the response itself or never responds. */
type Handler = (arrived: Arrived, response: ServerResponse) => Promise<number | undefined> | number | undefined

export type Sink = { url: string; arrived: Arrived[]; respondWith: (handler: Handler) => void; subjects: () => string[] }

export async function startSink(first: Handler = () => 204): Promise<Sink> {
  const arrived: Arrived[] = []
  let handler = first
  const server = createServer(async (request, response) => {
    const { url: path = '', headers } = request
    const body = await text(request)
    const one = { path, headers, body, event: JSON.parse(body), at: performance.now() }
    arrived.push(one)
    const status = await handler(one, response)
    if (status !== undefined) response.writeHead(status).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  after(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    arrived,
    respondWith: (next) => {
      handler = next
    },
    subjects: () => arrived.map(({ event }) => event.data.n),
  }
}

export async function newAccount(pool: Pool): Promise<number> {
  return (await createAccount(pool, 'Test', ['rcs'])).accountId
}

/** An endpoint of an account of its own, at the sink. */
export async function endpointAt(pool: Pool, sink: Sink, kinds?: EventKind[]) {
  return await addEndpoint(pool, { accountId: await newAccount(pool), url: sink.url, types: kinds }, keyring)
}

const EVENTS_PER_PAGE = 100

/** Writes events of one account, in pages, without routing them. Their data has `n` from 1; they are about `subjects` messages in turn. */
export async function writeMany(
  pool: Pool,
  accountId: number,
  count: number,
  { kind = 'message.sent', subjects = count } = {},
): Promise<void> {
  await pool.query(
    `insert into log_pages (account_id, event_count, events)
     select $1, count(*), json_agg(json_build_array($2::text, now()::timestamptz(3), 'subject-' || n % $4::int, null, null, null, null, null,
       json_build_object('n', n)) order by n)
     from generate_series(1, $3::int) as n group by (n - 1) / ${EVENTS_PER_PAGE} order by (n - 1) / ${EVENTS_PER_PAGE}`,
    [accountId, kind, count, subjects],
  )
}

export async function emitRouted(
  pool: Pool,
  accountId: number,
  count: number,
  options: { kind?: string; subjects?: number } = {},
): Promise<void> {
  await writeMany(pool, accountId, count, options)
  await routeUntilDone(pool)
}

/** Writes an event whose transaction began this long ago (an SQL interval), without routing it. */
export async function writeAgo(pool: Pool, accountId: number, ago: string): Promise<void> {
  await pool.query(
    `insert into log_pages (account_id, page_id, event_count, events)
     select $1, overlay(gen_random_uuid()::text placing left(uuid_v7_from(now() - $2::interval)::text, 15) from 1 for 15)::uuid, 1,
       json_build_array(json_build_array('message.sent', now()::timestamptz(3), null, null, null, null, null, null, '{}'::json))`,
    [accountId, ago],
  )
}

/**
 * Enables an endpoint and runs the replay that this names. Returns the kinds of events that it makes due, how many were due before, and how
 * many hours ago the replay begins.
 */
export async function missedBy(pool: Pool, endpointId: number): Promise<{ kinds: string[]; alreadyDue: number; hoursAgo: number }> {
  const { missedSince } = await enableEndpoint(pool, endpointId)
  assert.ok(missedSince !== null)
  const due = `select d.position, kind from webhook_deliveries d join ${LOGGED_EVENTS} as e using (account_id, position)
    where endpoint_id = $1 and due_at <= now() order by d.position`
  const before = new Set((await pool.query(due, [endpointId])).rows.map(({ position }) => position))
  const { alreadyDue } = await replayAll(pool, endpointId, missedSince)
  const { rows } = await pool.query(due, [endpointId])
  const kinds = rows.filter(({ position }) => !before.has(position)).map(({ kind }) => kind)
  return { kinds, alreadyDue, hoursAgo: Math.round((Date.now() - missedSince.getTime()) / 3_600_000) }
}

/** A worker with a pool of its own, as in another process, stopped at the end of the test. */
export function startWorker(t: TestContext, url: string, log = createLogger('silent'), keys = keyring) {
  const pool = createHotPool({ connectionString: url }, () => {})
  const dispatcher = createDispatcher({
    pool,
    keyring: keys,
    logger: log,
    metrics: createWebhookMetrics(new Registry()),
    hosts: 'any',
  })
  let stopped: Promise<void> | undefined
  async function end(): Promise<void> {
    await dispatcher.stop()
    await pool.end()
  }
  function stop(): Promise<void> {
    stopped ??= end()
    return stopped
  }
  t.after(stop)
  return { ...dispatcher, stop }
}

export async function isDone(pool: Pool, endpointId: number): Promise<boolean> {
  const { rowCount } = await pool.query('select from webhook_deliveries where endpoint_id = $1', [endpointId])
  return rowCount === 0
}

/** What is still to be posted, in the order it is due. `inS`: seconds until then, null if all attempts failed. */
export async function deliveriesOf(pool: Pool, endpointId: number): Promise<{ n: number; attempts: number; inS: number | null }[]> {
  const { rows } = await pool.query(
    `select (e.data ->> 'n')::int as n, d.attempts, extract(epoch from d.due_at - now())::float8 as "inS"
     from webhook_deliveries d join ${LOGGED_EVENTS} as e using (account_id, position) where d.endpoint_id = $1 order by d.due_at, d.position`,
    [endpointId],
  )
  return rows
}

/** Makes everything due that waits for its next attempt. */
export async function makeDue(pool: Pool, endpointId: number): Promise<void> {
  await pool.query('update webhook_deliveries set due_at = now() where endpoint_id = $1 and due_at > now()', [endpointId])
}

/** The message of the operator error with which the work fails. */
export async function operatorError(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => assert.fail('it did not fail'),
    (error) => error,
  )
  assert.ok(error instanceof OperatorError, `${error.stack}`)
  return error.message
}

/**
 * Asserts that `work` takes less than `limit` times as long as `yardstick`. Other processes only add time, so the quickest of several alternating
 * measurements counts. Stops as soon as the ratio is below the limit.
 */
export async function assertRatio(work: () => Promise<number>, yardstick: () => Promise<number>, limit: number): Promise<void> {
  let [workMs, yardstickMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let pair = 0; pair < 40 && !(pair >= 5 && workMs < limit * yardstickMs); pair += 1) {
    yardstickMs = Math.min(yardstickMs, await yardstick())
    workMs = Math.min(workMs, await work())
  }
  assert.ok(workMs < limit * yardstickMs, `${workMs} ms, more than ${limit} times ${yardstickMs} ms`)
}

/** How many sessions of the database wait for a lock. */
export async function countBlocked(pool: Pool): Promise<number> {
  const { rowCount } = await ownerOf(pool).query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return rowCount ?? 0
}

/** A lock for `startBlocked`: works can read the endpoints, but not add one. */
export const NO_INSERTS = 'lock table webhook_endpoints in share row exclusive mode'

/** Starts the works while a transaction holds a lock. Releases it once all of them wait for a lock, or have ended without. */
export async function startBlocked<T>(pool: Pool, lock: string, works: (() => Promise<T>)[]): Promise<PromiseSettledResult<T>[]> {
  const holder = await pool.connect()
  await holder.query('begin')
  await holder.query(lock)
  let ended = 0
  const settled = Promise.allSettled(works.map((work) => work().finally(() => (ended += 1))))
  await until('all wait for the lock, or for none', async () => (await countBlocked(pool)) === works.length || ended === works.length)
  await holder.query('commit')
  holder.release()
  return await settled
}

/** Kills the connections of the work, which uses a pool of its own, after it has begun. Fails if the work ends before that. */
export async function killMidway(
  url: string,
  pool: Pool,
  work: (own: Pool) => Promise<unknown>,
  hasBegun: () => Promise<boolean>,
): Promise<void> {
  const own = createHotPool({ connectionString: url }, () => {})
  let isKilled = false
  const working = work(own).then(
    () => assert.fail('the work ended too soon'),
    () => {
      isKilled = true
    },
  )
  await until('the work has begun', hasBegun)
  await until('the work is killed', async () => {
    await ownerOf(pool).query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle'`,
    )
    return isKilled
  })
  await working
  await own.end()
}
