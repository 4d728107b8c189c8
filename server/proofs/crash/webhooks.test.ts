import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createPool, isUnavailable } from '../../src/db/pool.ts'
import { eventBody } from '../../src/events/pages.ts'
import { addEndpoint } from '../../src/webhooks/endpoints.ts'
import { assertAllCounted } from '../../test/support/counted.ts'
import { keyring } from '../../test/support/keyring.ts'
import { callerAt, newKey } from '../../test/support/messages.ts'
import { createDataDir, postmasterPid, startHerald } from '../../test/support/process.ts'
import { startSimulator } from '../../test/support/simulator.ts'
import { until } from '../../test/support/until.ts'
import { findDisordered, findMisplaced, type Logged, readLog, readPlaces } from '../log.ts'
import {
  createRandom,
  endLeases,
  isFull,
  kill,
  type Node,
  nextRecipient,
  say,
  seconds,
  sendReceiptsTo,
  settingsFor,
  startNode,
  untilDelivered,
} from './support.ts'
import { assertAllInTheLog, assertArrived, assertAttempts, assertInOrder, countRepeated } from './webhook-checks.ts'
import { startSink } from './webhook-sink.ts'

const KILLS = isFull ? 60 : 8
const FREEZES = isFull ? 5 : 1
const DATABASE_KILLS = isFull ? 5 : 1
// Sent for as long as something is killed. Each has three events, for two endpoints.
const MESSAGES_A_SECOND = 20
// A worker's life, from its first request on. It begins at once with what the one before has left.
const LONGEST_LIFE_MS = 1_500
// In the full run, nobody takes up the endpoints of one that was killed before its lease has ended, after 10 s.
const REQUEST_TIMEOUT_MS = isFull ? 12_000 : 3_000
const FAILURE_RATE = 0.1
const LONGEST_ANSWER_MS = 40
// At the most, calls to one endpoint under way in a process.
const WINDOW = 64
const TIMEOUT_MS = isFull ? 600_000 : 60_000

const random = createRandom()
const simulator = await startSimulator()
const dataDir = await createDataDir()
const settings = await settingsFor(simulator)
const service = await startHerald({ ...settings, HERALD_DATA_DIR: dataDir }, undefined, ['serve', '--only', 'api,delivery'])
await sendReceiptsTo(simulator, service.url)
const databaseUrl = `postgres://herald@localhost/herald?host=${encodeURIComponent(lockFileLine(4))}`
const pool = createPool({ connectionString: databaseUrl }, () => {})
after(() => pool.end())
const { accountId, integrationKey, secret, authorization } = JSON.parse(readFileSync(join(dataDir, 'demo.json'), 'utf8'))
const caller = callerAt(service.url, { accountId, integrationKey, secret, authorization, agentId: 'demo-single' })
const sink = await startSink({ random, failureRate: FAILURE_RATE, longestAnswerMs: LONGEST_ANSWER_MS })
after(sink.close)

type Subscription = { path: string; endpointId: number; wants: (kind: string) => boolean }
const subscriptions: Subscription[] = [await subscribe('/all'), await subscribe('/some', ['message.delivered', 'message.read'])]

function lockFileLine(line: number): string {
  return readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[line] ?? ''
}

async function subscribe(path: string, kinds?: ('message.delivered' | 'message.read')[]): Promise<Subscription> {
  const endpoint = await addEndpoint(pool, { accountId, url: sink.url(path), kinds }, keyring)
  sink.trust(path, endpoint.secret)
  return { path, endpointId: endpoint.endpointId, wants: (kind) => kinds?.some((wanted) => wanted === kind) ?? true }
}

/** Again until the database is there. */
async function persist<T>(work: () => Promise<T>): Promise<T> {
  return await until('the database is there', async () => {
    try {
      return { value: await work() }
    } catch (error) {
      if (!isUnavailable(error)) throw error
      return undefined
    }
  }).then(({ value }) => value)
}

const alive = new Set<Node>()
// Each may cost an endpoint one window of calls whose results are not written, or are another's to write: so many may come twice.
let upsets = 0

