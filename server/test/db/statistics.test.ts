import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { messagesTableOf } from '../../src/db/partitions.ts'
import type { Executor } from '../../src/db/pool.ts'
import { refreshStatistics } from '../../src/db/statistics.ts'
import { recordResults } from '../../src/delivery/results.ts'
import { createSender, queueMessages } from '../delivery/support.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { until } from '../support/until.ts'

const { hotPool: pool, url } = await createTestDatabase({ uncounted: 'a message is deleted by hand, so that its month is empty' })

/** In its own session, since PostgreSQL reports the rows of a session when it ends. */
async function write(text: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(text)
  await client.end()
}

async function knownRows(table: string): Promise<number> {
  return (await pool.query(`select reltuples::int as rows from pg_class where oid = $1::regclass`, [table])).rows[0].rows
}

async function liveRows(table: string): Promise<number> {
  return (await pool.query('select pg_stat_get_live_tuples($1::regclass)::int as rows', [table])).rows[0].rows
}

async function grow(table: string, rows: number): Promise<void> {
  const before = await liveRows(table)
  await write(`insert into ${table} select n from generate_series(1, ${rows}) as n`)
  await until('the rows are reported', async () => (await liveRows(table)) === before + rows)
}

describe('statistics', () => {
  test('analyze a table when it exceeds twice its known rows and 500, and not when it is large', async () => {
    await ownerOf(pool).query('create table messages_1999_01 (n int) with (autovacuum_enabled = off)')
    await ownerOf(pool).query('analyze messages_1999_01')
    await grow('messages_1999_01', 500)
    assert.deepEqual([await refreshStatistics(pool), await knownRows('messages_1999_01')], [[], 0])
    await grow('messages_1999_01', 1)
    assert.deepEqual([await refreshStatistics(pool), await knownRows('messages_1999_01')], [['messages_1999_01'], 501])
    await grow('messages_1999_01', 1_001)
    assert.deepEqual([await refreshStatistics(pool), await knownRows('messages_1999_01')], [[], 501])
    await grow('messages_1999_01', 10_000)
    assert.deepEqual([await refreshStatistics(pool), await knownRows('messages_1999_01')], [['messages_1999_01'], 11_502])
    await grow('messages_1999_01', 100_000)
    assert.deepEqual([await refreshStatistics(pool), await knownRows('messages_1999_01')], [[], 11_502])
  })

  test('skip a table that is locked by another session', async () => {
    await ownerOf(pool).query('create table messages_1999_02 (n int) with (autovacuum_enabled = off)')
    await grow('messages_1999_02', 501)
    const client = new pg.Client(url)
    await client.connect()
    await client.query('begin; lock table messages_1999_02 in share update exclusive mode')
    assert.deepEqual(await refreshStatistics(pool), ['messages_1999_02'])
    await client.query('rollback')
    await client.end()
    assert.equal(await knownRows('messages_1999_02'), -1)
    assert.deepEqual([await refreshStatistics(pool), await knownRows('messages_1999_02')], [['messages_1999_02'], 501])
  })

  test('skip a table that is not of Herald, whatever its name', async () => {
    await ownerOf(pool).query('create table "User; select 1" (n int) with (autovacuum_enabled = off)')
    await grow('"User; select 1"', 501)
    assert.deepEqual(await refreshStatistics(pool), [])
  })

  test('replace a plan for an empty month when the month has many messages', async () => {
    const sender = await createSender(pool)
    const [id = ''] = await queueMessages(pool, sender)
    const messages = messagesTableOf(id)
    await pool.query(`delete from ${messages}`)
    await ownerOf(pool).query(`alter table ${messages} set (autovacuum_enabled = off)`)
    await ownerOf(pool).query(`vacuum analyze ${messages}`)
    const client = await pool.connect()
    try {
      await client.query('set plan_cache_mode = force_generic_plan')
      await recordResults(client, [{ messageId: id, lease: id, is: 'failed', reason: 'REJECTED', detail: '' }])
      assert.equal(await scansAll(client, messages), true)
      await queueMessages(pool, sender, { count: 10_000 })
      await until('the table is analyzed', async () => (await refreshStatistics(pool)).includes(messages))
      assert.equal(await scansAll(client, messages), false)
    } finally {
      client.release(true)
    }
  })
})

/** Whether this session's plan scans the whole table. */
async function scansAll(client: Executor, messages: string): Promise<boolean> {
  const { rows } = await client.query(`explain (format json) execute "record-failed ${messages}" (${Array(5).fill('null')})`)
  const scans = nodesOf(rows[0]['QUERY PLAN'][0].Plan).filter(
    (node) => node['Relation Name'] === messages && node['Node Type'].endsWith('Scan'),
  )
  assert.ok(scans.length > 0)
  return scans.some((node) => !/^\(id = /.test(node['Index Cond']) || !node['Index Name'].endsWith('_pkey'))
}

function nodesOf(node: any): any[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)]
}
