import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTestDatabase } from '../../support/database.ts'
import { startNetwork } from '../../support/network.ts'
import { parseResponse, rawConnection } from '../../support/raw.ts'
import { call, startTestService } from '../../support/service.ts'
import { until } from '../../support/until.ts'

// The webhook is served by Node's HTTP server, without Fastify. What Fastify does for every other route must hold for this one too.

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const { settings } = await startNetwork()
const findCarriers = async () => ({ rcs: [settings], sms: undefined })
const service = await startTestService({ HERALD_DATABASE_URL }, { findCarriers })
const PATH = '/carriers/network/webhook'
const CHUNKED = ['Transfer-Encoding: chunked']

type Options = { path?: string; type?: string; body?: string; headers?: string[]; isSigned?: boolean }

/** A signed event as bytes on the wire, and its id. */
function receipt({ path = PATH, type = 'application/json', body, headers = [], isSigned = true }: Options = {}) {
  const eventId = randomUUID()
  const event = JSON.stringify({ senderPhoneNumber: '+48500100200', agentId: 'shop@rbm.goog', eventId, eventType: 'IS_TYPING' })
  const signature = createHmac('sha512', settings.webhookToken).update(event).digest('base64')
  const envelope = body ?? JSON.stringify({ message: { data: Buffer.from(event).toString('base64') } })
  const lines = [
    `POST ${path} HTTP/1.1`,
    'Host: x',
    `Content-Type: ${type}`,
    ...(isSigned ? [`X-Goog-Signature: ${signature}`] : []),
    ...(headers === CHUNKED ? [] : [`Content-Length: ${Buffer.byteLength(envelope)}`]),
    ...headers,
  ]
  const head = `${lines.join('\r\n')}\r\n\r\n`
  return { eventId, head, envelope, bytes: head + envelope }
}

