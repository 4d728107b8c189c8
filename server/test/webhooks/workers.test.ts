import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, type TestContext, test } from 'node:test'
import { createHotPool } from '../../src/db/pool.ts'
import { claimDue } from '../../src/webhooks/claim.ts'
import { addEndpoint } from '../../src/webhooks/endpoints.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { keyring } from '../support/keyring.ts'
import { routeUntilDone } from '../support/log.ts'
import { until } from '../support/until.ts'
import { deliveriesOf, emitRouted, endpointAt, isDone, newAccount, startSink, startWorker, writeMany } from './support.ts'

const { url, hotPool: pool } = await createTestDatabase()

describe('a worker', () => {
  test('posts no event that another worker posts', async (t) => {
    const own = await createTestDatabase()
    // A lease that ended on a busy machine would let the other worker post the same events, as it should.
    await ownerOf(own.hotPool).query(`
      create function lease_for_an_hour() returns trigger language plpgsql as
        $$ begin new.leased_until := new.leased_until + interval '1 hour'; return new; end $$;
      create trigger lease_for_an_hour before update on webhook_endpoints for each row
        when (new.leased_until > old.leased_until) execute function lease_for_an_hour()`)
    const sink = await startSink()
    const endpoints = await Promise.all(Array.from({ length: 6 }, () => endpointAt(own.hotPool, sink)))
    for (const { accountId } of endpoints) await writeMany(own.hotPool, accountId, 50)
    await routeUntilDone(own.hotPool)
    const workers = [startWorker(t, own.url), startWorker(t, own.url)]
    await until('all are posted', async () => {
      for (const { wake } of workers) wake()
      return (await own.hotPool.query('select from webhook_deliveries')).rowCount === 0
    })
    const ids = sink.arrived.map(({ headers }) => headers['webhook-id'])
    assert.deepEqual([ids.length, new Set(ids).size], [300, 300])
  })

  test('aborts its calls and releases its endpoints when it stops, and the next worker posts the events again', async (t) => {
    let isLate = false
    const closedLate: boolean[] = []
    const sink = await startSink((_, response) => void response.once('close', () => closedLate.push(isLate)))
    const { endpointId, accountId } = await endpointAt(pool, sink)
    await emitRouted(pool, accountId, 3)
    const first = startWorker(t, url)
    await until('the calls hang', () => sink.arrived.length === 3)
    // A call that is not aborted times out after 15 s. A busy machine delays this timer as much as those of the worker.
    const late = setTimeout(() => (isLate = true), 12_000)
    await first.stop()
    await until('the calls are closed', () => closedLate.length === 3)
    clearTimeout(late)
    assert.deepEqual(closedLate, [false, false, false])
    const attempts = (await deliveriesOf(pool, endpointId)).map((delivery) => delivery.attempts)
    assert.deepEqual(attempts, [0, 0, 0])
    // A lease that was not released would end after 10 s.
    const { rowCount: leased } = await pool.query('select from webhook_endpoints where id = $1 and leased_until > now()', [endpointId])
    assert.equal(leased, 0)
    sink.respondWith(() => 204)
    startWorker(t, url)
    await until('all are posted', () => isDone(pool, endpointId))
    assert.equal(sink.arrived.length, 6)
  })

  test('delays no endpoint because another one hangs or rejects every event', async (t) => {
    let [open, maxOpen, closed] = [0, 0, 0]
    const hanging = await startSink((_, response) => {
      open += 1
      maxOpen = Math.max(maxOpen, open)
      response.once('close', () => {
        open -= 1
        closed += 1
      })
      return undefined
    })
    const [rejecting, good] = [await startSink(() => 500), await startSink()]
    const endpoints = await Promise.all([hanging, rejecting, good].map((sink) => endpointAt(pool, sink)))
    for (const { accountId } of endpoints.slice(0, 2)) await writeMany(pool, accountId, 500)
    await routeUntilDone(pool)
    startWorker(t, url)
    await until('both have calls', () => open > 0 && rejecting.arrived.length >= 4)
    await emitRouted(pool, endpoints[2]?.accountId as number, 100)
    await until('the good endpoint has its events', () => good.arrived.length === 100)
    // A hanging call times out after 15 s: if the good endpoint had waited for it, it would be closed by now.
    assert.equal(closed, 0)
    assert.ok(maxOpen <= 4, `${maxOpen} calls hang at once`)
  })

  test('posts an event once, even if its result cannot be written for a while', async (t) => {
    const own = await createTestDatabase()
    let isLocked = false
    const blocker = createHotPool({ connectionString: own.url }, () => {})
    const holder = await blocker.connect()
    const sink = await startSink(async () => {
      if (!isLocked) await holder.query('begin; lock table webhook_attempts in exclusive mode')
      isLocked = true
      return 204
    })
    const { endpointId, accountId } = await endpointAt(own.hotPool, sink)
    await emitRouted(own.hotPool, accountId, 1)
    const worker = startWorker(t, own.url)
    await until('the event has arrived', () => isLocked)
    for (let poll = 0; poll < 5; poll += 1) {
      worker.wake()
      await claimDue(own.hotPool, { lease: '00000000-0000-4000-8000-000000000009', room: new Map(), underWay: [] })
    }
    await holder.query('rollback')
    holder.release()
    await blocker.end()
    await until('the result is written', () => isDone(own.hotPool, endpointId))
    assert.equal(sink.arrived.length, 1)
  })

  test('posts only a few of a long backlog to an endpoint that rejects all', async (t) => {
    const own = await createTestDatabase()
    const [rejecting, good] = [await startSink(() => 500), await startSink()]
    const [{ endpointId, accountId }, other] = [await endpointAt(own.hotPool, rejecting), await endpointAt(own.hotPool, good)]
    await emitRouted(own.hotPool, accountId, 500)
    const worker = startWorker(t, own.url)
    await until('the endpoint is paused', async () => {
      const { rowCount } = await own.hotPool.query('select from webhook_endpoints where id = $1 and failures >= 5', [endpointId])
      return rowCount === 1
    })
    // Until the last poll, the pause must not end.
    await own.hotPool.query(`update webhook_endpoints set paused_until = now() + interval '1 hour' where id = $1`, [endpointId])
    for (let poll = 1; poll <= 40; poll += 1) {
      await emitRouted(own.hotPool, other.accountId, 1)
      worker.wake()
      await until('the worker has polled', () => good.arrived.length === poll)
    }
    assert.ok(rejecting.arrived.length >= 5 && rejecting.arrived.length <= 30, `${rejecting.arrived.length} posts`)
  })
})

