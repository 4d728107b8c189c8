import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { createTestDatabase } from '../../support/database.ts'
import { startNetwork } from '../../support/network.ts'
import { parseAnswer, rawConnection } from '../../support/raw.ts'
import { call, startTestService } from '../../support/service.ts'
import { until } from '../../support/until.ts'

// The webhook is served on Node's HTTP server, without Fastify. What Fastify does for every other route must hold for this one too.

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const { settings } = await startNetwork()
const findCarriers = async () => ({ rcs: [settings], sms: undefined })
const service = await startTestService({ HERALD_DATABASE_URL }, { findCarriers })
const PATH = '/carriers/network/webhook'

type Options = { method?: string; path?: string; type?: string; body?: string; headers?: string[]; isSigned?: boolean }

/** A signed event as bytes on the wire, and its id. */
function receipt({ method = 'POST', path = PATH, type = 'application/json', body, headers = [], isSigned = true }: Options = {}) {
  const eventId = randomUUID()
  const event = JSON.stringify({ senderPhoneNumber: '+48500100200', agentId: 'shop@rbm.goog', eventId, eventType: 'IS_TYPING' })
  const signature = createHmac('sha512', settings.webhookToken).update(event).digest('base64')
  const envelope = body ?? JSON.stringify({ message: { data: Buffer.from(event).toString('base64') } })
  const isChunked = headers.some((header) => header.startsWith('Transfer-Encoding'))
  const head = [
    `${method} ${path} HTTP/1.1`,
    'Host: x',
    `Content-Type: ${type}`,
    ...(isSigned ? [`X-Goog-Signature: ${signature}`] : []),
    ...(isChunked ? [] : [`Content-Length: ${Buffer.byteLength(envelope)}`]),
    ...headers,
  ]
  return { eventId, head: `${head.join('\r\n')}\r\n\r\n`, envelope, bytes: `${head.join('\r\n')}\r\n\r\n${envelope}` }
}