function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`
}

async function isStored(eventId: string): Promise<boolean> {
  const { rows } = await pool.query(`select from carrier_events where event->>'eventId' = $1`, [eventId])
  return rows.length === 1
}

function statusesIn(received: string): number[] {
  return [...received.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status))
}

/** Sends the pieces as packets of their own on one connection, and returns what came back once there are `count` responses. */
async function responsesTo(pieces: string[], count: number, url = service.url): Promise<string> {
  const connection = rawConnection(url)
  for (const piece of pieces) {
    connection.send(piece)
    if (pieces.length > 1) await sleep(20)
  }
  await until(`${count} responses`, () => statusesIn(connection.received()).length >= count && /\r\n\r\n/.test(connection.received()))
  connection.close()
  return await connection.ended
}

async function statusOf(options: Options): Promise<number | undefined> {
  return statusesIn(await responsesTo([receipt(options).bytes], 1))[0]
}

describe('a connection', () => {
  test('stays open after a request that was rejected for its head or its signature', async () => {
    const rejected: Options[] = [
      { path: '/carriers/nobody/webhook' },
      { isSigned: false },
      { isSigned: false, body: `"${'x'.repeat(10_000)}"` },
      { type: 'text/plain' },
    ]
    for (const options of rejected) {
      const { eventId, bytes } = receipt()
      const received = await responsesTo([receipt(options).bytes + bytes], 2)
      assert.equal(statusesIn(received)[1], 200, received)
      assert.ok(await isStored(eventId))
    }
  })

  test('ends after a body that is not JSON', async () => {
    const connection = rawConnection(service.url)
    connection.send(receipt({ body: '{' }).bytes)
    const { status, head, body } = parseResponse(await connection.ended)
    assert.deepEqual([status, body.code, body.details], [400, 'RCS_INVALID_REQUEST', [{ path: '', reason: 'the body is not JSON' }]])
    assert.match(head, /\r\nconnection: close\r\n/)
    assert.match(head, new RegExp(`\r\nx-request-id: ${body.requestId}\r\n`))
  })

  test('takes several requests at once and responds in their order', async () => {
    const [first, second, third] = [receipt(), receipt(), receipt()]
    const received = await responsesTo([first.bytes + receipt({ isSigned: false }).bytes + second.bytes + third.bytes], 4)
    assert.deepEqual(statusesIn(received), [200, 401, 200, 200])
    for (const { eventId } of [first, second, third]) assert.ok(await isStored(eventId))
    const ids = [...received.matchAll(/x-request-id: (req_[0-9a-f]{32})\r\n/g)].map(([, id]) => id)
    assert.equal(new Set(ids).size, 4)
  })
})

describe('a body', () => {
  test('may arrive in pieces, with its length or chunked', async () => {
    const { eventId, bytes } = receipt()
    const chunked = receipt({ headers: CHUNKED })
    const { head, envelope } = chunked
    for (const [id, pieces] of [
      [eventId, [bytes.slice(0, 30), bytes.slice(30, -100), bytes.slice(-100, -1), bytes.slice(-1)]],
      [chunked.eventId, [head, chunk(envelope.slice(0, 10)), chunk(envelope.slice(10)), '0\r\n\r\n']],
    ] as const) {
      assert.deepEqual(statusesIn(await responsesTo([...pieces], 1)), [200])
      assert.ok(await isStored(id))
    }
  })

  test('is rejected as soon as it exceeds 256 KiB; the rest is discarded and the next request served', async () => {
    const connection = rawConnection(service.url)
    connection.send(receipt({ headers: CHUNKED }).head)
    for (let sent = 0; sent <= 262_144; sent += 16_384) connection.send(chunk('x'.repeat(16_384)))
    await until('a response before the end of the body', () => connection.received().endsWith('}'))
    assert.equal(parseResponse(connection.received()).status, 413)
    const { eventId, bytes } = receipt()
    connection.send(`${chunk('x'.repeat(16_384))}0\r\n\r\n${bytes}`)
    await until('the next response', () => statusesIn(connection.received()).length === 2)
    assert.equal(statusesIn(connection.received())[1], 200)
    assert.ok(await isStored(eventId))
    connection.close()
  })

  test('changes nothing and logs no error if it is truncated', async () => {
    const { eventId, bytes } = receipt()
    for (const close of ['close', 'reset'] as const) {
      const connection = rawConnection(service.url)
      connection.send(bytes.slice(0, -10))
      if (close === 'close') await sleep(50)
      connection[close]()
      await connection.ended
    }
    assert.equal(await statusOf({}), 200)
    assert.equal(await isStored(eventId), false)
    assert.doesNotMatch(service.log(), /"level":"error"|the database is out of reach/)
  })

  test('gets 408 if it comes too slowly', async () => {
    const timeouts = { headersMs: 400, requestMs: 800, keepAliveMs: 300 }
    const { url } = await startTestService({ HERALD_DATABASE_URL }, { findCarriers, timeouts })
    const connection = rawConnection(url)
    connection.send(receipt({ body: 'x'.repeat(1_000) }).head)
    const timer = setInterval(() => connection.send('x'), 50)
    const { status, body } = parseResponse(await connection.ended)
    clearInterval(timer)
    assert.deepEqual([status, body.code], [408, 'RCS_REQUEST_TIMEOUT'])
  })

  test('must be JSON by its Content-Type, with any charset', async () => {
    const json = ['application/json; charset=utf-8', 'Application/JSON ;charset=latin1']
    for (const type of json) assert.equal(await statusOf({ type }), 200, type)
    for (const type of ['application/jsonp', 'text/plain', 'nonsense', '']) assert.equal(await statusOf({ type }), 415, type)
  })
})

describe('the path', () => {
  test('is found in every spelling that means the same', async () => {
    const encoded = ['/carriers/net%77ork/webhook', '/%63arriers/network/webhook?%zz']
    for (const path of [`${PATH}?x=1`, `${PATH}#x`, `http://elsewhere.example${PATH}`, ...encoded]) {
      assert.equal(await statusOf({ path }), 200, path)
    }
    const others = ['/carriers/webhook', '/carriers//webhook', '/Carriers/network/webhook', '/carriers/network%2fwebhook']
    for (const path of [`${PATH}/`, ...others]) assert.equal(await statusOf({ path }), 404, path)
  })

  test('allows no other method than POST', async () => {
    for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS']) {
      const { status, headers, body } = await call(`${service.url}${PATH}`, { method })
      assert.deepEqual([status, body.code, headers.get('allow')], [405, 'RCS_METHOD_NOT_ALLOWED', 'POST'])
    }
  })

  test('requires the header Host, and ignores an unknown expectation', async () => {
    const headers = ['Expect: a-miracle']
    assert.equal(await statusOf({ headers }), 200)
    const connection = rawConnection(service.url)
    connection.send(receipt({ headers }).bytes.replace('Host: x\r\n', 'Connection: close\r\n'))
    const { status, body } = parseResponse(await connection.ended)
    assert.deepEqual([status, body.details], [400, [{ path: '', reason: 'The header Host is missing.' }]])
  })
})

