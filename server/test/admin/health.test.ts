import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { suspendAccount } from '../../src/accounts/accounts.ts'
import { transaction } from '../../src/db/pool.ts'
import { createHealthReader } from '../../src/health/health.ts'
import type { Role } from '../../src/people/roles.ts'
import { createToken } from '../../src/people/tokens.ts'
import { addEndpoint } from '../../src/webhooks/endpoints.ts'
import { untilBlocked } from '../delivery/locks.ts'
import { createSender, queueMessages } from '../delivery/support.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { keyring } from '../support/keyring.ts'
import { cuttableDatabase } from '../support/proxy.ts'
import { openStream } from '../support/server-sent.ts'
import { assertError, call, startTestService } from '../support/service.ts'
import { startSimulator } from '../support/simulator.ts'
import { until } from '../support/until.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase({ uncounted: 'queues are filled by hand' })
const env = { HERALD_DATABASE_URL, HERALD_LIMITS: 'memory' }
const statusEveryMs = 100
/** Nothing in these processes takes messages or deliveries from the queues. */
const api = await startTestService(env, { roles: ['api'], statusEveryMs })

async function tokenOf(role: Role, accountIds: number[] = []): Promise<string> {
  const { secret } = await createToken(pool, { name: role, role, accountIds, expiresAt: new Date(Date.now() + 3_600_000) })
  return `Bearer ${secret}`
}
const operator = await tokenOf('operator')
const readHealth = async (url = api.url) => (await call(`${url}/admin/v1/health`, { authorization: operator })).body

/** Waits for figures, which are up to a second old. */
const untilHealth = (what: string, holds: (health: any) => unknown) =>
  until(what, async () => {
    const health = await readHealth()
    return holds(health) ? health : undefined
  })

describe('GET /admin/v1/health', () => {
  test('shows the processes with their figures, and the database', async () => {
    const health = await untilHealth('the process has written its status', ({ nodes }) => nodes[0]?.clockDifferenceMs !== undefined)
    assert.equal(health.nodes.length, 1)
    const { nodeId, host, startedAt, seenAt, loopDelayMs, pools, clockDifferenceMs, eventsBehindMs, ...rest } = health.nodes[0]
    assert.deepEqual(rest, { pid: process.pid, roles: ['api'], version: '0.1.0', carriers: [], streams: 0, standbysSeen: 0 })
    assert.ok(nodeId && host && Date.parse(startedAt) < Date.parse(seenAt))
    assert.ok(loopDelayMs >= 0 && eventsBehindMs >= 0)
    assert.deepEqual(
      pools.map(({ name, max }: any) => [name, max]),
      [
        ['general', 4],
        ['hot', 8],
      ],
    )
    assert.ok(clockDifferenceMs === null || Math.abs(clockDifferenceMs) < 1_000)
    const { version, schema, lastMigration, migrations, sizeBytes, clockDifferenceMs: aheadMs } = health.database
    const { rows } = await pool.query(
      `select current_setting('server_version') as version, max(name) as last, count(*) from schema_migrations`,
    )
    assert.deepEqual({ version, last: lastMigration, count: migrations }, rows[0])
    assert.deepEqual(health.database.standbys, { connected: 0, missing: 0, commitsWait: false })
    assert.deepEqual([schema, Math.abs(aheadMs) < 1_000, sizeBytes > 1_000_000], ['current', true, true])
    assert.deepEqual(health.queue, { due: 0, oldestDueAt: null, oldestMs: null })
  })

  test('is read once for concurrent requests while the database is slow', async () => {
    const read = createHealthReader(pool)
    const first = await transaction(ownerOf(pool), async (tx) => {
      await tx.query('set local idle_in_transaction_session_timeout = 0; lock table schema_migrations in access exclusive mode')
      const reading = read()
      const begunAt = performance.now()
      await untilBlocked(pool, 1)
      await until('the figures would be out of date', () => performance.now() - begunAt > 1_100)
      assert.equal(read(), reading)
      return [reading]
    })
    await first[0]
    assert.equal(read(), first[0], 'its age counts from its end')
  })

  test('is for operators', async () => {
    const { accountId } = await createSender(pool)
    const details = [['', 'The request needs the role operator; yours is lower.']] as const
    const response = await call(`${api.url}/admin/v1/health`, { authorization: await tokenOf('admin', [accountId]) })
    assertError(response, 403, 'RCS_ROLE', details)
  })

  test('counts streams, and shows a further process until it stops or has been silent for 15 minutes', async () => {
    const other = await startTestService(env, { roles: ['webhooks'], statusEveryMs })
    await untilHealth('both are shown', ({ nodes }) => nodes.length === 2)
    const stream = await openStream(`${api.url}/admin/v1/stream`, { authorization: operator })
    await untilHealth('the stream is counted', ({ nodes }) => nodes.some(({ streams }: any) => streams === 1))
    stream.close()
    await other.stop()
    const silent = `insert into node_status select gen_random_uuid(), 'gone', pid, roles, version, started_at, now() - interval '901 seconds', figures from node_status`
    await pool.query(silent)
    const { nodes } = await untilHealth('it is gone', (health) => health.nodes.length === 1)
    assert.deepEqual(nodes[0].roles, ['api'])
    await until('the row of the silent process is deleted', async () => (await pool.query('select from node_status')).rowCount === 1)
  })

  test('counts messages that are due up to 1,000, and not those that wait on purpose', async () => {
    const [sender, suspended] = [await createSender(pool), await createSender(pool)]
    await queueMessages(pool, sender, { count: 3, dueInMs: -120_000 })
    await queueMessages(pool, sender, { count: 1, dueInMs: 3_600_000 })
    await queueMessages(pool, suspended, { count: 1, dueInMs: -600_000 })
    await suspendAccount(pool, suspended.accountId)
    const { queue } = await untilHealth('three are due', (health) => health.queue.due > 0)
    assert.equal(queue.due, 3)
    assert.ok(Math.abs(queue.oldestMs - 120_000) < 20_000, `${queue.oldestMs}`)
    assert.ok(Math.abs(Date.now() - Date.parse(queue.oldestDueAt) - queue.oldestMs) < 20_000)
    await queueMessages(pool, sender, { count: 1_200, dueInMs: -1_000 })
    await untilHealth('the count ends', (health) => health.queue.due === 1_000)
    await pool.query(`update queue set lease = gen_random_uuid(), leased_until = now() + interval '1 minute'`)
    await untilHealth('all are being sent', (health) => health.queue.due === 0)
  })

  test('counts SMS and deliveries to endpoints that are due', async () => {
    const { accountId } = await createSender(pool)
    const { endpointId } = await addEndpoint(pool, { accountId, url: 'https://example.com/a' }, keyring)
    await pool.query(
      `insert into sms_queue (message_id, copy, account_id, recipient, priority, planned_at, due_at, expires_at, segments)
       select uuid_v7(), 0, $1, '+48500100200', 0, now(), now() - n * interval '1 minute', now() + interval '1 day', 1 from generate_series(-1, 2) as n`,
      [accountId],
    )
    await pool.query(
      `insert into webhook_deliveries (endpoint_id, account_id, position, due_at)
       select $1, $2, 1000 + n, now() - n * interval '1 minute' from generate_series(-1, 3) as n`,
      [endpointId, accountId],
    )
    await pool.query('update webhook_endpoints set failing_since = now() where id = $1', [endpointId])
    const { smsQueue, webhooks } = await untilHealth('they are due', (health) => health.smsQueue.due > 0 && health.webhooks.due > 0)
    assert.deepEqual([smsQueue.due, webhooks.due, webhooks.failing], [3, 4, 1])
    assert.ok(Math.abs(smsQueue.oldestMs - 120_000) < 20_000 && Math.abs(webhooks.oldestMs - 180_000) < 20_000)
    await pool.query('delete from sms_queue')
    await pool.query('delete from webhook_deliveries')
  })
})