function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`
}

async function isKept(eventId: string): Promise<boolean> {
  const { rows } = await pool.query(`select from carrier_events where event->>'eventId' = $1`, [eventId])
  return rows.length === 1
}

function statuses(received: string): number[] {
  return [...received.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status))
}

/** Sends the pieces one after the other on one connection, and returns what came back once there are `count` responses. */
async function responsesTo(pieces: string[], count: number, url = service.url): Promise<string> {
  const connection = rawConnection(url)
  for (const piece of pieces) {
    connection.send(piece)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await until(`${count} responses`, () => statuses(connection.received()).length >= count && /\r\n\r\n/.test(connection.received()))
  connection.close()
  return await connection.ended
}

describe('a connection', () => {
  test('goes on after a request that was refused by its head or its signature', async () => {
    for (const refused of [
      receipt({ path: '/carriers/nobody/webhook' }),
      receipt({ isSigned: false }),
      receipt({ isSigned: false, body: `"${'x'.repeat(10_000)}"` }),
      receipt({ type: 'text/plain' }),
    ]) {
      const { eventId, bytes } = receipt()
      const received = await responsesTo([refused.bytes + bytes], 2)
      assert.equal(statuses(received)[1], 200, received)
      assert.ok(await isKept(eventId))
    }
  })

  test('ends after a body that makes no sense', async () => {
    const connection = rawConnection(service.url)
    connection.send(receipt({ body: '{' }).bytes)
    const { status, head, body } = parseAnswer(await connection.ended)
    assert.deepEqual([status, body.code, body.details], [400, 'RCS_INVALID_REQUEST', [{ path: '', reason: 'the body is not JSON' }]])
    assert.match(head, /\r\nconnection: close\r\n/)
    assert.match(head, new RegExp(`\r\nx-request-id: ${body.requestId}\r\n`))
  })

  test('takes several requests at once, and each gets its response in order', async () => {
    const [first, second, third] = [receipt(), receipt(), receipt()]
    const received = await responsesTo([first.bytes + receipt({ isSigned: false }).bytes + second.bytes + third.bytes], 4)
    assert.deepEqual(statuses(received), [200, 401, 200, 200])
    for (const { eventId } of [first, second, third]) assert.ok(await isKept(eventId))
    const ids = [...received.matchAll(/x-request-id: (req_[0-9a-f]{32})\r\n/g)].map(([, id]) => id)
    assert.equal(new Set(ids).size, 4)
  })
})

describe('a body', () => {
  test('arrives in pieces, with its length or in chunks', async () => {
    const whole = receipt()
    const pieces = [whole.bytes.slice(0, 30), whole.bytes.slice(30, -100), whole.bytes.slice(-100, -1), whole.bytes.slice(-1)]
    assert.deepEqual(statuses(await responsesTo(pieces, 1)), [200])
    assert.ok(await isKept(whole.eventId))
    const { eventId, head, envelope } = receipt({ headers: ['Transfer-Encoding: chunked'] })
    const chunks = [head, chunk(envelope.slice(0, 10)), chunk(envelope.slice(10)), '0\r\n\r\n']
    assert.deepEqual(statuses(await responsesTo(chunks, 1)), [200])
    assert.ok(await isKept(eventId))
  })

  test('is refused as soon as it exceeds 256 KiB; the rest is read and forgotten, and the next request is served', async () => {
    const { head } = receipt({ headers: ['Transfer-Encoding: chunked'] })
    const connection = rawConnection(service.url)
    connection.send(head)
    for (let sent = 0; sent <= 262_144; sent += 16_384) connection.send(chunk('x'.repeat(16_384)))
    await until('a response before the end of the body', () => connection.received().endsWith('}'))
    assert.equal(parseAnswer(connection.received()).status, 413)
    const { eventId, bytes } = receipt()
    connection.send(`${chunk('x'.repeat(16_384))}0\r\n\r\n${bytes}`)
    await until('the next response', () => statuses(connection.received()).length === 2)
    assert.equal(statuses(connection.received())[1], 200)
    assert.ok(await isKept(eventId))
    connection.close()
  })

  test('that is cut off changes nothing and leaves no error in the log', async () => {
    const { eventId, bytes } = receipt()
    for (const close of ['close', 'reset'] as const) {
      const connection = rawConnection(service.url)
      connection.send(bytes.slice(0, -10))
      if (close === 'close') await new Promise((resolve) => setTimeout(resolve, 50))
      connection[close]()
      await connection.ended
    }
    assert.deepEqual(statuses(await responsesTo([receipt().bytes], 1)), [200])
    assert.equal(await isKept(eventId), false)
    assert.doesNotMatch(service.log(), /"level":"error"|the database is out of reach/)
  })

  test('that comes too slowly is answered with 408', async () => {
    const timeouts = { headersMs: 400, requestMs: 800, keepAliveMs: 300 }
    const { url } = await startTestService({ HERALD_DATABASE_URL }, { findCarriers, timeouts })
    const connection = rawConnection(url)
    connection.send(receipt({ body: 'x'.repeat(1_000) }).head)
    const timer = setInterval(() => connection.send('x'), 50)
    const { status, body } = parseAnswer(await connection.ended)
    clearInterval(timer)
    assert.deepEqual([status, body.code], [408, 'RCS_REQUEST_TIMEOUT'])
  })

  test('must be JSON by its Content-Type, whatever its charset', async () => {
    for (const [type, status] of [
      ['application/json; charset=utf-8', 200],
      ['Application/JSON ;charset=latin1', 200],
      ['application/jsonp', 415],
      ['text/plain', 415],
      ['nonsense', 415],
      ['', 415],
    ] as const) {
      assert.deepEqual(statuses(await responsesTo([receipt({ type }).bytes], 1)), [status], type)
    }
  })
})

describe('the path', () => {
  test('is found however it is spelled', async () => {
    for (const path of [
      `${PATH}?x=1`,
      `${PATH}#x`,
      `http://elsewhere.example${PATH}`,
      '/carriers/net%77ork/webhook',
      '/%63arriers/network/webhook?%zz',
    ]) {
      assert.deepEqual(statuses(await responsesTo([receipt({ path }).bytes], 1)), [200], path)
    }
    for (const path of [
      `${PATH}/`,
      '/carriers/webhook',
      '/carriers//webhook',
      '/Carriers/network/webhook',
      '/carriers/network%2fwebhook',
    ]) {
      assert.deepEqual(statuses(await responsesTo([receipt({ path }).bytes], 1)), [404], path)
    }
  })

  test('has no other method than POST', async () => {
    for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS']) {
      const { status, headers, body } = await call(`${service.url}${PATH}`, { method })
      assert.deepEqual([status, body.code, headers.get('allow')], [405, 'RCS_METHOD_NOT_ALLOWED', 'POST'])
    }
  })

  test('needs the header Host, and ignores an unknown expectation', async () => {
    const { bytes } = receipt({ headers: ['Expect: a-miracle'] })
    assert.deepEqual(statuses(await responsesTo([bytes], 1)), [200])
    const connection = rawConnection(service.url)
    connection.send(bytes.replace('Host: x\r\n', 'Connection: close\r\n'))
    const { status, body } = parseAnswer(await connection.ended)
    assert.deepEqual([status, body.details], [400, [{ path: '', reason: 'The header Host is missing.' }]])
  })
})

