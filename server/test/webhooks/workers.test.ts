import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, type TestContext, test } from 'node:test'
import { createHotPool } from '../../src/db/pool.ts'
import { claimDue } from '../../src/webhooks/claim.ts'
import { addEndpoint } from '../../src/webhooks/endpoints.ts'
import { createTestDatabase } from '../support/database.ts'
import { keyring } from '../support/keyring.ts'
import { until } from '../support/until.ts'
import { deliveriesOf, endpointAt, newAccount, routeAll, startSink, startWorker, tellMany, tellRouted } from './support.ts'

const { url, hotPool: pool } = await createTestDatabase()

async function isDone(endpointId: number): Promise<boolean> {
  return (await deliveriesOf(pool, endpointId)).length === 0
}

describe('workers', () => {
  test('two at once post each event once', async (t) => {
    const sink = await startSink()
    const endpoints = await Promise.all(Array.from({ length: 6 }, () => endpointAt(pool, sink)))
    for (const { accountId } of endpoints) await tellMany(pool, accountId, 200)
    await routeAll(pool)
    const workers = [startWorker(t, url), startWorker(t, url)]
    await until('all are taken', async () => {
      for (const { wake } of workers) wake()
      return (await Promise.all(endpoints.map(({ endpointId }) => isDone(endpointId)))).every(Boolean)
    })
    const ids = sink.arrived.map(({ headers }) => headers['webhook-id'])
    assert.deepEqual([ids.length, new Set(ids).size], [1_200, 1_200])
  })

  test('one that stops breaks off what hangs, lets go of its endpoints, and loses nothing: the next one posts it again', async (t) => {
    const sink = await startSink(() => undefined)
    const { endpointId, accountId } = await endpointAt(pool, sink)
    await tellRouted(pool, accountId, 3)
    const first = startWorker(t, url)
    await until('they hang', () => sink.arrived.length === 3)
    const from = performance.now()
    await first.stop()
    assert.ok(performance.now() - from < 5_000)
    assert.deepEqual(
      (await deliveriesOf(pool, endpointId)).map(({ attempts }) => attempts),
      [0, 0, 0],
    )
    sink.answer(() => 204)
    startWorker(t, url)
    await until('all are taken', () => isDone(endpointId), 5_000)
    assert.equal(sink.arrived.length, 6)
  })

  test('an endpoint that hangs, and one that refuses all, hold up nobody else', async (t) => {
    const [hanging, refusing, good] = [await startSink(() => undefined), await startSink(() => 500), await startSink()]
    const endpoints = await Promise.all([hanging, refusing, good].map((sink) => endpointAt(pool, sink)))
    for (const { accountId } of endpoints.slice(0, 2)) await tellMany(pool, accountId, 500)
    await routeAll(pool)
    startWorker(t, url)
    await until('both are at it', () => hanging.arrived.length > 0 && refusing.arrived.length >= 4)
    await tellRouted(pool, endpoints[2]?.accountId as number, 100)
    await until('the good one has its own', () => good.arrived.length === 100, 5_000)
    assert.ok(hanging.arrived.length <= 4, `${hanging.arrived.length} calls hang at once`)
  })
})

test('a result that can’t be written for a while is written later, and its event is not posted again meanwhile', async (t) => {
  const own = await createTestDatabase()
  let isHeld = false
  const blocker = createHotPool({ connectionString: own.url }, () => {})
  const holder = await blocker.connect()
  const sink = await startSink(async () => {
    if (!isHeld) await holder.query('begin; lock table webhook_attempts in exclusive mode')
    isHeld = true
    return 204
  })
  const { endpointId, accountId } = await endpointAt(own.hotPool, sink)
  await tellRouted(own.hotPool, accountId, 1)
  const worker = startWorker(t, own.url)
  await until('it has arrived', () => isHeld)
  for (let look = 0; look < 5; look += 1) {
    worker.wake()
    await claimDue(own.hotPool, { lease: '00000000-0000-4000-8000-000000000009', room: new Map(), underWay: [] })
  }
  await holder.query('rollback')
  holder.release()
  await blocker.end()
  await until('it is written', async () => (await deliveriesOf(own.hotPool, endpointId)).length === 0)
  assert.equal(sink.arrived.length, 1)
})