describe('a connection to an endpoint', () => {
  /** Moves the clock by which a worker finds idle connections. */
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

  /** An endpoint that keeps its connections open, unlike that of `startSink`, which closes them after 5 s. */
  async function startWatched(respond: () => Promise<void> = async () => {}) {
    const connections = new Set<unknown>()
    let arrived = 0
    const server = createServer({ keepAliveTimeout: 600_000 }, async (request, response) => {
      request.resume()
      arrived += 1
      await respond()
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
    const own = await createTestDatabase()
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
    const endpoint = await addEndpoint(own.hotPool, { accountId: await newAccount(own.hotPool), url: address }, keyring)
    return { own, ...endpoint, connections, arrived: () => arrived }
  }

  test('is kept between events, and closed after 30 s without one', async (t) => {
    const { own, endpointId, accountId, connections } = await startWatched()
    const clock = movingClock(t)
    const worker = startWorker(t, own.url)
    const postOne = async () => {
      await emitRouted(own.hotPool, accountId, 1)
      worker.wake()
      await until('the event is posted', () => isDone(own.hotPool, endpointId))
    }
    await postOne()
    const [first] = connections
    clock.move(20)
    await postOne()
    assert.deepEqual([...connections], [first])
    // More than once, since the result of the last call may not be recorded yet. The timeout goes by the same clock.
    const isClosed = () => {
      clock.move(31)
      worker.wake()
      return connections.size === 0
    }
    await until('it is closed', isClosed, 12_000 * 31_000)
    await postOne()
    assert.equal(connections.size, 1)
  })

  test('is not closed during a call, however long the call takes', async (t) => {
    const mayRespond = Promise.withResolvers<void>()
    const { own, endpointId, accountId, connections, arrived } = await startWatched(() => mayRespond.promise)
    const good = await startSink()
    const { accountId: another } = await endpointAt(own.hotPool, good)
    const clock = movingClock(t)
    await emitRouted(own.hotPool, accountId, 1)
    const worker = startWorker(t, own.url)
    await until('the call hangs', () => arrived() === 1)
    clock.move(40)
    for (const poll of [1, 2]) {
      await emitRouted(own.hotPool, another, 1)
      worker.wake()
      await until('the worker has polled', () => good.arrived.length === poll)
    }
    assert.equal(connections.size, 1)
    mayRespond.resolve()
    await until('the event is posted', () => isDone(own.hotPool, endpointId))
    assert.equal(arrived(), 1)
  })
})
