import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { CARRIER, createSender, NO_LIMITS } from '../delivery/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { callerAt } from '../support/messages.ts'
import { startNetwork } from '../support/network.ts'
import { createDataDir, startHerald } from '../support/process.ts'
import { startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const { url, hotPool: pool } = await createTestDatabase()
const network = await startNetwork()
const arrivals = new Map<string, number>()
network.answer(({ path }) => {
  arrivals.set(new URL(path, 'http://network').searchParams.get('messageId') ?? '', performance.now())
  return { body: { name: path } }
})
const service = await startTestService(
  { HERALD_DATABASE_URL: url, ...NO_LIMITS },
  { findCarriers: async () => ({ rcs: [{ ...network.settings, name: CARRIER }], sms: undefined }) },
)
const caller = callerAt(service.url, await createSender(pool))

/** From the answer to a request until its message is at the network. */
async function delayMs(): Promise<number> {
  const messageId = await caller.accepted()
  const answeredAt = performance.now()
  const arrivedAt = await until('it is at the network', () => arrivals.get(messageId))
  await until('nothing is left to do', async () => (await pool.query('select from queue')).rowCount === 0)
  return arrivedAt - answeredAt
}

async function delays(count: number): Promise<number[]> {
  const all: number[] = []
  for (let turn = 0; turn < count; turn += 1) all.push(Math.round(await delayMs()))
  return all.toSorted((a, b) => a - b)
}

/**
 * A busy machine delays some messages, but not all of them. A service that hears nothing looks once a second, so
 * that half of its messages wait for 500 ms and more.
 */
function assertAwake(sorted: number[]): void {
  const median = sorted[Math.floor(sorted.length / 2)] as number
  assert.ok((sorted[0] as number) < 60 && median < 300, `${sorted}`)
}

/** The connection that listens: it is all that asks nothing but whether it is still there. */
async function listeners(): Promise<number[]> {
  const { rows } = await pool.query<{ pid: number }>(
    `select pid from pg_stat_activity where datname = current_database() and query in ('select 1', 'listen herald_queue') and pid <> pg_backend_pid()`,
  )
  return rows.map(({ pid }) => pid)
}

test('an idle service hands a message over within some tens of milliseconds of its answer; with its ear cut off within a second and a half, until it hears again', async (t) => {
  await delays(2)
  const awake = await delays(5)
  t.diagnostic(`after ${awake.join(', ')} ms`)
  assertAwake(awake)

  const [ear, ...others] = await until('it listens', async () => {
    const pids = await listeners()
    return pids.length > 0 ? pids : undefined
  })
  assert.deepEqual(others, [], 'only that one is cut')
  await pool.query('select pg_terminate_backend($1)', [ear])
  // Another one may be there before one looks.
  await until('it is gone', async () => !(await listeners()).includes(ear as number))
  const deaf = await delays(1)
  t.diagnostic(`with its ear cut off after ${deaf.join(', ')} ms`)
  assert.ok(Math.max(...deaf) < 1_500, `${deaf}`)

  await until('it listens again', async () => (await listeners()).length === 1)
  const again = await delays(5)
  t.diagnostic(`hearing again after ${again.join(', ')} ms`)
  assertAwake(again)
  assert.doesNotMatch(service.log(), /"level":"error"/)
})

/** Of all its threads, in milliseconds. */
function cpuMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  const ns = threads.map((thread) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]))
  return ns.reduce((sum, each) => sum + each, 0) / 1e6
}

const WINDOW_MS = 2_000

test('an idle process burns next to no CPU', { skip: process.platform !== 'linux' && 'it is read from /proc' }, async (t) => {
  const idle = await createTestDatabase()
  const dataDir = await createDataDir()
  const file = join(dataDir, 'carriers.json')
  const { name, ...google } = network.settings
  writeFileSync(file, JSON.stringify({ [name]: { type: 'google-rbm', ...google } }))
  const env = { HERALD_DATABASE_URL: idle.url, HERALD_DATA_DIR: dataDir, HERALD_CARRIERS: file }
  const { child } = await startHerald(env, [], ['serve', '--only', 'api,delivery,webhooks'])
  const pid = child.pid as number
  // What starting leaves to do (compiling, collecting garbage) is over after a while.
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
