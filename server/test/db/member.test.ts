import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { loadConfig } from '../../src/config.ts'
import { openDatabase } from '../../src/db/database.ts'
import { ensurePartitions } from '../../src/db/partitions.ts'
import { createPool } from '../../src/db/pool.ts'
import { dropOldMonths } from '../../src/delivery/retention.ts'
import { createSender, NO_LIMITS } from '../delivery/support.ts'
import { logger } from '../delivery/worker.ts'
import { createTestDatabase, makePastMonths, ownerOf } from '../support/database.ts'
import { as, createLogin } from '../support/login.ts'
import { callerAt, RECIPIENT } from '../support/messages.ts'
import { heraldJson, runHerald } from '../support/process.ts'
import { call, startTestService } from '../support/service.ts'
import { startSimulator } from '../support/simulator.ts'
import { until } from '../support/until.ts'

// The strict set-up: the user in HERALD_DATABASE_URL owns nothing, and is only a member of the service role.

const { url, pool } = await createTestDatabase()
const member = await createLogin('in role herald_service')
const HERALD_DATABASE_URL = as(member, url)

describe('a service whose user is only a member of the role', () => {
  test('accepts, delivers, exports, imports and erases, and creates and drops months', async () => {
    await makePastMonths(pool, 5)
    const { rows: partitions } = await pool.query<{ name: string }>(
      `select tablename as name from pg_tables where tablename ~ '_\\d{4}_\\d{2}$'`,
    )
    const future = partitions
      .map(({ name }) => name)
      .filter((name) => name.slice(-7) > new Date().toISOString().slice(0, 7).replace('-', '_'))
    await ownerOf(pool).query(`drop table ${future.join(', ')}`)
    const simulator = await startSimulator()
    const service = await startTestService({ HERALD_DATABASE_URL, ...NO_LIMITS }, { findCarriers: async () => simulator.settings })
    await simulator.ask('webhook', { url: `${service.url}/carriers/${simulator.rcs.name}/webhook` }, 'PUT')
    const exists = async (name: string) => (await pool.query('select from pg_tables where tablename = $1', [name])).rowCount
    for (const name of future) assert.equal(await exists(name), 1, `${name} was created at the start`)

    const caller = callerAt(service.url, await createSender(pool))
    const messageId = await caller.accepted()
    await until('it is READ', async () => (await caller.read(messageId)).body.status === 'READ')
    assert.match((await caller.ask('GET', '/reports/messages/export')).body, new RegExp(messageId))
    const { authorization } = caller
    const imported = await call(`${service.url}/v1/segments/1/import`, {
      method: 'PUT',
      authorization,
      headers: { 'content-type': 'text/csv' },
      body: `phone\n${RECIPIENT}\n+48500100201\n`,
    })
    assert.deepEqual([imported.status, imported.body.imported], [200, 2])

    const { pool: own } = service.database
    await ownerOf(pool).query(`drop table ${future.join(', ')}`)
    await ensurePartitions(own)
    for (const name of future) assert.equal(await exists(name), 1, `${name} was created while it runs`)
    const months = async () => (await pool.query(`select from pg_tables where tablename ~ '^messages_\\d{4}_\\d{2}$'`)).rowCount
    assert.equal(await months(), 9)
    assert.equal(await dropOldMonths(own, 2, logger), true)
    assert.equal(await months(), 6)

    const erased = await heraldJson(['person', 'erase', RECIPIENT, '--yes'], { HERALD_DATABASE_URL })
    assert.ok(erased.total > 0)
    assert.match((await caller.read(messageId)).body.recipient, /^erased-/)
    assert.doesNotMatch(service.log(), /"level":"(error|warn)"/)
  })

  test('has no way to more privileges', async () => {
    const own = createPool({ connectionString: HERALD_DATABASE_URL }, () => {})
    after(() => own.end())
    const client = await own.connect()
    await client.query('reset role')
    for (const statement of ['delete from audit_log', 'truncate audit_log', `set role ${new URL(url).username}`, 'drop table audit_log'])
      await assert.rejects(client.query(statement), { code: '42501' }, statement)
    client.release(true)
  })

  test('does not start while migrations are missing, and neither does "herald migrate" apply them', async () => {
    const behind = await createTestDatabase()
    await ownerOf(behind.pool).query(`delete from schema_migrations where name like '0012%'`)
    const empty = await createTestDatabase({ empty: true })
    const refusal = `The database lacks migrations, and the user ${member} may not apply them: run "npx herald migrate" with the user who owns the tables in HERALD_DATABASE_URL, then try again.`
    for (const database of [behind, empty]) {
      const config = loadConfig({ HERALD_DATABASE_URL: as(member, database.url) })
      await assert.rejects(openDatabase(config, { role: 'service', onProgress: () => {} }), { message: refusal })
      const { code, stderr } = await runHerald(['migrate'], { HERALD_DATABASE_URL: as(member, database.url) })
      assert.deepEqual([code, stderr], [1, `${refusal}\n`])
    }
  })

  test('does not start as a user who is not a member, and says how to become one', async () => {
    const stranger = await createLogin()
    const config = loadConfig({ HERALD_DATABASE_URL: as(stranger, url) })
    await assert.rejects(openDatabase(config, { role: 'service', onProgress: () => {} }), {
      message: `The user ${stranger} in HERALD_DATABASE_URL does not own Herald's tables. Let their owner run "grant herald_service to ${stranger}", then try again.`,
    })
  })
})
