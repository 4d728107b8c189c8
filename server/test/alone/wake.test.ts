import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createSender, NO_LIMITS, sendUntilAccepted } from '../delivery/support.ts'
import { CARRIER } from '../delivery/worker.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { callerAt } from '../support/messages.ts'
import { startNetwork } from '../support/network.ts'
import { createDataDir, startHerald } from '../support/process.ts'
import { startTestService } from '../support/service.ts'
import { watchStalls } from '../support/stalls.ts'
import { until } from '../support/until.ts'

const { url, hotPool: pool } = await createTestDatabase()
const network = await startNetwork()
const arrivals = new Map<string, number>()
network.respondWith(({ path }) => {
  arrivals.set(new URL(path, 'http://network').searchParams.get('messageId') ?? '', performance.now())
  return { body: { name: path } }
})
const env = { HERALD_DATABASE_URL: url, ...NO_LIMITS }
const findCarriers = async () => ({ rcs: [{ ...network.settings, name: CARRIER }], sms: undefined })
// Two services, since a process that accepts and delivers sends its messages without an announcement.
const api = await startTestService(env, { roles: ['api'], findCarriers })
const delivery = await startTestService(env, { roles: ['delivery'], findCarriers })
const caller = callerAt(api.url, await createSender(pool))

/** From the response to a request until its message is at the network. */
async function delayMs(): Promise<number> {
  const { messageId } = await sendUntilAccepted(caller, {})
  const respondedAt = performance.now()
  const arrivedAt = await until('it is at the network', () => arrivals.get(messageId))
  await until('the queue is empty', async () => (await pool.query('select from queue')).rowCount === 0)
  return arrivedAt - respondedAt
}

/** The delays of five messages, in order, and how much a machine that stood still may have delayed each: ten steps. */
async function measure(): Promise<{ delays: number[]; allowedMs: number }> {
  const stalls = watchStalls(pool)
  const delays: number[] = []
  while (delays.length < 5) delays.push(Math.round(await delayMs()))
  return { delays: delays.toSorted((a, b) => a - b), allowedMs: 10 * (await stalls.end()) }
}

/** A worker without notifications polls once a second, so half of its messages would wait for 500 ms or more. */
function assertAwake({ delays, allowedMs }: Awaited<ReturnType<typeof measure>>): void {
  const [first, , median] = delays as [number, number, number]
  assert.ok(first < 60 + allowedMs && median < 300 + allowedMs, `${delays} ms, ${allowedMs} ms allowed`)
}

/** The LISTEN connections: no other connection runs these statements. */
async function listeners(): Promise<number[]> {
  const { rows } = await ownerOf(pool).query<{ pid: number }>(
    `select pid from pg_stat_activity where datname = current_database() and query in ('select 1', 'listen herald_queue') and pid <> pg_backend_pid()`,
  )
  return rows.map(({ pid }) => pid)
}

test('a worker sends a message at its announcement, also after the LISTEN connection was lost', async (t) => {
  await measure()
  const awake = await measure()
  t.diagnostic(`after ${awake.delays.join(', ')} ms`)
  assertAwake(awake)

  const [listener, ...others] = await until('the worker listens', async () => {
    const pids = await listeners()
    return pids.length > 0 ? pids : undefined
  })
  assert.deepEqual(others, [])
  await ownerOf(pool).query('select pg_terminate_backend($1)', [listener])
  await until('the LISTEN connection is lost', async () => !(await listeners()).includes(listener as number))
  t.diagnostic(`after the loss of the LISTEN connection after ${Math.round(await delayMs())} ms`)

  await until('the worker listens again', async () => (await listeners()).length === 1)
  const again = await measure()
  t.diagnostic(`listening again after ${again.delays.join(', ')} ms`)
  assertAwake(again)
  for (const { log } of [api, delivery]) assert.doesNotMatch(log(), /"level":"error"/)
})

/** The CPU time of all threads of a process, in milliseconds. */
function cpuMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  const ns = threads.map((thread) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]))
  return ns.reduce((sum, each) => sum + each, 0) / 1e6
}

const WINDOW_MS = 2_000

test('an idle process uses less than 3 % of a core', { skip: process.platform !== 'linux' && 'it is read from /proc' }, async (t) => {
  const idle = await createTestDatabase()
  const dataDir = await createDataDir()
  const file = join(dataDir, 'carriers.json')
  const { name, ...google } = network.settings
  writeFileSync(file, JSON.stringify({ [name]: { type: 'google-rbm', ...google } }))
  const idleEnv = { HERALD_DATABASE_URL: idle.url, HERALD_DATA_DIR: dataDir, HERALD_CARRIERS: file }
  const { child } = await startHerald(idleEnv, [], ['serve', '--only', 'api,delivery,webhooks'])
  const pid = child.pid as number
  // The work of the start (compilation, garbage collection) ends after a while.
  const shares: number[] = []
  await until('it is idle', async () => {
    const [before, startedAt] = [cpuMs(pid), performance.now()]
    await until('the window is over', () => performance.now() > startedAt + WINDOW_MS)
    shares.push(((cpuMs(pid) - before) / (performance.now() - startedAt)) * 100)
    return (shares.at(-1) as number) < 3 || shares.length === 4
  })
  t.diagnostic(`${shares.map((share) => share.toFixed(2)).join(' %, ')} % of a core`)
  assert.ok((shares.at(-1) as number) < 3, `${shares}`)
})