describe('carriers', () => {
  test('show their sessions and recent calls, and a lost one', async () => {
    const simulator = await startSimulator()
    await startTestService(env, { roles: ['delivery'], statusEveryMs, findCarriers: async () => simulator.settings })
    const { carriers } = await untilHealth('the session is bound', (health) => health.carriers.some(({ sessions }: any) => sessions === 1))
    assert.deepEqual(carriers, [
      { name: 'simulator', kind: 'rcs', nodes: 1, sessions: null, openCircuits: 0, outcomes: {} },
      { name: 'simulator-sms', kind: 'sms', nodes: 1, sessions: 1, openCircuits: 0, outcomes: {} },
    ])
    await queueMessages(pool, await createSender(pool), { count: 2 })
    await untilHealth('both are sent', (health) => health.carriers[0].outcomes.sent === 2)
    await simulator.stop()
    await untilHealth('the SMSC is lost', (health) => health.carriers[1].sessions === 0)
  })
})

test('without the database, an operator gets what the process knows of itself, and nobody else does', async () => {
  const database = await cuttableDatabase(HERALD_DATABASE_URL)
  const own = await startTestService({ ...env, HERALD_DATABASE_URL: database.url }, { roles: ['api'] })
  assert.ok((await readHealth(own.url)).nodes.length > 0)
  await database.cut()
  const reason = 'The database is out of reach, or does not respond in time.'
  const response = await call(`${own.url}/admin/v1/health`, { authorization: operator })
  const { node, ...error } = response.body
  assertError({ ...response, body: error }, 503, 'RCS_UNAVAILABLE', [['', reason]])
  assert.deepEqual([node.pid, node.roles, response.headers.get('retry-after')], [process.pid, ['api'], '1'])
  const stranger = await call(`${own.url}/admin/v1/health`, { authorization: 'Bearer ho_unknown' })
  assertError(stranger, 503, 'RCS_UNAVAILABLE', [['', reason]])
})