async function startWorker(): Promise<Node> {
  const env = { ...settings, HERALD_DATABASE_URL: databaseUrl, HERALD_WEBHOOK_ALLOW_PRIVATE: 'true' }
  const worker = await startNode(env, 'webhooks')
  alive.add(worker)
  return worker
}

async function killWorker(worker: Node): Promise<void> {
  await kill(worker)
  alive.delete(worker)
  upsets += 1
  await endEndpointLeases()
}

/** The full run waits until they end by themselves. Whoever is alive loses its endpoints with the dead one, and posts what it has read. */
async function endEndpointLeases(): Promise<void> {
  if (isFull) return
  upsets += alive.size
  await persist(() => pool.query(`update webhook_endpoints set leased_until = '-infinity'`))
}

function countArrivals(): number {
  return [...sink.arrivals.values()].reduce((sum, { length }) => sum + length, 0)
}

/** Until requests come, or it is clear that another has the endpoints. */
async function untilRequests(): Promise<void> {
  const before = countArrivals()
  const deadline = performance.now() + REQUEST_TIMEOUT_MS
  await until('requests come', () => countArrivals() > before || performance.now() > deadline)
}

// Until all is over, things go on beside what is killed.
let isSending = true
let isOver = false

/** Whatever is answered, or not: the same key again until it is accepted. */
async function sendMessages(): Promise<number> {
  let sent = 0
  for (; isSending; sent++) {
    const key = newKey()
    const body = caller.request({ recipient: nextRecipient() })
    await until('it is accepted', async () => (await caller.send(key, body)).status === 202)
    await sleep((random() * 2_000) / MESSAGES_A_SECOND)
  }
  return sent
}

/** Retries come after 5 s, 5 min and more: time moves by data. */
async function hasten(): Promise<void> {
  while (!isOver) {
    await persist(() => pool.query('update webhook_deliveries set due_at = now() where due_at > now()'))
    await sleep(200)
  }
}

/** Follows the feed by pages of ever another length, from where it was. */
async function follow(): Promise<unknown[]> {
  const items: unknown[] = []
  for (let after = ''; ; ) {
    const hasEnded = isOver
    const answer = await caller.ask('GET', `/events?limit=${1 + Math.floor(random() * 40)}${after}`)
    if (answer.status === 503) continue
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    items.push(...answer.body.items)
    after = `&after=${answer.body.nextCursor}`
    if (hasEnded && !answer.body.hasMore) return items
    if (!answer.body.hasMore) await sleep(20)
  }
}

/** Two rows of workers, each killed at a random moment of its life; at times one of them has the endpoints, at times the other. */
async function killWorkers(): Promise<void> {
  let left = KILLS
  async function row(): Promise<void> {
    for (; left > 0; ) {
      left -= 1
      const worker = await startWorker()
      await untilRequests()
      await sleep(random() * LONGEST_LIFE_MS)
      await killWorker(worker)
    }
  }
  await Promise.all([row(), row()])
  say(`${KILLS} workers killed: ${countArrivals()} requests so far`)
}

async function killDatabase(): Promise<void> {
  const worker = await startWorker()
  await untilRequests()
  await sleep(random() * LONGEST_LIFE_MS)
  const killedAt = performance.now()
  process.kill(postmasterPid(dataDir) as number, 'SIGKILL')
  // A result that the database had, and whose answer was lost, is written twice; its event comes once.
  upsets += 1
  await until('the database is gone', () =>
    pool.query('select').then(
      () => false,
      () => true,
    ),
  )
  await persist(() => pool.query('select'))
  say(`the database was killed, and is back after ${seconds(performance.now() - killedAt)}`)
  if (!isFull) await persist(() => endLeases(pool))
  await untilRequests()
  assert.equal(worker.child.exitCode, null, 'the worker has lived through it')
  await killWorker(worker)
}

async function readLeases(): Promise<Set<string>> {
  const { rows } = await pool.query<{ lease: string }>('select lease from webhook_endpoints where leased_until > now()')
  return new Set(rows.map(({ lease }) => lease))
}

