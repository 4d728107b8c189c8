import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import { after, describe, type TestContext, test } from 'node:test'
import type { RcsCarrier } from '../../../src/carriers/carrier.ts'
import { createGoogleRbm } from '../../../src/carriers/google-rbm/carrier.ts'
import { createLogger } from '../../../src/http/log.ts'
import { type Answered, echo, failure, startNetwork } from '../../support/network.ts'
import { until } from '../../support/until.ts'

async function start() {
  const network = await startNetwork()
  const carrier = createGoogleRbm(network.settings, { postbackKey: Buffer.alloc(32), logger: createLogger('silent') })
  after(() => carrier.close())
  return { network, carrier }
}

async function send(carrier: RcsCarrier, agentId = 'agent') {
  const content = { type: 'MESSAGE', content: 'Hello' } as const
  const expiresAt = new Date(Date.now() + 3_600_000)
  return await carrier.send({ messageId: randomUUID(), agentId, recipient: '+48500100110', content, traffic: 'TRANSACTION', expiresAt })
}

async function lookUp(carrier: RcsCarrier, agentId = 'agent'): Promise<boolean | undefined> {
  const [reach] = await carrier.reach(agentId, ['+48500100110'], -1)
  return reach?.reachable
}

function isLookUp({ path }: { path: string }): boolean {
  return path.includes('/capabilities')
}

/** So that no pause is over before a test has looked, however busy the machine is. */
function stopClock(t: TestContext): void {
  const now = performance.now()
  t.mock.method(performance, 'now', () => now)
}

describe('look-ups in trouble', () => {
  for (const [what, answered, requests] of [
    ['401', failure(401, 'UNAUTHENTICATED'), 10],
    ['429', failure(429, 'RESOURCE_EXHAUSTED'), 5],
    ['500', failure(500, 'INTERNAL'), 5],
    ['503', failure(503, 'UNAVAILABLE'), 5],
    ['no answer', undefined, 5],
  ] as [string, Answered | undefined, number][]) {
    test(`pause after five times ${what}; messages still go out, and another agent's look-ups too`, async (t) => {
      const { network, carrier } = await start()
      stopClock(t)
      network.answer((asked, response) => {
        if (!isLookUp(asked)) return echo(asked)
        if (answered === undefined) response.destroy()
        return answered
      })
      for (let index = 0; index < 5; index += 1) assert.equal(await lookUp(carrier), undefined)
      assert.equal(network.asked.length, requests)
      assert.equal(await lookUp(carrier), undefined)
      assert.equal(network.asked.length, requests)
      assert.equal(carrier.pausedForMs('agent'), 0)
      assert.equal((await send(carrier)).is, 'sent')
      await lookUp(carrier, 'another')
      assert.ok(network.asked.length > requests + 1)
    })
  }

  test('pause at once where the network asks for it', async () => {
    const { network, carrier } = await start()
    network.answer(() => failure(429, 'RESOURCE_EXHAUSTED', { 'retry-after': '30' }))
    for (let index = 0; index < 3; index += 1) assert.equal(await lookUp(carrier), undefined)
    assert.equal(network.asked.length, 1)
  })

  test('go on where there were answers in between, of which "not reachable" is one', async (t) => {
    const { network, carrier } = await start()
    stopClock(t)
    for (const answered of [failure(404, 'NOT_FOUND'), failure(403, 'PERMISSION_DENIED'), failure(500, 'INTERNAL')]) {
      network.answer(() => failure(503, 'UNAVAILABLE'))
      for (let index = 0; index < 4; index += 1) await lookUp(carrier)
      network.answer(() => answered)
      await lookUp(carrier)
    }
    assert.equal(network.asked.length, 15)
    await lookUp(carrier)
    assert.equal(network.asked.length, 15)
  })
})

test('messages that pause say for how long, for their agent only, and do not keep its look-ups from going on', async () => {
  const { network, carrier } = await start()
  assert.equal(carrier.pausedForMs('agent'), 0)
  network.answer((asked) => (isLookUp(asked) ? { body: { features: [] } } : failure(429, 'RESOURCE_EXHAUSTED', { 'retry-after': '30' })))
  assert.equal((await send(carrier)).is, 'retry')
  const pausedForMs = carrier.pausedForMs('agent')
  assert.ok(pausedForMs > 20_000 && pausedForMs <= 30_000)
  assert.equal(carrier.pausedForMs('another'), 0)
  assert.equal(await lookUp(carrier), true)
})

