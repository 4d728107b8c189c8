import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fastify from 'fastify'
import pg from 'pg'
import { setModules } from '../../src/accounts/accounts.ts'
import { createAuthenticator } from '../../src/accounts/authenticate.ts'
import { createKey, listKeys, revokeKey } from '../../src/accounts/keys.ts'
import { createUseRecorder } from '../../src/accounts/last-use.ts'
import { loadConfig } from '../../src/config.ts'
import { createPolicies, guardRoutes } from '../../src/http/guard.ts'
import { createMemoryLimiter } from '../../src/http/limits-memory.ts'
import { createLogger } from '../../src/http/log.ts'
import { createServer } from '../../src/http/server.ts'
import { createTestDatabase } from '../support/database.ts'
import { callerAt, newKey } from '../support/messages.ts'
import { call, createAssignedAgent, createCaller, startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const limits = { HERALD_LIMITS: 'memory', HERALD_LIMIT_OTHERS_PER_MINUTE: '100000' }
const { url } = await startTestService({ HERALD_DATABASE_URL, HERALD_TRUST_PROXY: '127.0.0.1', ...limits }, { roles: ['api'] })

const get = (authorization: string, path = '/agents', from?: string) =>
  call(`${url}/v1${path}`, { authorization, headers: from === undefined ? {} : { 'X-Forwarded-For': from } })

async function keyWith(restrictions: Parameters<typeof createKey>[2], modules?: ('rcs' | 'sms')[]) {
  const { accountId } = await createCaller(pool, modules)
  const { integrationKey, secret } = await createKey(pool, accountId, restrictions)
  return { accountId, integrationKey, authorization: `Bearer ${integrationKey}:${secret}` }
}

describe('a key with addresses', () => {
  const CASES: [addresses: string[], from: string, isAllowed: boolean][] = [
    [['192.0.2.0/24'], '192.0.2.0', true],
    [['192.0.2.0/24'], '192.0.2.255', true],
    [['192.0.2.0/24'], '192.0.3.0', false],
    [['192.0.2.7'], '192.0.2.7', true],
    [['192.0.2.7'], '192.0.2.8', false],
    [['192.0.2.7'], '::ffff:192.0.2.7', true],
    [['192.0.2.7'], '::ffff:c000:207', true],
    [['192.0.2.7'], '192.0.2.7:4711', true],
    // Bits beyond the prefix are ignored.
    [['192.0.2.77/24'], '192.0.2.1', true],
    [['2001:db8::/32'], '2001:db8:ffff::1', true],
    [['2001:db8::/32'], '2001:db9::1', false],
    [['2001:db8::5'], '2001:0DB8:0:0::0005', true],
    [['2001:db8::5'], '2001:db8::6', false],
    [['fe80::/10'], 'fe80::1%eth0', true],
    [['198.51.100.0/24', '2001:db8::/32'], '2001:db8::1', true],
    [['198.51.100.0/24', '2001:db8::/32'], '198.51.100.9', true],
    [['198.51.100.0/24', '2001:db8::/32'], '203.0.113.9', false],
    [['0.0.0.0/0'], '203.0.113.9', true],
    [['0.0.0.0/0'], '2001:db8::1', false],
    [['::/0'], '203.0.113.9', false],
    [['0.0.0.0/0', '::/0'], 'not-an-address', false],
  ]
  for (const [addresses, from, isAllowed] of CASES) {
    test(`${addresses} is ${isAllowed ? 'accepted' : 'refused'} from ${from}`, async () => {
      const { authorization } = await keyWith({ addresses })
      // Twice: the second request may find the address in memory.
      for (let count = 0; count < 2; count += 1) assert.equal((await get(authorization, '/agents', from)).status, isAllowed ? 200 : 403)
    })
  }

  test('is refused with the address that the service sees', async () => {
    const { authorization } = await keyWith({ addresses: ['192.0.2.0/24'] })
    const { status, body } = await get(authorization, '/agents', '::ffff:203.0.113.9')
    const reason = 'The request comes from 203.0.113.9, which is not among the addresses of the key.'
    assert.deepEqual([status, body.code, body.details], [403, 'RCS_ADDRESS_NOT_ALLOWED', [{ path: '', reason }]])
  })
})

test('a request is refused for its address, then its scope, then the module, then an unknown path', async () => {
  const all = await keyWith({ addresses: ['192.0.2.0/24'], scopes: ['send'] }, ['sms'])
  assert.equal((await get(all.authorization)).body.code, 'RCS_ADDRESS_NOT_ALLOWED')
  assert.equal((await get(all.authorization, '/nowhere')).body.code, 'RCS_ADDRESS_NOT_ALLOWED')
  assert.equal((await get(all.authorization, '/agents', '192.0.2.1')).body.code, 'RCS_SCOPE')
  // No route, no scope.
  assert.equal((await get(all.authorization, '/nowhere', '192.0.2.1')).body.code, 'RCS_MODULE_NOT_AVAILABLE')
  await setModules(pool, all.accountId, ['rcs'])
  for (const path of ['/nowhere', '/messages/'])
    assert.equal((await get(all.authorization, path, '192.0.2.1')).body.code, 'RCS_ROUTE_NOT_FOUND', path)
})

test('the public document needs no scope', async () => {
  const { authorization } = await keyWith({ scopes: ['send'] })
  assert.equal((await get(authorization, '/openapi.json')).status, 200)
})

test('a route that declares no scope fails the start', async () => {
  const app = fastify()
  const never = () => assert.fail('no request is made')
  const policies = createPolicies({ messagesPerSecond: 1, eventsPerSecond: 5, othersPerMinute: 1 })
  guardRoutes(app, { authenticate: never, findCached: never, noteUse: never, limiter: never, policies })
  assert.throws(() => app.get('/v1/agents', async () => ({})), /the route GET \/v1\/agents declares no scope/)
  app.get('/v1/open', { config: { public: true } }, async () => ({}))
  app.get('/v1/scoped', { config: { scope: 'read' } }, async () => ({}))
  await app.close()
})

describe('the last use of a key', () => {
  const lastUse = async ({ accountId, integrationKey }: { accountId: number; integrationKey: string }) =>
    (await listKeys(pool, accountId)).find((key) => key.integrationKey === integrationKey)?.lastUsedAt

  test('is stored after a request with right credentials, also a refused one, and not after a wrong one', async () => {
    const [used, refused, wrong, revoked] = [await keyWith({}), await keyWith({ scopes: ['send'] }), await keyWith({}), await keyWith({})]
    await revokeKey(pool, revoked.integrationKey)
    assert.equal((await get(`Bearer ${wrong.integrationKey}:hs_${'x'.repeat(43)}`)).status, 401)
    assert.equal((await get(revoked.authorization)).status, 401)
    const before = new Date(Date.now() - 1_000)
    assert.equal((await get(refused.authorization)).status, 403)
    assert.equal((await get(used.authorization)).status, 200)
    await until('the uses are stored', async () => (await lastUse(used)) !== null && (await lastUse(refused)) !== null)
    for (const key of [used, refused]) assert.ok(((await lastUse(key)) as Date) > before)
    for (const key of [wrong, revoked]) assert.equal(await lastUse(key), null)
  })

  test('is noted once for each request, of a cached caller too, but not if the route fails before it confirms the caller', async () => {
    const { authorization, integrationKey } = await createCaller(pool)
    const notes: string[] = []
    const app = createServer(loadConfig({}), createLogger('silent'))
    const policies = createPolicies({ messagesPerSecond: 100, eventsPerSecond: 5, othersPerMinute: 100 })
    guardRoutes(app, { ...createAuthenticator(pool), noteUse: (key) => notes.push(key), limiter: createMemoryLimiter(), policies })
    app.post('/confirmed', { config: { scope: 'send', confirmsCaller: true } }, async ({ headers }) => {
      if (headers['x-fails']) throw Object.assign(new Error('away'), { code: 'ECONNREFUSED' })
      return {}
    })
    const post = async (headers = {}) => {
      await app.inject({ method: 'POST', path: '/confirmed', headers: { host: 'x', authorization, ...headers } })
      return notes.length
    }
    assert.deepEqual([await post(), await post(), await post()], [1, 2, 3])
    assert.equal(await post({ 'x-fails': 'yes' }), 3)
    assert.equal(await post({ authorization: `${authorization}x` }), 3)
    assert.deepEqual(new Set(notes), new Set([integrationKey]))
    await app.close()
  })

  test('is stored at most once a minute, with the time of the last request, and never moves back', async () => {
    const key = await keyWith({})
    let now = 0
    const recorder = createUseRecorder(pool, () => now)
    recorder.note(key.integrationKey)
    await recorder.store()
    const first = (await lastUse(key)) as Date
    now = 30_000
    recorder.note(key.integrationKey)
    now = 59_999
    await recorder.store()
    assert.deepEqual(await lastUse(key), first)
    await pool.query(`update integration_key_uses set last_used_at = last_used_at - interval '1 hour' where integration_key = $1`, [
      key.integrationKey,
    ])
    now = 60_000
    await recorder.store()
    const { rows } = await pool.query<{ ago: number }>(
      'select extract(epoch from now() - last_used_at)::float8 as ago from integration_key_uses where integration_key = $1',
      [key.integrationKey],
    )
    const ago = rows[0]?.ago as number
    // The stored time is rounded.
    assert.ok(ago > 29.99 && ago < 60, `${ago} s`)
    const latest = await lastUse(key)
    const behind = createUseRecorder(pool, () => now)
    behind.note(key.integrationKey)
    now += 3_600_000
    await behind.stop()
    assert.deepEqual(await lastUse(key), latest)
    await recorder.stop()
  })

  test('is stored later if the database failed', async (t) => {
    const key = await keyWith({})
    const recorder = createUseRecorder(pool)
    recorder.note(key.integrationKey)
    const query = t.mock.method(pg.Pool.prototype, 'query', async () => await Promise.reject(new Error('away')))
    await recorder.store()
    query.mock.restore()
    assert.equal(await lastUse(key), null)
    await recorder.stop()
    assert.notEqual(await lastUse(key), null)
  })

  test('delays no request while its table is locked, and makes no node look a caller up again', async (t) => {
    const caller = await createCaller(pool)
    const sender = callerAt(url, { ...caller, agentId: await createAssignedAgent(pool, caller.accountId) })
    const client = await pool.connect()
    await client.query('begin; lock table integration_key_uses in access exclusive mode')
    await sender.accepted()
    await sender.accepted()
    assert.equal((await get(caller.authorization)).status, 200)
    await until('a write waits for the lock', async () => {
      const { rowCount } = await pool.query(`select from pg_locks where not granted and relation = 'integration_key_uses'::regclass`)
      return rowCount !== 0
    })
    assert.equal((await sender.send(newKey(), sender.request())).status, 202)
    await client.query('rollback')
    client.release()
    await until('the use is stored', async () => (await lastUse(caller)) !== null)
    const query = t.mock.method(pg.Pool.prototype, 'query')
    await sender.accepted()
    const names = query.mock.calls.map((made) => (made.arguments[0] as unknown as { name?: string }).name)
    assert.equal(names.includes('authenticate'), false)
  })
})