test('requests are in the log and the metrics by the pattern of the route', async () => {
  const own = await startTestService({ HERALD_DATABASE_URL }, { findCarriers })
  await responsesTo(
    [receipt().bytes + receipt({ isSigned: false }).bytes + receipt({ path: '/carriers/nobody/webhook' }).bytes],
    3,
    own.url,
  )
  const lines = () =>
    own
      .log()
      .split('\n')
      .filter((line) => line.includes('"msg":"request"'))
      .map((line) => JSON.parse(line))
  await until('three lines', () => lines().length === 3)
  assert.deepEqual(
    lines().map(({ status }) => status),
    [200, 401, 404],
  )
  for (const line of lines()) {
    assert.deepEqual(Object.keys(line), ['level', 'time', 'requestId', 'method', 'route', 'status', 'ms', 'msg'])
    assert.deepEqual([line.level, line.method, line.route], ['info', 'POST', '/carriers/:carrier/webhook'])
  }
  const { body } = await call(own.metricsUrl)
  for (const status of [200, 401, 404]) {
    const series = `herald_http_request_duration_seconds_count{method="POST",route="/carriers/:carrier/webhook",status="${status}"} 1\n`
    assert.ok(body.includes(series), series)
  }
})

test('while the service stops, a request under way is finished, and one that only then comes in gets 503', async () => {
  const own = await createTestDatabase()
  const stopping = await startTestService({ HERALD_DATABASE_URL: own.url }, { findCarriers })
  const [underWay, late] = [rawConnection(stopping.url), rawConnection(stopping.url)]
  const [first, second] = [receipt(), receipt()]
  const blocker = await own.pool.connect()
  await blocker.query('begin; lock table carrier_events')
  late.send(second.head.slice(0, -2))
  underWay.send(first.bytes)
  await until('the event waits in the database', async () => {
    const { rows } = await own.pool.query(`select from pg_locks where not granted and relation = 'carrier_events'::regclass`)
    return rows.length > 0
  })
  assert.equal(underWay.received(), '', 'nothing is sent before the event is committed')
  const stopped = stopping.stop()
  await until('no connection is accepted', () =>
    call(`${stopping.url}/healthz`).then(
      () => false,
      () => true,
    ),
  )
  late.send(`\r\n${second.envelope}`)
  const refused = parseAnswer(await late.ended)
  assert.deepEqual([refused.status, refused.body.code], [503, 'RCS_UNAVAILABLE'])
  assert.match(refused.head, /\r\nretry-after: 1\r\n/)
  await blocker.query('rollback')
  blocker.release()
  const received = await underWay.ended
  assert.deepEqual(statuses(received), [200])
  assert.match(received, /\r\nconnection: close\r\n/)
  await stopped
})