/** Stops a worker amid its calls, until another has its endpoints and has posted what it had; then lets it go on. */
async function freezeWorker(): Promise<void> {
  const frozen = await startWorker()
  await until('it is amid calls', async () => sink.underWay() > 1 && (await readLeases()).size === 1, TIMEOUT_MS)
  frozen.child.kill('SIGSTOP')
  const leases = await readLeases()
  const other = await startWorker()
  await endEndpointLeases()
  await until('the other has the endpoints', async () => (await readLeases()).isDisjointFrom(leases) && (await readLeases()).size === 1)
  await untilRequests()
  frozen.child.kill('SIGCONT')
  upsets += 1
  say('a worker went on after its lease had ended and another had its endpoints')
  await sleep(random() * LONGEST_LIFE_MS)
  await killWorker(frozen)
  await killWorker(other)
}

async function readLeft(): Promise<{ unplaced: number; deliveries: number }> {
  const { rows } = await pool.query(
    'select (select count(*) from log_pages where last_position is null) as unplaced, (select count(*) from webhook_deliveries) as deliveries',
  )
  return rows[0]
}

/** A worker that nobody disturbs brings out what is left. */
async function finish(): Promise<void> {
  const from = performance.now()
  await startWorker()
  if (!isFull) await endLeases(pool)
  await untilDelivered(pool, TIMEOUT_MS)
  await until(
    'all is posted',
    async () => {
      const { unplaced, deliveries } = await readLeft()
      return unplaced + deliveries === 0
    },
    TIMEOUT_MS,
  )
  say(`the rest was posted within ${seconds(performance.now() - from)}`)
}

let log: Logged[] = []
let followed: unknown[] = []

test(`kill -9 of webhook workers ${KILLS} times, of the database, and a worker frozen past its lease, while messages go out: all comes to an end`, async () => {
  const beside = Promise.all([sendMessages(), follow(), hasten()])
  try {
    await killWorkers()
    for (let n = 0; n < DATABASE_KILLS; n++) await killDatabase()
    for (let n = 0; n < FREEZES; n++) await freezeWorker()
    isSending = false
    await finish()
  } finally {
    isSending = false
    isOver = true
  }
  const [sent, feed] = await beside
  followed = feed
  log = await readLog(pool, accountId)
  say(`${sent} messages, ${log.length} events, ${countArrivals()} requests`)
  assert.ok(log.length > sent, 'there is something to prove')
})

test('every change of a message is in the log, once, and counted for reports', async () => {
  await assertAllInTheLog(pool, log)
  assert.ok((await assertAllCounted(pool)) > 0)
})

test('the log has every position once, and the events of a message in their order', async () => {
  const { pages, heads } = await readPlaces(pool)
  assert.ok(pages.length > 0, 'there is something to prove')
  assert.deepEqual([...findMisplaced(pages, heads), ...findDisordered(log)], [])
})

test('the feed, read all the while, has the log: nothing missed, nothing twice, in its order', () => {
  assert.deepEqual(
    followed,
    log.map((event) => JSON.parse(eventBody(event))),
  )
})

for (const { path, endpointId, wants } of subscriptions) {
  function theirs() {
    assert.ok(log.length > 0, 'the run has come to its end')
    return { arrivals: sink.arrivals.get(path) ?? [], expected: log.filter(({ kind }) => wants(kind)) }
  }

  test(`${path}: every event that it wants arrives, with the bytes of the log and a signature that verifies, and no other`, () => {
    assertArrived(theirs())
  })

  test(`${path}: no more come twice than were under way when something was killed`, () => {
    const { again, refused, ofEvents } = countRepeated(theirs())
    say(`${path}: ${ofEvents} events, ${refused} times refused and posted again, ${again} times posted again after they were taken`)
    assert.ok(refused > 0, 'some were refused')
    assert.ok(again <= upsets * WINDOW, `${again} of at most ${upsets} times ${WINDOW}`)
  })

  test(`${path}: the events of a message that were never refused came in their order`, () => {
    const compared = assertInOrder(theirs())
    assert.ok(compared > 0)
  })

  test(`${path}: the attempts that were written down are those that the endpoint saw, and each event was taken`, async () => {
    const { unwritten } = await assertAttempts(pool, endpointId, theirs())
    say(`${path}: ${unwritten} requests were never written down`)
    assert.ok(unwritten <= upsets * WINDOW, `${unwritten} of at most ${upsets} times ${WINDOW}`)
  })
}
