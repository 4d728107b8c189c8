import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { describe, test } from 'node:test'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { freePort } from '../support/ports.ts'
import { rawConnection } from '../support/raw.ts'
import { call, createCaller, startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const { url, metricsUrl } = await startTestService({ HERALD_DATABASE_URL })

describe('operations', () => {
  test('/healthz, /readyz, /metrics and /v1/openapi.json need no credentials', async () => {
    assert.deepEqual((await call(`${url}/healthz`)).body, { status: 'ok' })
    assert.deepEqual((await call(`${url}/readyz`)).body, { status: 'ready' })
    assert.equal((await call(metricsUrl)).status, 200)
    assert.equal((await call(`${url}/v1/openapi.json`)).body.openapi, '3.1.0')
  })

  test('/readyz is 503 if migrations are missing or altered, and 200 if a newer version has added some', async () => {
    const own = await createTestDatabase()
    const service = await startTestService({ HERALD_DATABASE_URL: own.url })
    await ownerOf(own.pool).query(`insert into schema_migrations (name, checksum) values ('9999_future', 'x')`)
    assert.equal((await call(`${service.url}/readyz`)).status, 200)
    await ownerOf(own.pool).query(`update schema_migrations set checksum = 'other'`)
    assert.match((await call(`${service.url}/readyz`)).body.reason, /is not the one that was applied/)
    await ownerOf(own.pool).query('delete from schema_migrations')
    assert.deepEqual((await call(`${service.url}/readyz`)).body, { status: 'not ready', reason: 'the database lacks migrations' })
  })

  test('/readyz is 503 while the database is read-only', async () => {
    const own = await createTestDatabase()
    const service = await startTestService({ HERALD_DATABASE_URL: own.url })
    const name = new URL(own.url).pathname.slice(1)
    const endConnections = () =>
      ownerOf(pool).query('select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1', [name])
    await ownerOf(pool).query(`alter database ${name} set default_transaction_read_only = on`)
    await endConnections()
    let response = await call(`${service.url}/readyz`)
    await until('the database is back', async () => {
      response = await call(`${service.url}/readyz`)
      return response.body.reason !== 'the database is out of reach'
    })
    assert.deepEqual([response.status, response.body], [503, { status: 'not ready', reason: 'the database is read-only' }])
    await ownerOf(pool).query(`alter database ${name} reset default_transaction_read_only`)
    await endConnections()
    await until('it is ready again', async () => (await call(`${service.url}/readyz`)).status === 200)
  })

  test('/metrics counts requests by route pattern, so that callers cannot create series', async () => {
    const { authorization } = await createCaller(pool)
    for (const id of ['a', 'b', 'c']) await call(`${url}/v1/agents/${id}`, { method: 'PATCH', authorization, body: { displayName: 'X' } })
    for (const path of ['/x', '/y', '/v1/z']) await call(`${url}${path}`, { authorization })
    const { body } = await call(metricsUrl)
    assert.match(body, /herald_http_request_duration_seconds_count\{method="PATCH",route="\/v1\/agents\/:agentId",status="404"\} 3/)
    assert.match(body, /herald_http_request_duration_seconds_count\{method="GET",route="unknown",status="404"\} 3/)
    assert.match(body, /herald_database_connections\{state="idle"\} \d/)
  })

  test('/metrics has its own port on loopback, and is 404 on the port of the API', async () => {
    assert.match(metricsUrl, /^http:\/\/127\.0\.0\.1:\d+\/metrics$/)
    assert.notEqual(new URL(metricsUrl).port, new URL(url).port)
    const beside = await call(`${url}/metrics`)
    assert.deepEqual([beside.status, beside.body.code], [404, 'RCS_ROUTE_NOT_FOUND'])
    assert.equal((await call(new URL('/healthz', metricsUrl).href)).body.code, 'RCS_ROUTE_NOT_FOUND')
  })

  test('/metrics moves to HERALD_METRICS_HOST and HERALD_METRICS_PORT, and half a request there does not delay a stop', async () => {
    const port = await freePort()
    const settings = { HERALD_METRICS_HOST: '127.0.0.2', HERALD_METRICS_PORT: `${port}` }
    const service = await startTestService({ HERALD_DATABASE_URL, ...settings })
    assert.equal(service.metricsUrl, `http://127.0.0.2:${port}/metrics`)
    assert.equal((await call(service.metricsUrl)).status, 200)
    assert.ok(service.log().includes(`"metricsUrl":"${service.metricsUrl}","msg":"metrics are served"`))
    const half = rawConnection(service.metricsUrl)
    half.send('GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ')
    await call(service.metricsUrl)
    await service.stop()
    // A stop that waited for it would have ended it with 408.
    assert.equal(await half.ended, '')
  })

  test('/metrics uses a free port if its default is in use', async () => {
    const other = createServer().unref()
    other.listen(9464, '127.0.0.1')
    // If another program has the port, it is in use as well.
    await Promise.race([once(other, 'listening'), new Promise((resolve) => other.once('error', resolve))])
    const service = await startTestService({ HERALD_DATABASE_URL, HERALD_METRICS_PORT: undefined })
    assert.notEqual(new URL(service.metricsUrl).port, '9464')
    assert.equal((await call(service.metricsUrl)).status, 200)
    other.close()
  })

  test('a start fails if the port in HERALD_METRICS_PORT is in use', async () => {
    const { port } = new URL(metricsUrl)
    await assert.rejects(startTestService({ HERALD_DATABASE_URL, HERALD_METRICS_PORT: port }), {
      message: `Can't listen on 127.0.0.1 port ${port}: the port is in use by another program (HERALD_METRICS_HOST and HERALD_METRICS_PORT).`,
    })
  })
})
