import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ensurePartitions } from '../../src/db/partitions.ts'
import { createTestDatabase, ownerOf, type TestDatabase } from '../support/database.ts'
import { callerAt, newKey, startMessageService } from '../support/messages.ts'

const database = await createTestDatabase({ uncounted: 'months are dropped' })
const service = await startMessageService(database)

async function partitionsOf({ pool }: TestDatabase): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `select inhrelid::regclass::text as name from pg_inherits
     where inhparent in ('messages'::regclass, 'message_events'::regclass) and inhrelid::regclass::text !~ '_pkey' order by 1`,
  )
  return rows.map(({ name }) => name)
}

async function dropAll(target: TestDatabase): Promise<void> {
  for (const name of await partitionsOf(target)) await ownerOf(target.pool).query(`drop table ${name}`)
  assert.deepEqual(await partitionsOf(target), [])
}

/** This month and the three that follow, by the clock of the database. */
async function expected({ pool }: TestDatabase): Promise<string[]> {
  const { rows } = await pool.query<{ month: string }>(
    `select to_char(date_trunc('month', now() at time zone 'UTC') + n * interval '1 month', 'YYYY_MM') as month from generate_series(0, 3) n`,
  )
  return ['message_events', 'messages'].flatMap((table) => rows.map(({ month }) => `${table}_${month}`))
}

describe('the partitions of messages', () => {
  test('are created for this month and three more, also concurrently', async () => {
    const names = await expected(database)
    assert.deepEqual(await partitionsOf(database), names)
    await dropAll(database)
    await Promise.all(Array.from({ length: 5 }, () => ensurePartitions(database.pool)))
    assert.deepEqual(await partitionsOf(database), names)
    await ensurePartitions(database.pool)
    assert.deepEqual(await partitionsOf(database), names)
  })

  test('are completed when some are missing, and the others keep their rows', async () => {
    const { accepted, read } = await service.newCaller()
    const messageId = await accepted()
    const names = await expected(database)
    for (const name of names.filter((_, index) => index % 4 !== 0)) await ownerOf(database.pool).query(`drop table ${name}`)
    await ensurePartitions(database.pool)
    assert.deepEqual(await partitionsOf(database), names)
    assert.equal((await read(messageId)).status, 200)
  })

  test('hold the ids of their month, to the last millisecond', async () => {
    const { accepted } = await service.newCaller()
    const messageId = await accepted()
    const names = await expected(database)
    const where = await database.pool.query('select tableoid::regclass::text as name from messages where id = $1', [messageId])
    assert.deepEqual(where.rows, [{ name: names[4] }])

    const { rows } = await database.pool.query<{ sound: boolean; edges: boolean }>(
      `with month as (select date_trunc('month', now() at time zone 'UTC') at time zone 'UTC' as at)
       select
         uuid_v7() between uuid_v7_from(now() - interval '1 ms') and uuid_v7_from(now() + interval '1 ms') as sound,
         -- The greatest id of the last millisecond of a month is less than the bound between the two.
         replace(uuid_v7_from(at - interval '1 ms')::text, '-7000-8000-000000000000', '-7fff-bfff-ffffffffffff')::uuid < uuid_v7_from(at) as edges
       from month`,
    )
    assert.deepEqual(rows, [{ sound: true, edges: true }])
  })

  test('get distinct ids of version 7 that grow with time', async () => {
    const { rows } = await database.pool.query<{ id: string }>('select uuid_v7() as id from generate_series(1, 1000)')
    const ids = rows.map(({ id }) => id)
    assert.equal(new Set(ids).size, 1_000)
    assert.ok(ids.every((id) => /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id)))
    await database.pool.query('select pg_sleep(0.002)')
    const later = await database.pool.query<{ id: string }>('select uuid_v7() as id')
    assert.ok(ids.every((id) => id < (later.rows[0]?.id as string)))
  })

  test('are created at the start of a service, and by concurrent messages when they are missing', async () => {
    await dropAll(database)
    const { url } = await startMessageService(database)
    assert.deepEqual(await partitionsOf(database), await expected(database))

    const caller = await service.newCaller()
    const other = callerAt(url, caller)
    await dropAll(database)
    const keys = Array.from({ length: 20 }, newKey)
    const responses = await Promise.all(keys.map((key, index) => (index % 2 ? caller : other).send(key, caller.request())))
    assert.deepEqual(
      responses.map(({ status }) => status),
      keys.map(() => 202),
    )
    assert.equal(new Set(responses.map(({ body }) => body.messageId)).size, keys.length)
    assert.deepEqual(await partitionsOf(database), await expected(database))
    const { rows } = await database.pool.query('select count(*) from messages where account_id = $1', [caller.accountId])
    assert.deepEqual(rows, [{ count: keys.length }])
  })
})
