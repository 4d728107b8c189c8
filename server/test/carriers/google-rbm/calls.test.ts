import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createServer, type Socket } from 'node:net'
import { after, describe, test } from 'node:test'
import type { RcsCarrier, SendResult } from '../../../src/carriers/carrier.ts'
import { createHttp, NotSent } from '../../../src/carriers/google-rbm/http.ts'
import { echo, failure, type NetworkResponse, startNetwork } from '../../support/network.ts'
import { until } from '../../support/until.ts'
import { stopClock } from '../clock.ts'
import { assertWithin, connect, newAgent, recordLog, send, sendEach, start, times } from './support.ts'

const AGENT = { agentId: 'agent' }
const TOO_MANY = failure(429, 'RESOURCE_EXHAUSTED', { 'retry-after': '30' })

async function lookUp(carrier: RcsCarrier, agentId = 'agent'): Promise<boolean | undefined> {
  const [reach] = await carrier.reach(agentId, ['+48500100110'], -1)
  return reach?.reachable
}

function isLookUp({ path }: { path: string }): boolean {
  return path.includes('/capabilities')
}

describe('look-ups', () => {
  for (const [what, response, requests] of [
    ['401', failure(401, 'UNAUTHENTICATED'), 10],
    ['429', failure(429, 'RESOURCE_EXHAUSTED'), 5],
    ['500', failure(500, 'INTERNAL'), 5],
    ['no response', undefined, 5],
  ] as [string, NetworkResponse | undefined, number][]) {
    test(`pause after ${what} five times; messages, and look-ups of another agent, continue`, async (t) => {
      const { network, carrier } = await start()
      stopClock(t)
      network.respondWith((request, reply) => {
        if (!isLookUp(request)) return echo(request)
        if (response === undefined) reply.destroy()
        return response
      })
      for (let index = 0; index < 6; index += 1) assert.equal(await lookUp(carrier), undefined)
      assert.equal(network.requests.length, requests)
      assert.equal(carrier.pausedForMs('agent'), 0)
      assert.equal((await send(carrier, AGENT)).is, 'sent')
      assert.deepEqual(carrier.health(), { circuit: 'closed', sessions: null })
      await lookUp(carrier, 'another')
      assert.ok(network.requests.length > requests + 1)
    })
  }

  test('pause at once for a Retry-After', async () => {
    const { network, carrier } = await start()
    network.respondWith(() => TOO_MANY)
    for (let index = 0; index < 3; index += 1) assert.equal(await lookUp(carrier), undefined)
    assert.equal(network.requests.length, 1)
  })

  test('continue after a response between the failures, even "not reachable"', async (t) => {
    const { network, carrier } = await start()
    stopClock(t)
    for (const response of [failure(404, 'NOT_FOUND'), failure(403, 'PERMISSION_DENIED'), failure(500, 'INTERNAL')]) {
      network.respondWith(() => failure(503, 'UNAVAILABLE'))
      for (let index = 0; index < 4; index += 1) await lookUp(carrier)
      network.respondWith(() => response)
      await lookUp(carrier)
    }
    assert.equal(network.requests.length, 15)
    await lookUp(carrier)
    assert.equal(network.requests.length, 15)
  })
})

