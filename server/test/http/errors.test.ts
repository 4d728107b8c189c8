import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setQuotas } from '../../src/accounts/quotas.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { callerAt, newKey } from '../support/messages.ts'
import { cuttableDatabase } from '../support/proxy.ts'
import { parseResponse, rawConnection } from '../support/raw.ts'
import { type ApiResponse, call, createAssignedAgent, createCaller, startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const { url } = await startTestService({ HERALD_DATABASE_URL })

/** How much longer a response may take than a healthy one that was measured in the same run, beyond its limit. */
const BUSY_FACTOR = 5

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

/** Other processes only add time, so the quickest of several times counts. */
async function quickest(times: number, work: () => Promise<unknown>): Promise<number> {
  let ms = Number.POSITIVE_INFINITY
  for (let time = 0; time < times; time += 1) ms = Math.min(ms, await timed(work))
  return ms
}

/** Asserts the status, the whole body, and the headers that every response has. */
function assertError({ status, headers, body }: ApiResponse, expected: { status: number; code: string; details?: unknown }): void {
  const { requestId } = body
  assert.match(requestId, /^req_[0-9a-f]{32}$/)
  assert.equal(headers.get('x-request-id'), requestId)
  assert.equal(headers.get('content-type'), 'application/json; charset=utf-8')
  assert.equal(status, expected.status)
  assert.deepEqual(body, {
    statusCode: expected.status,
    code: expected.code,
    message: expected.code,
    requestId,
    ...(expected.details !== undefined && { details: expected.details }),
  })
}

const WRONG_CREDENTIALS = [
  {
    path: '/authorization',
    reason: 'must be "Bearer <integrationKey>:<secret>", with the current secret of a key that is neither revoked nor expired',
  },
]
const NO_ROUTE = [{ path: '', reason: 'There is no such path. Paths are case-sensitive and have no slash at the end; /docs lists them.' }]
const allows = (methods: string) => [{ path: '', reason: `The path allows only ${methods}.` }]

describe('an error response is', () => {
  test('400 RCS_INVALID_REQUEST with what is wrong and where', async () => {
    const { authorization } = await createCaller(pool)
    assertError(await call(`${url}/v1/agents?misspelt=1`, { authorization }), {
      status: 400,
      code: 'RCS_INVALID_REQUEST',
      details: [{ path: '/misspelt', reason: 'is not known here; is it misspelt?' }],
    })
  })

  test('401 RCS_UNAUTHORIZED with WWW-Authenticate', async () => {
    const response = await call(`${url}/v1/agents`)
    assertError(response, { status: 401, code: 'RCS_UNAUTHORIZED', details: WRONG_CREDENTIALS })
    assert.equal(response.headers.get('www-authenticate'), 'Bearer')
  })

  test('403 RCS_MODULE_NOT_AVAILABLE to an account without rcs, before any check of the request', async () => {
    const { authorization } = await createCaller(pool, ['sms'])
    const details = [{ path: '', reason: 'The account does not have the module rcs.' }]
    for (const path of ['/agents', '/agents?misspelt=1', '/nowhere']) {
      assertError(await call(`${url}/v1${path}`, { authorization }), { status: 403, code: 'RCS_MODULE_NOT_AVAILABLE', details })
    }
    const patch = await call(`${url}/v1/agents/x`, { method: 'PATCH', authorization, body: 'no json' })
    assertError(patch, { status: 403, code: 'RCS_MODULE_NOT_AVAILABLE', details })
  })

  test('404 RCS_AGENT_NOT_FOUND and RCS_ROUTE_NOT_FOUND', async () => {
    const { authorization } = await createCaller(pool)
    const patch = await call(`${url}/v1/agents/nobody`, { method: 'PATCH', authorization, body: { displayName: 'X' } })
    const details = [{ path: '/agentId', reason: 'names no active agent of this account' }]
    assertError(patch, { status: 404, code: 'RCS_AGENT_NOT_FOUND', details })
    for (const path of ['/v1/nowhere', '/v1', '/v1/', '/v1/agents/', '/v1/agents/a/b', '/v1//agents']) {
      assertError(await call(`${url}${path}`, { authorization }), { status: 404, code: 'RCS_ROUTE_NOT_FOUND', details: NO_ROUTE })
    }
    assertError(await call(`${url}/v1/nowhere`, { method: 'POST', authorization, body: '{"cut off' }), {
      status: 404,
      code: 'RCS_ROUTE_NOT_FOUND',
      details: NO_ROUTE,
    })
    assertError(await call(`${url}/nowhere`), { status: 404, code: 'RCS_ROUTE_NOT_FOUND', details: NO_ROUTE })
  })

  test('404 RCS_ROUTE_NOT_FOUND to a path with an empty parameter, after the credentials and before the body', async () => {
    const { authorization } = await createCaller(pool)
    const paths: [method: string, path: string][] = [
      ['GET', '/v1/messages/'],
      ['GET', '/v1/messages//timeline'],
      ['POST', '/v1/messages//cancel'],
      ['PUT', '/v1/segments/'],
      ['DELETE', '/v1/segments/1/members/'],
      ['DELETE', '/v1/opt-outs/'],
    ]
    for (const [method, path] of paths) {
      const body = method === 'PUT' ? '{"cut off' : undefined
      assertError(await call(url + path, { method, authorization, body }), { status: 404, code: 'RCS_ROUTE_NOT_FOUND', details: NO_ROUTE })
      assertError(await call(url + path, { method, body }), { status: 401, code: 'RCS_UNAUTHORIZED', details: WRONG_CREDENTIALS })
    }
  })

  test('405 RCS_METHOD_NOT_ALLOWED with the allowed methods', async () => {
    const { authorization } = await createCaller(pool)
    for (const method of ['POST', 'DELETE', 'PUT', 'OPTIONS', 'PROPFIND', 'QUERY']) {
      const response = await call(`${url}/v1/agents`, { method, authorization })
      assertError(response, { status: 405, code: 'RCS_METHOD_NOT_ALLOWED', details: allows('GET, HEAD') })
      assert.equal(response.headers.get('allow'), 'GET, HEAD')
    }
    const withBody = await call(`${url}/v1/agents`, { method: 'PUT', authorization, body: '{"cut off' })
    assertError(withBody, { status: 405, code: 'RCS_METHOD_NOT_ALLOWED', details: allows('GET, HEAD') })
    const empty = await call(`${url}/v1/agents/x`, { method: 'DELETE', authorization, headers: { 'content-type': 'application/json' } })
    assertError(empty, { status: 405, code: 'RCS_METHOD_NOT_ALLOWED', details: allows('PATCH') })
    const encoded = await call(`${url}/v1/%61gents`, { method: 'PUT', authorization })
    assertError(encoded, { status: 405, code: 'RCS_METHOD_NOT_ALLOWED', details: allows('GET, HEAD') })
    const one = await call(`${url}/v1/agents/any`, { authorization })
    assertError(one, { status: 405, code: 'RCS_METHOD_NOT_ALLOWED', details: allows('PATCH') })
    assert.equal(one.headers.get('allow'), 'PATCH')
    assertError(await call(`${url}/healthz`, { method: 'POST' }), {
      status: 405,
      code: 'RCS_METHOD_NOT_ALLOWED',
      details: allows('GET, HEAD'),
    })
  })

  test('401 without credentials, whether the path and method exist or not', async () => {
    for (const [method, path] of [
      ['GET', '/agents'],
      ['GET', '/nowhere'],
      ['DELETE', '/agents'],
      ['PATCH', '/agents/x'],
    ]) {
      assertError(await call(`${url}/v1${path}`, { method: method as string }), {
        status: 401,
        code: 'RCS_UNAUTHORIZED',
        details: WRONG_CREDENTIALS,
      })
    }
  })

  test('413 RCS_PAYLOAD_TOO_LARGE to a body of one byte more than 256 KiB, and of ten times that', async () => {
    const { authorization } = await createCaller(pool)
    const bodyOf = (bytes: number) => `{"displayName":"${'x'.repeat(bytes - 18)}"}`
    const patch = (bytes: number) => call(`${url}/v1/agents/x`, { method: 'PATCH', authorization, body: bodyOf(bytes) })
    assert.equal((await patch(262_144)).body.code, 'RCS_INVALID_REQUEST')
    assertError(await patch(262_145), { status: 413, code: 'RCS_PAYLOAD_TOO_LARGE' })
    assertError(await patch(2_621_440), { status: 413, code: 'RCS_PAYLOAD_TOO_LARGE' })
  })

  test('415 RCS_UNSUPPORTED_MEDIA_TYPE to anything but uncompressed JSON', async () => {
    const { authorization } = await createCaller(pool)
    for (const contentType of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp', 'nonsense']) {
      const headers = { 'content-type': contentType }
      assertError(await call(`${url}/v1/agents/x`, { method: 'PATCH', authorization, headers, body: '{}' }), {
        status: 415,
        code: 'RCS_UNSUPPORTED_MEDIA_TYPE',
        details: [{ path: '', reason: 'Content-Type must be application/json' }],
      })
    }
    const headers = { 'content-encoding': 'gzip' }
    const zipped = await call(`${url}/v1/agents/x`, { method: 'PATCH', authorization, headers, body: '{}' })
    assertError(zipped, {
      status: 415,
      code: 'RCS_UNSUPPORTED_MEDIA_TYPE',
      details: [{ path: '', reason: 'Content-Encoding must be absent: the body must be sent uncompressed' }],
    })
  })

  test('429 RCS_RATE_LIMITED with Retry-After in whole seconds', async () => {
    const { authorization } = await createCaller(pool)
    for (let sent = 0; sent < 30; sent += 1) await call(`${url}/v1/agents`, { authorization })
    const response = await call(`${url}/v1/agents`, { authorization })
    const seconds = Number(response.headers.get('retry-after'))
    assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60)
    assertError(response, {
      status: 429,
      code: 'RCS_RATE_LIMITED',
      details: [{ path: '', reason: `At most 30 requests in 60 s; try again in ${seconds} s.` }],
    })
  })

  test('500 RCS_INTERNAL with nothing but the request id, under which the log has the error', async () => {
    const broken = await createTestDatabase()
    const service = await startTestService({ HERALD_DATABASE_URL: broken.url })
    const { authorization } = await createCaller(broken.pool)
    await ownerOf(broken.pool).query('alter table agents rename to agents_gone')
    const response = await call(`${service.url}/v1/agents`, { authorization })
    assertError(response, { status: 500, code: 'RCS_INTERNAL' })
    const fault = service
      .log()
      .split('\n')
      .find((line) => line.includes('"level":"error"')) as string
    assert.equal(JSON.parse(fault).requestId, response.body.requestId)
    assert.equal(JSON.parse(fault).err.code, '42P01')
  })

  test('503 RCS_UNAVAILABLE while the database is away, and 200 once it is back', async () => {
    const cuttable = await cuttableDatabase(HERALD_DATABASE_URL)
    const service = await startTestService({ HERALD_DATABASE_URL: cuttable.url })
    const { authorization } = await createCaller(pool)
    assert.equal((await call(`${service.url}/v1/agents`, { authorization })).status, 200)

    await cuttable.cut()
    const response = await call(`${service.url}/v1/agents`, { authorization })
    const details = [{ path: '', reason: 'The database is out of reach, or does not respond in time.' }]
    assertError(response, { status: 503, code: 'RCS_UNAVAILABLE', details })
    assert.equal(response.headers.get('retry-after'), '1')
    assert.equal((await call(`${service.url}/healthz`)).status, 200)
    assert.equal((await call(`${service.url}/readyz`)).status, 503)

    await cuttable.restore()
    await until('the service serves again', async () => (await call(`${service.url}/readyz`)).status === 200)
    assert.equal((await call(`${service.url}/v1/agents`, { authorization })).status, 200)
  })

  const LOCKED_OUT: Record<string, { shut: (name: string) => string; open: (name: string) => string }> = {
    'is renamed': {
      shut: (name) => `alter database ${name} rename to ${name}_away`,
      open: (name) => `alter database ${name}_away rename to ${name}`,
    },
    'allows no connections': {
      shut: (name) => `alter database ${name} allow_connections false`,
      open: (name) => `alter database ${name} allow_connections true`,
    },
  }
  for (const [how, { shut, open }] of Object.entries(LOCKED_OUT)) {
    test(`503 RCS_UNAVAILABLE while the database ${how}`, async () => {
      const own = await createTestDatabase()
      const { authorization } = await createCaller(own.pool)
      const name = new URL(own.url).pathname.slice(1)
      const owner = ownerOf(pool)
      await own.pool.end()
      const service = await startTestService({ HERALD_DATABASE_URL: own.url, HERALD_LIMITS: 'memory' }, { roles: ['api'] })
      assert.equal((await call(`${service.url}/v1/agents`, { authorization })).status, 200)
      const disconnect = () => owner.query('select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1', [name])
      // The service connects again at any moment: a database with connections cannot be renamed.
      await until('the database is shut', async () => (await disconnect()) && owner.query(shut(name)).catch(() => undefined))
      await disconnect()
      const response = await call(`${service.url}/v1/agents`, { authorization })
      assert.deepEqual([response.status, response.body.code, response.headers.get('retry-after')], [503, 'RCS_UNAVAILABLE', '1'])
      assert.equal((await call(`${service.url}/readyz`)).status, 503)
      await owner.query(open(name))
      await until('the service serves again', async () => (await call(`${service.url}/v1/agents`, { authorization })).status === 200)
      assert.doesNotMatch(service.log(), /"level":"error"/)
    })
  }

  test('503 RCS_UNAVAILABLE within 3 s to fifty concurrent requests while the database does not respond', async () => {
    const cuttable = await cuttableDatabase(HERALD_DATABASE_URL)
    const service = await startTestService({ HERALD_DATABASE_URL: cuttable.url, HERALD_LIMITS: 'memory' })
    const { authorization } = await createCaller(pool)
    const requests = () => Promise.all(Array.from({ length: 50 }, () => call(`${service.url}/v1/agents`, { authorization })))
    const healthyMs = await quickest(3, requests)
    cuttable.freeze()
    for (let round = 0; round < 2; round += 1) {
      const ms = await timed(async () => assert.ok((await requests()).every(({ status }) => status === 503)))
      assert.ok(ms < 3_000 + BUSY_FACTOR * healthyMs, `${ms} ms, ${healthyMs} ms while healthy`)
      assert.equal((await call(`${service.url}/readyz`)).status, 503)
    }
    assert.match(service.log(), /"level":"warn".*the database is out of reach/)
    await service.stop()
  })

  test('503 RCS_UNAVAILABLE within 5 s to POST /messages of known callers, with and without quota to spare', async () => {
    const cuttable = await cuttableDatabase(HERALD_DATABASE_URL)
    const service = await startTestService({ HERALD_DATABASE_URL: cuttable.url, HERALD_LIMITS: 'memory' }, { roles: ['api'] })
    const [roomy, full] = [await createCaller(pool), await createCaller(pool)]
    await setQuotas(pool, full.accountId, { messagesPerDay: 100 })
    const senders = await Promise.all(
      [roomy, full].map(async (caller) => callerAt(service.url, { ...caller, agentId: await createAssignedAgent(pool, caller.accountId) })),
    )
    const sends = senders.map(({ send, request }) => async (status: number) => {
      assert.equal((await send(newKey(), request())).status, status)
    })
    const healthyMs: number[] = []
    for (const sendOne of sends) healthyMs.push(await quickest(5, () => sendOne(202)))
    cuttable.freeze()
    for (const [index, sendOne] of sends.entries()) {
      const ms = await timed(() => sendOne(503))
      assert.ok(ms < 5_000 + BUSY_FACTOR * (healthyMs[index] as number), `${ms} ms, ${healthyMs[index]} ms while healthy`)
    }
    await service.stop()
  })

  test('503 RCS_UNAVAILABLE to a request that arrives during a stop, while one in progress is completed', async () => {
    const own = await createTestDatabase()
    // Longer than the test: a stop that waited for an idle connection would not end.
    const timeouts = { headersMs: 600_000, requestMs: 600_000, keepAliveMs: 600_000 }
    const service = await startTestService({ HERALD_DATABASE_URL: own.url }, { timeouts })
    const { authorization } = await createCaller(own.pool)
    const [underWay, late] = [rawConnection(service.url), rawConnection(service.url)]
    const request = `GET /v1/agents HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n`

    // A lock holds the first request while the stop begins. The second one is incomplete by then.
    const blocker = await own.pool.connect()
    await blocker.query('begin; lock table integration_keys')
    late.send(request)
    underWay.send(`${request}\r\n`)
    await until('the request waits in the database', async () => {
      const { rows } = await own.pool.query(`select from pg_locks where not granted and relation = 'integration_keys'::regclass`)
      return rows.length > 0
    })
    const stopped = service.stop()
    await until('new connections are rejected', () =>
      call(`${service.url}/healthz`).then(
        () => false,
        () => true,
      ),
    )
    late.send('\r\n')
    const refused = parseResponse(await late.ended)
    assert.equal(refused.status, 503)
    assert.match(refused.head, /retry-after: 1/)
    assert.equal(refused.body.code, 'RCS_UNAVAILABLE')
    await blocker.query('rollback')
    blocker.release()
    assert.equal(parseResponse(await underWay.ended).status, 200)
    await stopped
  })
})
