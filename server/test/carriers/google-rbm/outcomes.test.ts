import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:net'
import { after, describe, test } from 'node:test'
import type { RcsCarrier, SendResult } from '../../../src/carriers/carrier.ts'
import { REFUSALS } from '../../../src/carriers/errors.ts'
import { createGoogleRbm } from '../../../src/carriers/google-rbm/carrier.ts'
import { createHttp, NotSent } from '../../../src/carriers/google-rbm/http.ts'
import type { GoogleRbmSettings } from '../../../src/carriers/google-rbm/settings.ts'
import { createLogger } from '../../../src/http/log.ts'
import { type Answered, echo, failure, startNetwork } from '../../support/network.ts'
import { startSimulator } from '../../support/simulator.ts'
import { until } from '../../support/until.ts'

let log = ''
const logger = createLogger('trace', {
  write: (line) => {
    log += line
  },
})

function connect(settings: GoogleRbmSettings): RcsCarrier {
  const carrier = createGoogleRbm(settings, { postbackKey: Buffer.alloc(32), logger })
  after(() => carrier.close())
  return carrier
}

let agents = 0
/** From an agent of its own, whose troubles are nobody else's. */
function newAgent(): string {
  agents += 1
  return `agent-${agents}`
}

async function send(carrier: RcsCarrier, { recipient = '+48500100110', agentId = newAgent(), messageId = randomUUID() as string } = {}) {
  const content = { type: 'MESSAGE', content: 'CANARY-TEXT' } as const
  const expiresAt = new Date(Date.now() + 3_600_000)
  return await carrier.send({ messageId, agentId, recipient, content, traffic: 'TRANSACTION', expiresAt })
}

