import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { keepHouse } from '../../src/delivery/housekeeping.ts'
import { createTestDatabase } from '../support/database.ts'
import { createCaller } from '../support/service.ts'

const { pool } = await createTestDatabase()

async function left(table: string, column: string): Promise<(string | number)[]> {
  const { rows } = await pool.query<{ name: string | number }>(`select ${column} as name from ${table} order by 1`)
  return rows.map(({ name }) => name)
}

/** A log of events of these ages, from the first place on, and nothing to be posted. */
async function tellAged(ages: string[]): Promise<void> {
  await pool.query('truncate events, webhook_deliveries')
  await pool.query(`select setval('event_positions', $1)`, [ages.length])
  await pool.query(
    `insert into events (account_id, position, event_id, kind, occurred_at, data, recorded_at)
     select 1, n, uuid_v7(), 'message.sent', now() - interval '90 days', '{}', now() - age::interval
     from unnest($1::text[]) with ordinality as e (age, n)`,
    [ages],
  )
}

/** One that is served, and one that is not. */
async function addEndpoints(): Promise<number[]> {
  const { accountId } = await createCaller(pool)
  const { rows } = await pool.query<{ id: number }>(
    `insert into webhook_endpoints (account_id, url, status, disabled_at, disabled_because)
     values ($1, 'https://example.com/a', 'ACTIVE', null, null), ($1, 'https://example.com/b', 'DISABLED', now(), 'OPERATOR') returning id`,
    [accountId],
  )
  return rows.map(({ id }) => id)
}

describe('housekeeping', () => {
  test('forgets idempotency keys that are older than seven days, all of them in one go, and keeps the younger ones', async () => {
    await pool.query(
      `insert into idempotency_keys (account_id, endpoint, key, request_hash, message_id, created_at)
       select 1, 'messages', key, sha256('x'), uuid_v7(), now() - age::interval
       from (values ('just-young', '6 days 23:59'), ('just-old', '7 days 00:01'), ('new', '0')) as k (key, age)
       union all select 1, 'messages', 'old-' || n, sha256('x'), uuid_v7(), now() - interval '8 days' from generate_series(1, 5001) as n`,
    )
    await keepHouse(pool)
    assert.deepEqual(await left('idempotency_keys', 'key'), ['just-young', 'new'])
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
      ['sms_parts', 'carrier_message_id', '14 days', `gen_random_uuid(), 0, 1, 'c', name, '+48500100200', 'sent', null, null, at`],
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
    await tellAged([...Array.from({ length: 5_001 }, () => '31 days'), '30 days 00:01', '29 days 23:59', '0'])
    await pool.query(
      `insert into webhook_attempts (endpoint_id, account_id, position, attempt, attempted_at, duration_ms, status)
       select 1, 1, n, 1, now() - age::interval, 5, 200
       from (values (1, '31 days'), (2, '30 days 00:01'), (3, '29 days 23:59'), (4, '0')) as a (n, age)
       union all select 1, 1, 0, 1, now() - interval '90 days', ms, 200 from generate_series(1, 5001) as ms`,
    )
    await keepHouse(pool)
    assert.deepEqual(await left('events', 'position'), [5_003, 5_004])
    assert.deepEqual(await left('webhook_attempts', 'position'), [3, 4])
  })

  test('forgets what was to be posted, or failed for good, with its event; what is of a younger event stays', async () => {
    await tellAged([...Array.from({ length: 5_001 }, () => '31 days'), '30 days 00:01', '29 days 23:59', '0'])
    const [active, disabled] = await addEndpoints()
    await pool.query(
      `insert into webhook_deliveries (endpoint_id, account_id, position, attempts, due_at)
       select $1::int, 1, position, 10, null from events
       union all select $2, 1, position, 0, now() - interval '31 days' from events where position > 5000`,
      [active, disabled],
    )
    await keepHouse(pool)
    const places = `endpoint_id || ' ' || position`
    assert.deepEqual(await left('webhook_deliveries', places), [
      ...[`${active} 5003`, `${active} 5004`],
      ...[`${disabled} 5003`, `${disabled} 5004`],
    ])
  })

  test('forgets what was to be posted also where no event is left at all', async () => {
    await tellAged(['31 days', '31 days'])
    const [active] = await addEndpoints()
    await pool.query('insert into webhook_deliveries (endpoint_id, account_id, position) select $1, 1, position from events', [active])
    await keepHouse(pool)
    assert.deepEqual([await left('events', 'position'), await left('webhook_deliveries', 'position')], [[], []])
  })

  test('leaves what waits for its place in the log, however old it is', async () => {
    await pool.query(
      `insert into outbox (account_id, kind, occurred_at, data) values (1, 'message.sent', now() - interval '90 days', '{}')`,
    )
    await keepHouse(pool)
    assert.deepEqual(await left('outbox', 'kind'), ['message.sent'])
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