describe('messages of an agent', () => {
  test('pause after five failures; then one probes the network, and the others follow it', async (t) => {
    const { network, carrier } = await start()
    const clock = stopClock(t)
    network.respondWith(() => failure(503, 'UNAVAILABLE'))
    await sendEach(
      carrier,
      AGENT,
      times(5, () => 'unknown'),
    )
    for (let index = 0; index < 3; index += 1) {
      const paused = await send(carrier, AGENT)
      // The pause of 250 to 500 ms, and 250 to 500 ms more, so that they do not return all at once.
      assertWithin(paused.is === 'not-tried' ? paused.afterMs : undefined, 500, 1_000)
    }
    assert.equal(network.requests.length, 5)
    assert.equal((await send(carrier)).is, 'unknown', 'another agent has its own circuit')

    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    network.respondWith(async (request) => {
      await held
      return echo(request)
    })
    clock.move(500)
    const probe = send(carrier, AGENT)
    await sendEach(carrier, AGENT, ['not-tried', 'not-tried', 'not-tried'])
    release()
    assert.equal(carrier.health().circuit, 'open')
    assert.equal((await probe).is, 'sent')
    assert.equal(carrier.health().circuit, 'closed')
    assert.equal(network.requests.length, 7)
    await sendEach(carrier, AGENT, ['sent', 'sent', 'sent'])
  })

  test('pause at once for a Retry-After; look-ups and other agents continue', async (t) => {
    const { network, carrier } = await start()
    stopClock(t)
    assert.equal(carrier.pausedForMs('agent'), 0)
    network.respondWith((request) => (isLookUp(request) ? { body: { features: [] } } : TOO_MANY))
    const first = await send(carrier, AGENT)
    assert.deepEqual([first.is, 'afterMs' in first && first.afterMs], ['retry', 30_000])
    const paused = await send(carrier, AGENT)
    assertWithin(paused.is === 'not-tried' ? paused.afterMs : undefined, 30_250, 30_500)
    assert.equal(network.requests.length, 1)
    assert.deepEqual([carrier.pausedForMs('agent'), carrier.pausedForMs('another')], [30_000, 0])
    assert.equal(await lookUp(carrier), true)
  })

  test('pause with a line in the log that has the status or the error', async () => {
    const { logger, log } = recordLog()
    const network = await startNetwork()
    const agents = [newAgent(), newAgent()] as const
    network.respondWith(() => failure(401, 'UNAUTHENTICATED', { 'retry-after': '30' }))
    await send(connect(network.settings, logger), { agentId: agents[0] })
    const unreachable = connect({ ...network.settings, address: 'http://127.0.0.1:1' }, logger)
    for (let index = 0; index < 5; index += 1) await send(unreachable, { agentId: agents[1] })
    const lines = log()
      .split('\n')
      .filter((line) => line.includes('the RCS network is failing: messages paused'))
    const reasons = agents.map((agentId) => lines.map((line) => JSON.parse(line)).find((line) => line.agentId === agentId).reason)
    assert.deepEqual(reasons, ['HTTP 401', 'connect ECONNREFUSED 127.0.0.1:1'])
  })
})

test('closing the carrier ends its connections and the calls on them', async () => {
  const { network, carrier } = await start()
  const sockets = new Set<Socket | null>()
  network.respondToTokenRequestsWith((_, response) => {
    sockets.add(response.socket)
    return { body: { access_token: 'a-token', expires_in: 3600 } }
  })
  network.respondWith((_, response) => {
    sockets.add(response.socket)
    return undefined
  })
  const calls = Promise.all([send(carrier), lookUp(carrier)])
  await until('all are connected', () => sockets.size === 3)
  await carrier.close()
  const [outcome, reachable] = await calls
  assert.equal(reachable, undefined)
  assert.ok(outcome.is === 'unknown')
  assert.doesNotMatch(outcome.detail, /no response within/)
  // The network itself closes idle connections after 240 s.
  await until('all are closed', () => [...sockets].every((socket) => socket?.destroyed))
})

describe('a call', () => {
  for (const [elapsedMs, requests, is] of [
    [4_000, 2, 'sent'],
    [5_001, 1, 'retry'],
  ] as const) {
    test(`whose token is refused after ${elapsedMs} ms takes ${requests} requests`, async (t) => {
      const { network, carrier } = await start()
      const clock = stopClock(t)
      network.respondWith((request) => {
        clock.move(elapsedMs)
        return network.requests.length === 1 ? failure(401, 'UNAUTHENTICATED') : echo(request)
      })
      assert.equal((await send(carrier)).is, is)
      assert.equal(network.requests.length, requests)
      assert.equal((await send(carrier)).is, 'sent')
      assert.equal(network.tokens.length, 2)
    })
  }

  test('waits ten seconds for a token, its second request included, and is not sent without one', async (t) => {
    const { network, carrier } = await start()
    const called = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    network.respondToTokenRequestsWith(async (_, response) => {
      const number = network.tokens.length
      called[number - 1]?.resolve()
      if (number === 2) return undefined
      await held
      response.setHeader('date', new Date(Date.now() - 7_200_000).toUTCString())
      return { status: 400, body: { error: 'invalid_grant' } }
    })
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const sending = send(carrier)
    await called[0]?.promise
    t.mock.timers.tick(9_000)
    release()
    await called[1]?.promise
    t.mock.timers.tick(1_000)
    const outcome = await sending
    assert.deepEqual([outcome.is, 'detail' in outcome && outcome.detail], ['retry', 'no access token in time'])
    assert.equal(network.requests.length, 0)
  })

  test('counts as not sent if nothing listens at the address of the API or of the tokens', async () => {
    const closed = createServer()
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve))
    const { port } = closed.address() as { port: number }
    await new Promise((resolve) => closed.close(resolve))
    const { settings } = await startNetwork()
    const serviceAccount = { ...settings.serviceAccount, token_uri: `http://127.0.0.1:${port}/token` }
    for (const wrong of [{ address: `http://127.0.0.1:${port}` }, { serviceAccount }]) {
      assert.equal((await send(connect({ ...settings, ...wrong }))).is, 'retry')
    }
  })

  test('waits for a connection while all are in use', async () => {
    const { network, carrier } = await start(7)
    assert.equal(carrier.concurrency, 7)
    let open = 0
    let most = 0
    const { promise: full, resolve: release } = Promise.withResolvers<void>()
    network.respondWith(async (request) => {
      open += 1
      most = Math.max(most, open)
      if (open === 7) release()
      await full
      open -= 1
      return echo(request)
    })
    const outcomes: SendResult[] = await Promise.all(times(60, () => send(carrier)))
    assert.ok(outcomes.every(({ is }) => is === 'sent'))
    assert.equal(most, 7)
  })
})