describe('what an answer means', async () => {
  const network = await startNetwork()
  const carrier = connect(network.settings)

  const cases: [string, Answered, SendResult['is'], string?][] = [
    ['400', failure(400, 'INVALID_ARGUMENT'), 'failed', 'REJECTED'],
    ['403', failure(403, 'PERMISSION_DENIED'), 'failed', 'NOT_REACHABLE'],
    ['404', failure(404, 'NOT_FOUND'), 'failed', 'NOT_REACHABLE'],
    ['409, since a message with the same id is there', failure(409, 'ALREADY_EXISTS'), 'sent'],
    ['409 for another reason', failure(409, 'ABORTED'), 'retry'],
    ['408', failure(408, 'DEADLINE_EXCEEDED'), 'unknown'],
    ['202 that names no message', { status: 202 }, 'unknown'],
    ['204', { status: 204, body: '' }, 'unknown'],
    ['413', failure(413, 'INVALID_ARGUMENT'), 'failed', 'REJECTED'],
    ['401 that stays', failure(401, 'UNAUTHENTICATED'), 'retry'],
    ['429', failure(429, 'RESOURCE_EXHAUSTED'), 'retry'],
    ['500', failure(500, 'INTERNAL'), 'unknown'],
    ['503', failure(503, 'UNAVAILABLE'), 'unknown'],
    ['504 without a body', { status: 504, body: '' }, 'unknown'],
    ['a redirect, which is not followed', { status: 302, headers: { location: 'http://127.0.0.1:1/' } }, 'retry'],
    ['404 of something that is not the API', { status: 404, body: '<html>' }, 'retry'],
    ['400 of something that is not the API', { status: 400, body: { error: 'bad request' } }, 'retry'],
    ['403 whose body speaks of another status', { status: 403, body: failure(404, 'NOT_FOUND').body }, 'retry'],
    ['400 whose body has its status as a text', { status: 400, body: { error: { code: '400' } } }, 'retry'],
    ['200 of something that is not the API', { status: 200, body: '<html>Welcome</html>' }, 'unknown'],
    ['200 for another message', { body: { name: `phones/+48500100110/agentMessages/${randomUUID()}` } }, 'unknown'],
    ['200 with JSON that is no object', { body: 'null' }, 'unknown'],
  ]
  for (const [what, answered, is, reason] of cases) {
    test(`${what}: ${is}`, async () => {
      network.answer(() => answered)
      const messageId = randomUUID()
      const outcome = await send(carrier, { messageId })
      assert.equal(outcome.is, is)
      if (outcome.is === 'sent') assert.equal(outcome.carrierMessageId, messageId)
      if (outcome.is === 'failed') {
        assert.equal(outcome.reason, reason)
        assert.ok(outcome.reason in REFUSALS)
        assert.match(outcome.detail, /^\d{3} [A-Z_]+ It is [A-Z_]+\.$/)
      }
      if (outcome.is === 'retry' || outcome.is === 'unknown') assert.ok(outcome.afterMs > 0 && outcome.afterMs <= 60_000)
    })
  }

  test('201 that names the message: sent; with an error beside it: unknown', async () => {
    network.answer((asked) => ({ status: 201, ...echo(asked) }))
    assert.equal((await send(carrier)).is, 'sent')
    network.answer((asked) => ({ body: { ...(echo(asked).body as object), error: { code: 500 } } }))
    assert.equal((await send(carrier)).is, 'unknown')
  })

  test('a connection that breaks after the request: it may have happened', async () => {
    network.answer((_, response) => void response.destroy())
    assert.equal((await send(carrier)).is, 'unknown')
  })

  test('an answer that is cut off: it may have happened', async () => {
    network.answer((_, response) => {
      response.writeHead(200, { 'content-length': '1000' })
      response.write('{"name":')
      setImmediate(() => response.destroy())
      return undefined
    })
    assert.equal((await send(carrier)).is, 'unknown')
  })

  test('an answer without end: it may have happened, and is not read to its end', async () => {
    network.answer((_, response) => {
      response.writeHead(200)
      const more = setInterval(() => response.write(' '.repeat(100_000)), 1)
      response.once('close', () => clearInterval(more))
      return undefined
    })
    const outcome = await send(carrier)
    assert.ok(outcome.is === 'unknown')
    assert.equal(outcome.detail, 'the response exceeds 1048576 bytes')
  })

  test('an answer that is nearly as long as is read: sent', async () => {
    network.answer((asked) => ({ body: { ...(echo(asked).body as object), padding: ' '.repeat(1_000_000) } }))
    assert.equal((await send(carrier)).is, 'sent')
  })

  test('Retry-After is honoured, as seconds and as a date', async () => {
    network.answer(() => failure(429, 'RESOURCE_EXHAUSTED', { 'retry-after': '7' }))
    const seconds = await send(carrier)
    assert.ok(seconds.is === 'retry' && seconds.afterMs === 7_000)
    network.answer((_, response) => {
      response.setHeader('retry-after', ['5', '12'])
      return failure(429, 'RESOURCE_EXHAUSTED')
    })
    const twice = await send(carrier)
    assert.ok(twice.is === 'retry' && twice.afterMs === 5_000)
    network.answer(() => failure(503, 'UNAVAILABLE', { 'retry-after': new Date(Date.now() + 90_000).toUTCString() }))
    const date = await send(carrier)
    assert.ok(date.is === 'unknown' && date.afterMs > 85_000 && date.afterMs <= 90_000)
  })

  test('a denied agent is an error in the log, once; no text or number ever is in it', async () => {
    network.answer(() => failure(403, 'PERMISSION_DENIED'))
    const agentId = newAgent()
    for (let index = 0; index < 3; index += 1) await send(carrier, { agentId })
    assert.equal(log.split('\n').filter((line) => line.includes('denies this agent') && line.includes(`"${agentId}"`)).length, 1)
    assert.doesNotMatch(log, /CANARY|48500100\d{3}/)
  })
})