test('to close ends all connections, and what is under way on them', async () => {
  const { network, carrier } = await start()
  const sockets = new Set<Socket | null>()
  network.answerTokens((_, response) => {
    sockets.add(response.socket)
    return { body: { access_token: 'a-token', expires_in: 3600 } }
  })
  network.answer((_, response) => {
    sockets.add(response.socket)
    return undefined
  })
  const underway = Promise.all([send(carrier), lookUp(carrier)])
  await until('all are connected', () => sockets.size === 3)
  await carrier.close()
  const [outcome, reachable] = await underway
  assert.equal(reachable, undefined)
  assert.ok(outcome.is === 'unknown')
  assert.doesNotMatch(outcome.detail, /no response within/)
  // Well before the network would close what is idle.
  await until('all are closed', () => [...sockets].every((socket) => socket?.destroyed), 2_000)
})

describe('a token that is refused', () => {
  for (const [elapsedMs, requests, is] of [
    [4_000, 2, 'sent'],
    [5_001, 1, 'retry'],
  ] as const) {
    test(`after ${elapsedMs} ms: ${requests} calls in all`, async (t) => {
      const { network, carrier } = await start()
      let shiftMs = 0
      const now = performance.now.bind(performance)
      t.mock.method(performance, 'now', () => now() + shiftMs)
      network.answer((asked) => {
        shiftMs = elapsedMs
        return network.asked.length === 1 ? failure(401, 'UNAUTHENTICATED') : echo(asked)
      })
      assert.equal((await send(carrier)).is, is)
      assert.equal(network.asked.length, requests)
      // The next one has another token, whoever asked for it.
      assert.equal((await send(carrier)).is, 'sent')
      assert.equal(network.tokens.length, 2)
    })
  }
})

describe('a token that does not come', () => {
  test('is waited for ten seconds in all, its second try included; the message was not sent', { timeout: 10_000 }, async (t) => {
    const { network, carrier } = await start()
    const asked = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    network.answerTokens(async (_, response) => {
      const number = network.tokens.length
      asked[number - 1]?.resolve()
      if (number === 2) return undefined
      await held
      response.setHeader('date', new Date(Date.now() - 7_200_000).toUTCString())
      return { status: 400, body: { error: 'invalid_grant' } }
    })
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const sending = send(carrier)
    await asked[0]?.promise
    t.mock.timers.tick(9_000)
    release()
    await asked[1]?.promise
    t.mock.timers.tick(1_000)
    const outcome = await sending
    assert.ok(outcome.is === 'retry')
    assert.equal(outcome.detail, 'no access token in time')
    assert.equal(network.asked.length, 0)
  })
})

describe('to revoke', () => {
  for (const [what, answered, is] of [
    ['200 with an object: asked', { body: {} }, 'accepted'],
    ['200 of something that is not the API: it may have happened', { body: '<html>Welcome</html>' }, 'unknown'],
    ['200 with JSON that is no object: it may have happened', { body: 'null' }, 'unknown'],
    ['403: refused', failure(403, 'PERMISSION_DENIED'), 'failed'],
    ['404: too late', failure(404, 'NOT_FOUND'), 'too-late'],
    ['404 of something that is not the API: again', { status: 404, body: '<html>' }, 'retry'],
    ['500: it may have happened', failure(500, 'INTERNAL'), 'unknown'],
  ] as [string, Answered, string][]) {
    test(what, async () => {
      const { network, carrier } = await start()
      network.answer(() => answered)
      const messageId = randomUUID()
      const outcome = await carrier.revoke({ messageId, agentId: 'an agent', recipient: '+48500100110' })
      assert.equal(outcome.is, is)
      if (outcome.is === 'failed') assert.equal(outcome.reason, 'NOT_REACHABLE')
      assert.deepEqual(
        network.asked.map(({ method, path, body }) => [method, path, body]),
        [['DELETE', `/v1/phones/+48500100110/agentMessages/${messageId}?agentId=an%20agent`, '']],
      )
    })
  }
})
