import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { applyRetention, deleteOldKeys } from '../../src/delivery/retention.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { createCaller } from '../support/service.ts'

const { hotPool: pool } = await createTestDatabase()
const { accountId } = await createCaller(pool)

async function left(table: string, column: string): Promise<(string | number)[]> {
  const { rows } = await pool.query<{ name: string | number }>(`select ${column} as name from ${table} order by 1`)
  return rows.map(({ name }) => name)
}

/** Writes log pages of these ages, with two events each. */
async function logAged(ages: string[]): Promise<void> {
  await ownerOf(pool).query('truncate log_pages, log_heads, webhook_deliveries')
  await pool.query('insert into log_heads (account_id, last_position) values ($1, $2)', [accountId, 2 * ages.length])
  await pool.query(
    `insert into log_pages (account_id, page_id, event_count, last_position, events)
     select $1, (left(uuid_v7_from(now() - age::interval)::text, 19) || right(gen_random_uuid()::text, 17))::uuid, 2, 2 * n, '[]'
     from unnest($2::text[]) with ordinality as e (age, n)`,
    [accountId, ages],
  )
}

// Two batches, and one page on either side of the limit.
const MANY_AGES = [...Array(5_001).fill('31 days'), '30 days 00:01', '29 days 23:59', '0'] as string[]

/** An active endpoint, and a disabled one. */
async function addEndpoints(): Promise<number[]> {
  const { rows } = await pool.query<{ id: number }>(
    `insert into webhook_endpoints (account_id, url, status, disabled_at, disabled_because)
     values ($1, 'https://example.com/a', 'ACTIVE', null, null), ($1, 'https://example.com/b', 'DISABLED', now(), 'OPERATOR') returning id`,
    [accountId],
  )
  return rows.map(({ id }) => id)
}

const KEYS = `insert into idempotency_keys (account_id, endpoint, key, request_hash, resource_id, created_at)
  select 1, 'messages', key, sha256('x'), uuid_v7(), now() - age::interval from`
const OLD_KEYS = (count: number) => `(select 'old-' || n as key, '8 days' as age from generate_series(1, ${count}) as n) as old`

describe('retention', () => {
  const message = '0198c0de-0000-7000-8000-000000000001'
  for (const [table, column, retention, values] of [
    ['carrier_events', 'event_id', '30 days', `'simulator', name, 'delivered', '', now() - interval '90 days', at, '{}'`],
    ['sms_receipts', 'event_id', '1 hour', `'c', 'm', '+48500100200', name, 0, 'delivered', '', now(), at`],
    ['sms_segments', 'carrier_message_id', '14 days', `gen_random_uuid(), 0, 1, 'c', name, '+48500100200', 'sent', null, null, at`],
    ['sms_contacts', 'sender', '400 days', `1, '+48500100200', name, 'a', '${message}', false, at`],
    ['auto_reply_turns', 'phone', '1 day', `1, name, at`],
    ['short_links', 'code', '180 days', `name, 1, '${message}', 0, 'a', '+48500100200', 'https://example.com', at`],
  ] as const) {
    test(`deletes rows of ${table} after ${retention}`, async () => {
      const columns = table === 'carrier_events' ? '(carrier, event_id, kind, phone, occurred_at, received_at, event)' : ''
      await pool.query(
        `insert into ${table} ${columns} select ${values} from (
           select name, now() - interval '${retention}' + off::interval as at from (values ('young', '1 minute'), ('old', '-1 minute')) as v (name, off)
         ) as aged`,
      )
      await applyRetention(pool)
      assert.deepEqual(await left(table, column), ['young'])
    })
  }

  test('deletes idempotency keys after seven days', async () => {
    await pool.query(`${KEYS} (values ('just-young', '6 days 23:59'), ('just-old', '7 days 00:01'), ('new', '0')) as k (key, age)`)
    await pool.query(`${KEYS} ${OLD_KEYS(5_001)}`)
    await deleteOldKeys(pool, 1)
    assert.deepEqual(await left('idempotency_keys', 'key'), ['just-young', 'new'])
  })

  test('reads an hour’s share of the idempotency keys, so that a day covers all of them', async () => {
    await ownerOf(pool).query('truncate idempotency_keys')
    await pool.query(`${KEYS} ${OLD_KEYS(5_000)}`)
    const countBlocks = async () =>
      (await left('(select distinct (ctid::text::point)[0] as block from idempotency_keys) as b', 'block')).length
    const blocks = await countBlocks()
    await applyRetention(pool)
    const deleted = blocks - (await countBlocks())
    assert.ok(deleted >= 1 && deleted <= Math.ceil(blocks / 24) + 1, `${deleted} of ${blocks} blocks`)
  })

  test('deletes events and webhook attempts after thirty days, however many there are', async () => {
    await logAged(MANY_AGES)
    await pool.query(
      `insert into webhook_attempts (endpoint_id, account_id, position, attempt, attempted_at, duration_ms, status)
       select 1, 1, n, 1, now() - age::interval, 5, 200
       from (values (1, '31 days'), (2, '30 days 00:01'), (3, '29 days 23:59'), (4, '0')) as a (n, age)
       union all select 1, 1, 0, 1, now() - interval '90 days', ms, 200 from generate_series(1, 5001) as ms`,
    )
    await applyRetention(pool)
    assert.deepEqual(await left('log_pages', 'last_position'), [10_006, 10_008])
    assert.deepEqual(await left('webhook_attempts', 'position'), [3, 4])
  })

  test('deletes webhook deliveries together with their events', async () => {
    await logAged(MANY_AGES)
    const [active, disabled] = await addEndpoints()
    await pool.query(
      `insert into webhook_deliveries (endpoint_id, account_id, position, attempts, due_at)
       select $1::int, $3::int, n, 10, null from generate_series(1, 10008) as n
       union all select $2, $3, n, 0, now() - interval '31 days' from generate_series(10000, 10008) as n`,
      [active, disabled, accountId],
    )
    await applyRetention(pool)
    const kept = [active, disabled].flatMap((endpoint) => [10_005, 10_006, 10_007, 10_008].map((position) => `${endpoint} ${position}`))
    assert.deepEqual(await left('webhook_deliveries', `endpoint_id || ' ' || position`), kept)
  })

  test('deletes webhook deliveries if no event is left, also after a crash between the two', async () => {
    await logAged(['31 days', '31 days'])
    const [active] = await addEndpoints()
    for (let time = 0; time < 2; time += 1) {
      await pool.query(
        'insert into webhook_deliveries (endpoint_id, account_id, position) select $1, $2, n from generate_series(1, 4) as n',
        [active, accountId],
      )
      await applyRetention(pool)
      assert.deepEqual([await left('log_pages', 'last_position'), await left('webhook_deliveries', 'position')], [[], []])
    }
  })

  test('keeps log pages without a position, however old they are', async () => {
    await logAged(['31 days'])
    await pool.query('update log_pages set last_position = null')
    await applyRetention(pool)
    assert.deepEqual(await left('log_pages', 'event_count'), [2])
  })

  test('creates missing partitions of this month and the next three, also if two processes do', async () => {
    const partitions = `(select inhrelid::regclass::text as name from pg_inherits where inhparent in ('messages'::regclass, 'message_events'::regclass)) as p`
    const before = await left(partitions, 'name')
    assert.equal(before.length, 8)
    for (const name of before.slice(-2)) await ownerOf(pool).query(`drop table ${name}`)
    await Promise.all([applyRetention(pool), applyRetention(pool)])
    assert.deepEqual(await left(partitions, 'name'), before)
  })
})