test('an endpoint that refuses all of a long backlog gets a few posts, and not all of it one after the other', async (t) => {
  const own = await createTestDatabase()
  const [refusing, good] = [await startSink(() => 500), await startSink()]
  const [{ endpointId, accountId }, other] = [await endpointAt(own.hotPool, refusing), await endpointAt(own.hotPool, good)]
  await tellRouted(own.hotPool, accountId, 500)
  const worker = startWorker(t, own.url)
  await until('it is paused', async () => {
    const { rowCount } = await own.hotPool.query('select from webhook_endpoints where id = $1 and failures >= 5', [endpointId])
    return rowCount === 1
  })
  for (let round = 1; round <= 40; round += 1) {
    await tellRouted(own.hotPool, other.accountId, 1)
    worker.wake()
    await until('the worker has looked for more', () => good.arrived.length === round)
  }
  assert.ok(refusing.arrived.length >= 5 && refusing.arrived.length <= 30, `${refusing.arrived.length} posts`)
})

describe('connections to an endpoint', () => {
  /** Moves the clock by which a worker knows what is idle. */
  function movingClock(t: TestContext): { move: (seconds: number) => void } {
    const now = performance.now.bind(performance)
    let aheadMs = 0
    t.mock.method(performance, 'now', () => now() + aheadMs)
    return {
      move: (seconds) => {
        aheadMs += seconds * 1_000
      },
    }
  }

  /** An endpoint that closes no connection by itself, as that of `startSink` does after 5 s. */
  async function startWatched(answer: () => Promise<void> = async () => {}) {
    const connections = new Set<unknown>()
    let arrived = 0
    const server = createServer({ keepAliveTimeout: 60_000 }, async (request, response) => {
      request.resume()
      arrived += 1
      await answer()
      response.writeHead(204).end()
    })
    server.on('connection', (socket) => {
      connections.add(socket)
      socket.once('close', () => connections.delete(socket))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    after(() => {
      server.close()
      server.closeAllConnections()
    })
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
    return { address, connections, arrived: () => arrived }
  }

  test('are kept between events, and closed once nothing has come for 30 s', async (t) => {
    const own = await createTestDatabase()
    const { address, connections } = await startWatched()
    const { endpointId, accountId } = await addEndpoint(own.hotPool, { accountId: await newAccount(own.hotPool), url: address }, keyring)
    const clock = movingClock(t)
    const worker = startWorker(t, own.url)
    const taken = async () => {
      await tellRouted(own.hotPool, accountId, 1)
      worker.wake()
      await until('it is taken', async () => (await deliveriesOf(own.hotPool, endpointId)).length === 0)
    }
    await taken()
    const [first] = connections
    clock.move(20)
    await taken()
    assert.deepEqual([...connections], [first])
    // More than once, since it may be that the last call is just being written down; patience goes by the same clock.
    const closed = () => {
      clock.move(31)
      worker.wake()
      return connections.size === 0
    }
    await until('it is closed', closed, 600 * 31_000)
    await taken()
    assert.equal(connections.size, 1)
  })

  test('are not closed while a call is under way, however long it takes', async (t) => {
    const own = await createTestDatabase()
    const mayAnswer = Promise.withResolvers<void>()
    const [{ address, connections, arrived }, good] = [await startWatched(() => mayAnswer.promise), await startSink()]
    const { endpointId, accountId } = await addEndpoint(own.hotPool, { accountId: await newAccount(own.hotPool), url: address }, keyring)
    const { accountId: another } = await endpointAt(own.hotPool, good)
    const clock = movingClock(t)
    await tellRouted(own.hotPool, accountId, 1)
    const worker = startWorker(t, own.url)
    await until('it hangs', () => arrived() === 1)
    clock.move(40)
    for (const round of [1, 2]) {
      await tellRouted(own.hotPool, another, 1)
      worker.wake()
      await until('the worker has been through', () => good.arrived.length === round)
    }
    assert.equal(connections.size, 1)
    mayAnswer.resolve()
    await until('it is taken', async () => (await deliveriesOf(own.hotPool, endpointId)).length === 0)
    assert.equal(arrived(), 1)
  })
})
