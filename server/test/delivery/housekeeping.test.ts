import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { forgetKeys, keepHouse } from '../../src/delivery/housekeeping.ts'
import { createTestDatabase } from '../support/database.ts'
import { createCaller } from '../support/service.ts'

const { pool } = await createTestDatabase()

async function left(table: string, column: string): Promise<(string | number)[]> {
  const { rows } = await pool.query<{ name: string | number }>(`select ${column} as name from ${table} order by 1`)
  return rows.map(({ name }) => name)
}

/** A log of pages of these ages, each with two events, from the first position on, and nothing to be posted. */
async function logAged(accountId: number, ages: string[]): Promise<void> {
  await pool.query('truncate log_pages, log_heads, webhook_deliveries')
  await pool.query('insert into log_heads (account_id, last_position) values ($1, $2)', [accountId, 2 * ages.length])
  await pool.query(
    `insert into log_pages (account_id, page_id, event_count, last_position, events)
     select $1, (left(uuid_v7_from(now() - age::interval)::text, 19) || right(gen_random_uuid()::text, 17))::uuid, 2, 2 * n, '[]'
     from unnest($2::text[]) with ordinality as e (age, n)`,
    [accountId, ages],
  )
}

const { accountId } = await createCaller(pool)

/** One that is served, and one that is not. */
async function addEndpoints(): Promise<number[]> {
  const { rows } = await pool.query<{ id: number }>(
    `insert into webhook_endpoints (account_id, url, status, disabled_at, disabled_because)
     values ($1, 'https://example.com/a', 'ACTIVE', null, null), ($1, 'https://example.com/b', 'DISABLED', now(), 'OPERATOR') returning id`,
    [accountId],
  )
  return rows.map(({ id }) => id)
}

