import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { Registry } from 'prom-client'
import { createLogger } from '../../src/http/log.ts'
import { createAttempt } from '../../src/webhooks/attempt.ts'
import { createDestination } from '../../src/webhooks/destination.ts'
import { createEndpointWindow, type EndpointWindow } from '../../src/webhooks/endpoint-window.ts'
import { createWebhookMetrics } from '../../src/webhooks/metrics.ts'
import { newSecret } from '../../src/webhooks/sign.ts'
import { startSink } from './support.ts'

// What the response to one attempt means for its event and its endpoint.

function startAttempts(url: string, window: EndpointWindow = createEndpointWindow('any')) {
  const stopping = new AbortController()
  const registry = new Registry()
  const post = createAttempt({
    metrics: createWebhookMetrics(registry),
    logger: createLogger('silent'),
    stopping: stopping.signal,
    aborting: new AbortController().signal,
  })
  after(() => window.close())
  const target = { id: 1, url, secrets: [newSecret()] }
  const event = { eventId: '019a0000-0000-7000-8000-000000000000', kind: 'message.sent', occurredAt: new Date(), data: '{}' }
  const delivery = {
    ...event,
    endpointId: 1,
    accountId: 1,
    position: 1,
    generation: '3',
    attempts: 0,
    subjectId: null,
    hasNext: false,
    readAt: new Date(),
  }
  return { stopping, registry, tried: () => post(window, target, delivery, performance.now()) }
}

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

describe('a response', () => {
  const responses: [status: number, retryAfter: string, leastAfterMs: number, pauseMs: number][] = [
    [429, '120', 2 * MINUTE, 2 * MINUTE],
    [503, '120', 2 * MINUTE, 2 * MINUTE],
    [429, '3600', 60 * MINUTE, 5 * MINUTE],
    [503, '8640000', DAY, 5 * MINUTE],
    [503, '1', 5_000, 1_000],
    [500, '3600', 5_000, 0],
    [404, '3600', 5_000, 0],
  ]
  for (const [status, retryAfter, leastAfterMs, pauseMs] of responses) {
    test(`${status} with Retry-After ${retryAfter} postpones its event by ${leastAfterMs / 1000} s and pauses its endpoint for ${pauseMs / 1000} s`, async () => {
      const sink = await startSink((_, response) => void response.writeHead(status, { 'retry-after': retryAfter }).end())
      const result = await startAttempts(sink.url).tried()
      const { afterMs, ...rest } = result ?? assert.fail('there is a result')
      assert.deepEqual([rest.status, rest.isAccepted, rest.pauseMs], [status, false, pauseMs])
      // Plus up to a fifth, at random.
      assert.ok(afterMs !== null && afterMs >= leastAfterMs && afterMs <= leastAfterMs * 1.2, `${afterMs} ms`)
    })
  }

  test('200 is a success, also with Retry-After', async () => {
    const sink = await startSink((_, response) => void response.writeHead(200, { 'retry-after': '3600' }).end())
    const result = await startAttempts(sink.url).tried()
    assert.deepEqual([result?.isAccepted, result?.afterMs, result?.pauseMs], [true, null, 0])
  })
})

describe('a connection for which this machine lacks resources', () => {
  const url = 'http://127.0.0.1:9/hook'
  const failingWith = (error: Error) => {
    const destination = createDestination(url, {
      connections: 1,
      hosts: 'any',
      connector: (_, callback) => queueMicrotask(() => callback(error, null)),
    })
    after(() => destination.close())
    return destination
  }
  const withCode = (code: string) => Object.assign(new Error('a fault'), { code })
  const post = { headers: {}, body: '{}' }

  for (const code of ['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL']) {
    test(`(${code}) does not count as a failure of the endpoint, with one address or several`, async () => {
      for (const error of [withCode(code), new AggregateError([withCode(code), withCode('ECONNREFUSED')])]) {
        const { isStopped, status } = await failingWith(error).post(post)
        assert.deepEqual([isStopped, status], [true, undefined])
      }
    })
  }

  test('differs from one that the endpoint rejects', async () => {
    for (const code of ['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'ETIMEDOUT']) {
      assert.equal((await failingWith(withCode(code)).post(post)).isStopped, false, code)
    }
  })

  test('leaves the event untried and the window of the endpoint as it was', async () => {
    const window = { ...createEndpointWindow('any'), destination: () => failingWith(withCode('EMFILE')) }
    const { stopping, registry, tried } = startAttempts(url, window)
    const trying = tried()
    // The attempt waits a second before it returns, unless the process stops.
    setImmediate(() => stopping.abort())
    assert.equal(await trying, undefined)
    assert.equal(window.room(), 4)
    assert.doesNotMatch(await registry.metrics(), /herald_webhook_attempts_total\{/)
  })
})