test('nobody listens: it did not happen', async () => {
  const closed = createServer()
  await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve))
  const { port } = closed.address() as { port: number }
  await new Promise((resolve) => closed.close(resolve))
  const { settings } = await startNetwork()
  assert.equal((await send(connect({ ...settings, address: `http://127.0.0.1:${port}` }))).is, 'retry')
  const serviceAccount = { ...settings.serviceAccount, token_uri: `http://127.0.0.1:${port}/token` }
  assert.equal((await send(connect({ ...settings, serviceAccount }))).is, 'retry')
})

describe('an answer that does not come', async () => {
  const network = await startNetwork()
  const http = createHttp(network.settings.address, 1, 300)
  after(() => http.close())

  test('is not waited for longer than its time', async () => {
    network.answer(() => undefined)
    await assert.rejects(
      http.call({ method: 'GET', path: '/v1' }),
      (error) => !(error instanceof NotSent) && /no response/.test(`${error}`),
    )
  })

  test('to a request that never got a connection was not sent, and is not sent later', async () => {
    network.answer(() => undefined)
    // Where the second begins some milliseconds later, as on a busy machine, it gets the connection that the first has just left.
    const notSent = await until('the second of two never got the one connection', async () => {
      const paths = [`/v1/${randomUUID()}`, `/v1/${randomUUID()}`] as const
      const [first, second] = await Promise.allSettled(paths.map((path) => http.call({ method: 'GET', path })))
      assert.ok(first?.status === 'rejected' && !(first.reason instanceof NotSent))
      assert.ok(second?.status === 'rejected')
      return second.reason instanceof NotSent ? paths[1] : undefined
    })
    network.answer(() => ({}))
    assert.equal((await http.call({ method: 'GET', path: '/v1/third' })).status, 200)
    const asked = network.asked.map(({ path }) => path)
    assert.equal(asked.at(-1), '/v1/third')
    assert.ok(!asked.includes(notSent))
  })

  test('is not waited for longer where it comes byte by byte', async () => {
    network.answer((_, response) => {
      response.writeHead(200)
      const more = setInterval(() => response.write(' '), 20)
      response.once('close', () => clearInterval(more))
      return undefined
    })
    await assert.rejects(http.call({ method: 'GET', path: '/v1' }), /no response within 0.3 s/)
  })
})

describe('a network in trouble', { concurrency: true }, () => {
  test('is left alone after five failures in a row, then asked once, and used again when it answers', async () => {
    const network = await startNetwork()
    const carrier = connect(network.settings)
    const agentId = newAgent()
    network.answer(() => failure(503, 'UNAVAILABLE'))
    for (let index = 0; index < 5; index += 1) assert.equal((await send(carrier, { agentId })).is, 'unknown')
    assert.equal(network.asked.length, 5)
    const paused = await Promise.all([1, 2, 3].map(() => send(carrier, { agentId })))
    // What is left of at most 500 ms, and up to 500 ms more, so that they do not come back all at once.
    assert.ok(paused.every((outcome) => outcome.is === 'not-tried' && outcome.afterMs >= 250 && outcome.afterMs <= 1_000))
    assert.equal(network.asked.length, 5)
    // Another agent has done nothing wrong.
    assert.equal((await send(carrier)).is, 'unknown')

    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    network.answer(async (asked) => {
      await held
      return echo(asked)
    })
    const going: Promise<SendResult>[] = []
    await until('one goes ahead', async () => {
      going.push(send(carrier, { agentId }))
      return network.asked.length === 7
    })
    const behind = await Promise.all([1, 2, 3].map(() => send(carrier, { agentId })))
    assert.deepEqual(
      behind.map(({ is }) => is),
      ['not-tried', 'not-tried', 'not-tried'],
    )
    assert.equal(network.asked.length, 7)
    release()
    assert.equal((await Promise.all(going)).filter(({ is }) => is === 'sent').length, 1)
    assert.ok((await Promise.all([1, 2, 3].map(() => send(carrier, { agentId })))).every(({ is }) => is === 'sent'))
  })

  test('that asks for a pause gets it at once', async () => {
    const network = await startNetwork()
    const carrier = connect(network.settings)
    const agentId = newAgent()
    network.answer(() => failure(429, 'RESOURCE_EXHAUSTED', { 'retry-after': '30' }))
    const first = await send(carrier, { agentId })
    assert.ok(first.is === 'retry' && first.afterMs === 30_000)
    const paused = await send(carrier, { agentId })
    assert.ok(paused.is === 'not-tried' && paused.afterMs > 20_000 && paused.afterMs <= 30_500)
    assert.equal(network.asked.length, 1)
  })

  test('is told in the log, with what it answered, or why it could not be asked', async () => {
    const network = await startNetwork()
    const agents = [newAgent(), newAgent()] as const
    network.answer(() => failure(401, 'UNAUTHENTICATED', { 'retry-after': '30' }))
    await send(connect(network.settings), { agentId: agents[0] })
    const unreachable = connect({ ...network.settings, address: 'http://127.0.0.1:1' })
    for (let index = 0; index < 5; index += 1) await send(unreachable, { agentId: agents[1] })
    const lines = log.split('\n').filter((line) => line.includes('the RCS network is failing: messages paused'))
    const reasons = agents.map((agentId) => lines.map((line) => JSON.parse(line)).find((line) => line.agentId === agentId).reason)
    assert.deepEqual(reasons, ['HTTP 401', 'connect ECONNREFUSED 127.0.0.1:1'])
  })
})