describe('housekeeping', () => {
  test('forgets idempotency keys that are older than seven days, and keeps the younger ones', async () => {
    await pool.query(
      `insert into idempotency_keys (account_id, endpoint, key, request_hash, resource_id, created_at)
       select 1, 'messages', key, sha256('x'), uuid_v7(), now() - age::interval
       from (values ('just-young', '6 days 23:59'), ('just-old', '7 days 00:01'), ('new', '0')) as k (key, age)
       union all select 1, 'messages', 'old-' || n, sha256('x'), uuid_v7(), now() - interval '8 days' from generate_series(1, 5001) as n`,
    )
    await forgetKeys(pool, 1)
    assert.deepEqual(await left('idempotency_keys', 'key'), ['just-young', 'new'])
  })

  test('looks through an hour’s share of the idempotency keys, so that a day sees all of them', async () => {
    await pool.query('truncate idempotency_keys')
    await pool.query(
      `insert into idempotency_keys (account_id, endpoint, key, request_hash, resource_id, created_at)
       select 1, 'messages', 'old-' || n, sha256('x'), uuid_v7(), now() - interval '8 days' from generate_series(1, 5000) as n`,
    )
    const { rows } = await pool.query<{ count: number }>(`select count(distinct (ctid::text::point)[0]) as count from idempotency_keys`)
    const blocks = rows[0]?.count ?? 0
    await keepHouse(pool)
    const { rows: kept } = await pool.query<{ count: number }>(
      `select count(distinct (ctid::text::point)[0]) as count from idempotency_keys`,
    )
    const forgotten = blocks - (kept[0]?.count ?? 0)
    assert.ok(forgotten >= 1 && forgotten <= Math.ceil(blocks / 24) + 1, `${forgotten} of ${blocks} blocks`)
  })

  test('forgets events that nothing took up for thirty days, and keeps the younger ones', async () => {
    await pool.query(
      `insert into carrier_events (carrier, event_id, kind, phone, occurred_at, received_at, event)
       select 'simulator', id, 'delivered', '', now() - interval '90 days', now() - age::interval, '{}'
       from (values ('just-young', '29 days 23:59'), ('just-old', '30 days 00:01'), ('new', '0')) as e (id, age)`,
    )
    await keepHouse(pool)
    assert.deepEqual(await left('carrier_events', 'event_id'), ['just-young', 'new'])
  })

  test('forgets receipts, parts, contacts, turns and links when their time is over, and keeps the younger ones', async () => {
    const id = '0198c0de-0000-7000-8000-000000000001'
    const tables = [
      ['sms_receipts', 'event_id', '1 hour', `'c', 'm', '+48500100200', name, 0, 'delivered', '', now(), at`],
      ['sms_segments', 'carrier_message_id', '14 days', `gen_random_uuid(), 0, 1, 'c', name, '+48500100200', 'sent', null, null, at`],
      ['sms_contacts', 'sender', '400 days', `1, '+48500100200', name, 'a', '${id}', false, at`],
      ['auto_reply_turns', 'phone', '1 day', `1, name, at`],
      ['short_links', 'code', '180 days', `name, 1, '${id}', 0, 'a', '+48500100200', 'https://example.com', at`],
    ] as const
    for (const [table, , kept, columns] of tables) {
      await pool.query(
        `insert into ${table} select ${columns} from (
           select name, now() - interval '${kept}' + off::interval as at from (values ('just-young', '1 minute'), ('just-old', '-1 minute')) as v (name, off)
         ) as aged`,
      )
    }
    await keepHouse(pool)
    for (const [table, column] of tables) assert.deepEqual(await left(table, column), ['just-young'], table)
  })

  test('forgets what was told, and how it was posted, after thirty days, all of it in one go, and keeps the younger', async () => {
    await logAged(accountId, [...Array.from({ length: 5_001 }, () => '31 days'), '30 days 00:01', '29 days 23:59', '0'])
    await pool.query(
      `insert into webhook_attempts (endpoint_id, account_id, position, attempt, attempted_at, duration_ms, status)
       select 1, 1, n, 1, now() - age::interval, 5, 200
       from (values (1, '31 days'), (2, '30 days 00:01'), (3, '29 days 23:59'), (4, '0')) as a (n, age)
       union all select 1, 1, 0, 1, now() - interval '90 days', ms, 200 from generate_series(1, 5001) as ms`,
    )
    await keepHouse(pool)
    assert.deepEqual(await left('log_pages', 'last_position'), [10_006, 10_008])
    assert.deepEqual(await left('webhook_attempts', 'position'), [3, 4])
  })

  test('forgets what was to be posted, or failed for good, with its event; what is of a younger event stays', async () => {
    await logAged(accountId, [...Array.from({ length: 5_001 }, () => '31 days'), '30 days 00:01', '29 days 23:59', '0'])
    const [active, disabled] = await addEndpoints()
    await pool.query(
      `insert into webhook_deliveries (endpoint_id, account_id, position, attempts, due_at)
       select $1::int, $3::int, n, 10, null from generate_series(1, 10008) as n
       union all select $2, $3, n, 0, now() - interval '31 days' from generate_series(10000, 10008) as n`,
      [active, disabled, accountId],
    )
    await keepHouse(pool)
    const places = `endpoint_id || ' ' || position`
    assert.deepEqual(await left('webhook_deliveries', places), [
      ...[10_005, 10_006, 10_007, 10_008].map((position) => `${active} ${position}`),
      ...[10_005, 10_006, 10_007, 10_008].map((position) => `${disabled} ${position}`),
    ])
  })

  test('forgets what was to be posted also where no event is left at all', async () => {
    await logAged(accountId, ['31 days', '31 days'])
    const [active] = await addEndpoints()
    const waiting = 'insert into webhook_deliveries (endpoint_id, account_id, position) select $1, $2, n from generate_series(1, 4) as n'
    await pool.query(waiting, [active, accountId])
    await keepHouse(pool)
    assert.deepEqual([await left('log_pages', 'last_position'), await left('webhook_deliveries', 'position')], [[], []])
    // A crash may have come after the pages were forgotten.
    await pool.query(waiting, [active, accountId])
    await keepHouse(pool)
    assert.deepEqual(await left('webhook_deliveries', 'position'), [])
  })

  test('leaves what waits for its place in the log, however old it is', async () => {
    await logAged(accountId, ['31 days'])
    await pool.query('update log_pages set last_position = null')
    await keepHouse(pool)
    assert.deepEqual(await left('log_pages', 'event_count'), [2])
  })

  test('makes the partitions of this month and of the three to come, where they are missing; twice at once, too', async () => {
    const partitions = `select inhrelid::regclass::text as name from pg_inherits where inhparent in ('messages'::regclass, 'message_events'::regclass)`
    const before = (await pool.query<{ name: string }>(`${partitions} order by 1`)).rows.map(({ name }) => name)
    assert.equal(before.length, 8)
    for (const name of before.slice(-2)) await pool.query(`drop table ${name}`)
    await Promise.all([keepHouse(pool), keepHouse(pool)])
    const after = (await pool.query<{ name: string }>(`${partitions} order by 1`)).rows.map(({ name }) => name)
    assert.deepEqual(after, before)
  })
})