test('logs and counts requests by the pattern of the route', async () => {
  const own = await startTestService({ HERALD_DATABASE_URL, HERALD_LOG_LEVEL: 'debug' }, { findCarriers })
  const requests = [receipt(), receipt({ isSigned: false }), receipt({ path: '/carriers/nobody/webhook' })]
  await responsesTo([requests.map(({ bytes }) => bytes).join('')], 3, own.url)
  const requestLines = () =>
    own
      .log()
      .split('\n')
      .filter((line) => line.includes('"msg":"request"'))
  await until('three lines', () => requestLines().length === 3)
  const { body } = await call(own.metricsUrl)
  for (const [index, status] of [200, 401, 404].entries()) {
    const line = JSON.parse(requestLines()[index] ?? '')
    assert.deepEqual(Object.keys(line), ['level', 'time', 'requestId', 'method', 'route', 'status', 'ms', 'msg'])
    assert.deepEqual(
      [line.level, line.method, line.route, line.status],
      [status === 200 ? 'debug' : 'info', 'POST', '/carriers/:carrier/webhook', status],
    )
    const series = `herald_http_request_duration_seconds_count{method="POST",route="/carriers/:carrier/webhook",status="${status}"} 1\n`
    assert.ok(body.includes(series), series)
  }
})

test('a stopping service finishes a request in progress and rejects a later one with 503', async () => {
  const own = await createTestDatabase()
  const stopping = await startTestService({ HERALD_DATABASE_URL: own.url }, { findCarriers })
  const [inProgress, late] = [rawConnection(stopping.url), rawConnection(stopping.url)]
  const [first, second] = [receipt(), receipt()]
  const blocker = await own.pool.connect()
  await blocker.query('begin; lock table carrier_events')
  late.send(second.head.slice(0, -2))
  inProgress.send(first.bytes)
  await until('the event waits in the database', async () => {
    const { rows } = await own.pool.query(`select from pg_locks where not granted and relation = 'carrier_events'::regclass`)
    return rows.length > 0
  })
  assert.equal(inProgress.received(), '', 'nothing is sent before the event is committed')
  const stopped = stopping.stop()
  await until('no connection is accepted', () =>
    call(`${stopping.url}/healthz`).then(
      () => false,
      () => true,
    ),
  )
  late.send(`\r\n${second.envelope}`)
  const refused = parseResponse(await late.ended)
  assert.deepEqual([refused.status, refused.body.code], [503, 'RCS_UNAVAILABLE'])
  assert.match(refused.head, /\r\nretry-after: 1\r\n/)
  await blocker.query('rollback')
  blocker.release()
  const received = await inProgress.ended
  assert.deepEqual(statusesIn(received), [200])
  assert.match(received, /\r\nconnection: close\r\n/)
  await stopped
})