describe('a response', async () => {
  const network = await startNetwork()
  const http = createHttp(network.settings.address, 1, 300)
  after(() => http.close())
  const call = (path = '/v1') => http.call({ method: 'GET', path })

  test('times out if it does not come, or comes byte by byte', async () => {
    network.respondWith(() => undefined)
    await assert.rejects(call(), (error) => !(error instanceof NotSent) && /no response/.test(`${error}`))
    network.respondWith((_, response) => {
      response.writeHead(200)
      const more = setInterval(() => response.write(' '), 20)
      response.once('close', () => clearInterval(more))
      return undefined
    })
    await assert.rejects(call(), /no response within 0.3 s/)
  })

  test('is not awaited for a request that got no connection in time, and the request is never sent', async () => {
    network.respondWith(() => undefined)
    // If the second request begins some milliseconds later, as on a busy machine, it gets the connection that the first has just left.
    const notSent = await until('the second of two never got the one connection', async () => {
      const paths = [`/v1/${randomUUID()}`, `/v1/${randomUUID()}`] as const
      const [first, second] = await Promise.allSettled(paths.map(call))
      assert.ok(first?.status === 'rejected' && !(first.reason instanceof NotSent))
      assert.ok(second?.status === 'rejected')
      return second.reason instanceof NotSent ? paths[1] : undefined
    })
    network.respondWith(() => ({}))
    assert.equal((await call('/v1/third')).status, 200)
    const paths = network.requests.map(({ path }) => path)
    assert.equal(paths.at(-1), '/v1/third')
    assert.ok(!paths.includes(notSent))
  })
})

describe('revoking a message', async () => {
  const { network, carrier } = await start()
  for (const [what, response, is] of [
    ['200 with an object', { body: {} }, 'accepted'],
    ['200 from a proxy', { body: '<html>Welcome</html>' }, 'unknown'],
    ['200 with JSON that is no object', { body: 'null' }, 'unknown'],
    ['403', failure(403, 'PERMISSION_DENIED'), 'failed'],
    ['404', failure(404, 'NOT_FOUND'), 'too-late'],
    ['404 from a proxy', { status: 404, body: '<html>' }, 'retry'],
    ['500', failure(500, 'INTERNAL'), 'unknown'],
  ] as [string, NetworkResponse, string][]) {
    test(`is ${is} after ${what}`, async () => {
      network.respondWith(() => response)
      const messageId = randomUUID()
      const agentId = `${newAgent()} x`
      const outcome = await carrier.revoke({ messageId, agentId, recipient: '+48500100110' })
      assert.equal(outcome.is, is)
      if (outcome.is === 'failed') assert.equal(outcome.reason, 'NOT_REACHABLE')
      const { method, path, body } = network.requests.at(-1) ?? assert.fail('no request')
      const expectedPath = `/v1/phones/+48500100110/agentMessages/${messageId}?agentId=${encodeURIComponent(agentId)}`
      assert.deepEqual([method, path, body], ['DELETE', expectedPath, ''])
    })
  }
})