test('no more requests are under way at once than there are connections', async () => {
  const network = await startNetwork(7)
  const carrier = connect(network.settings)
  assert.equal(carrier.concurrency, 7)
  let open = 0
  let most = 0
  network.answer(async (asked) => {
    open += 1
    most = Math.max(most, open)
    await new Promise((resolve) => setTimeout(resolve, 5))
    open -= 1
    return echo(asked)
  })
  const outcomes = await Promise.all(Array.from({ length: 60 }, () => send(carrier)))
  assert.ok(outcomes.every(({ is }) => is === 'sent'))
  assert.equal(most, 7)
})

describe('against the simulator', async () => {
  const simulator = await startSimulator()
  const carrier = connect(simulator.rcs)

  test('numbers without RCS, and refused ones, are refused for good', async () => {
    const noRcs = await send(carrier, { recipient: '+48500100102' })
    assert.ok(noRcs.is === 'failed' && noRcs.reason === 'NOT_REACHABLE')
    const refused = await send(carrier, { recipient: '+48500100103' })
    assert.ok(refused.is === 'failed' && refused.reason === 'REJECTED')
  })

  test('a repeated send, after an answer that was lost, leaves the phone with one message', async () => {
    await simulator.ask('faults', { api: { dropAfter: { count: 1 } } }, 'PUT')
    const message = { messageId: randomUUID(), agentId: newAgent(), recipient: '+48500100210' }
    assert.equal((await send(carrier, message)).is, 'unknown')
    assert.equal((await send(carrier, message)).is, 'sent')
    const { messages } = await simulator.ask(`phones/${message.recipient}`)
    assert.deepEqual(
      messages.map(({ messageId, attempts }: any) => [messageId, attempts]),
      [[message.messageId, 2]],
    )
  })

  test('an undelivered message can be revoked, a delivered one can’t', async () => {
    const waiting = { messageId: randomUUID(), agentId: newAgent(), recipient: '+48500100104' }
    await send(carrier, waiting)
    assert.deepEqual(await carrier.revoke(waiting), { is: 'accepted' })
    const [revoked] = (await simulator.ask(`phones/${waiting.recipient}`)).messages
    assert.notEqual(revoked.revokedAt, null)

    const delivered = { messageId: randomUUID(), agentId: newAgent(), recipient: '+48500100310' }
    await send(carrier, delivered)
    await until('it is delivered', async () => (await simulator.ask(`phones/${delivered.recipient}`)).messages[0].deliveredAt)
    assert.deepEqual(await carrier.revoke(delivered), { is: 'too-late' })
  })
})
