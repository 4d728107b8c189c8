import assert from 'node:assert/strict'
import { once } from 'node:events'
import { finished } from 'node:stream/promises'
import { after, describe, test } from 'node:test'
import type { Client } from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { timeoutClient } from '../../src/db/client.ts'
import { queryInSavepoint } from '../../src/db/partitions.ts'
import { createPool, isUnavailable, transaction } from '../../src/db/pool.ts'
import { createTable, createTestDatabase } from '../support/database.ts'
import { cuttableDatabase } from '../support/proxy.ts'
import { until } from '../support/until.ts'

// Its statements may take so long and no longer.

const { url, pool } = await createTestDatabase()
// A busy machine can hold a process up for half a second; the timeout must still come before the result.
const SHORT = { query_timeout: 50 }
const LONG = { query_timeout: 60_000 }
const SLOW = { text: 'select pg_sleep(2), 1 as n', ...SHORT }

const isTimeOut = (error: unknown) => isUnavailable(error) && (error as Error).message === 'Query read timeout'

async function connected(timeoutMs = 0): Promise<Client> {
  const client = new (timeoutClient(timeoutMs))(url)
  await client.connect()
  after(() => client.end())
  return client
}

async function pidOf(db: Pick<typeof pool, 'query'>): Promise<number> {
  return (await db.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid as number
}

test('a statement runs in any form, and returns its result by promise or callback', async () => {
  const client = await connected(5_000)
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
  const before = timers()
  assert.deepEqual((await client.query('select 1 as n')).rows, [{ n: 1 }])
  assert.deepEqual((await client.query('select $1::int as n', [2])).rows, [{ n: 2 }])
  assert.deepEqual((await client.query({ name: 'three', text: 'select $1::int as n', values: [3] })).rows, [{ n: 3 }])
  const rows = await new Promise((resolve, reject) => {
    client.query('select $1::int as n', [4], (error: Error, result: { rows: unknown[] }) => (error ? reject(error) : resolve(result.rows)))
  })
  assert.deepEqual(rows, [{ n: 4 }])
  await assert.rejects(client.query('select 1/0'), { code: '22012', stack: /client\.test\.ts/ })
  assert.equal(timers(), before, 'nothing is waited for any more')
})

describe('a statement that exceeds its timeout', () => {
  test('fails as "unavailable"; its connection is closed, and no other caller gets it', async () => {
    const before = await pidOf(pool)
    await assert.rejects(pool.query(SLOW), isTimeOut)
    assert.notEqual(await pidOf(pool), before)
  })

  test('rolls its transaction back', async () => {
    await createTable(pool, 'marks (mark text)')
    const failing = transaction(pool, async (tx) => {
      await tx.query(`insert into marks values ('undone')`)
      await tx.query(SLOW)
    })
    await assert.rejects(failing, isTimeOut)
    assert.deepEqual((await pool.query('select mark from marks')).rows, [])
  })

  test('is ended after the connection’s timeout if it has none of its own', async () => {
    const client = await connected(50)
    assert.equal((await client.query({ text: 'select pg_sleep(0.3), 1 as n', ...LONG })).rows[0].n, 1)
    await assert.rejects(client.query('select pg_sleep(2)'), isTimeOut)
  })

  test('rejects once, and runs nothing more on its connection', async () => {
    const client = await connected()
    const ended = once(client, 'end')
    const errors: unknown[] = []
    await new Promise<void>((resolve) => {
      client.query(SLOW, (error: Error | undefined) => {
        errors.push(error)
        resolve()
      })
    })
    await assert.rejects(client.query('select 2 as n'), isUnavailable)
    await ended
    assert.ok(errors.length === 1 && isTimeOut(errors[0]))
  })

  test('fails its transaction at once, although no rollback gets a response', { timeout: 30_000 }, async () => {
    const database = await cuttableDatabase(url)
    const cut = createPool({ connectionString: `${database.url}?query_timeout=600000` }, () => {})
    const warnings: string[] = []
    const onWarning = ({ message }: Error) => void warnings.push(message)
    process.on('warning', onWarning)
    after(() => process.off('warning', onWarning))
    const waiting = { name: 'wait', text: 'select pg_advisory_xact_lock(73)', values: [], query_timeout: 2_000 }
    const holder = await connected()
    await holder.query('select pg_advisory_lock(73)')
    const failing = assert.rejects(
      transaction(cut, async (tx) => await queryInSavepoint(tx, waiting)),
      isUnavailable,
    )
    const others = `select from pg_locks where locktype = 'advisory' and objid = 73 and not granted
      and database = (select oid from pg_database where datname = current_database())`
    await until('the statement waits', async () => (await pool.query(others)).rowCount === 1)
    database.freeze()
    await failing
    assert.deepEqual(warnings, [])
  })

  test('is ended after the timeout in the address unless it has its own', async () => {
    const named = createPool(
      { connectionString: `${url}${url.includes('?') ? '&' : '?'}query_timeout=50&application_name=named` },
      () => {},
    )
    after(() => named.end())
    await assert.rejects(named.query('select pg_sleep(2)'), isTimeOut)
    const text = `select pg_sleep(0.3), current_setting('application_name') as name`
    assert.equal((await named.query({ text, ...LONG })).rows[0].name, 'named')
  })

  test('ends a stream with an error', async () => {
    await createTable(pool, 'streamed (mark text)')
    const client = await connected(50)
    await assert.rejects(finished(client.query(copyFrom('copy streamed from stdin'))), isTimeOut)
  })
})
