import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createHotPool, type Pool } from '../../src/db/pool.ts'
import { findOldMonths } from '../../src/delivery/drop-months.ts'
import { dropOldMonths } from '../../src/delivery/retention.ts'
import { createTestDatabase, makePastMonths, ownerOf } from '../support/database.ts'
import { callerAt } from '../support/messages.ts'
import { startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { createSender, NO_LIMITS } from './support.ts'
import { logger } from './worker.ts'

const PHONE = '+48500100200'
const MONTHS = 5

/** A database with months before this one, and a message in each, with rows in every table that refers to it. */
async function createOldDatabase() {
  const database = await createTestDatabase({ uncounted: 'messages of old months are written by hand' })
  const { pool } = database
  await makePastMonths(pool, MONTHS)
  const sender = await createSender(pool)
  await ownerOf(pool).query(`create view old as select n as age, uuid_v7_from(at) as id, at from (
       select n, date_trunc('month', now()) - n * interval '1 month' + interval '1 day' as at from generate_series(0, ${MONTHS}) as n) as months;
     grant select on old to herald_service`)
  const own = `${sender.accountId}, '${sender.agentId}'`
  for (const statement of [
    `insert into messages (id, account_id, agent_id, recipient, basic, test, content, status, accepted_at, sent_at, expires_at)
     select id, ${own}, '${PHONE}', false, false, '{"type":"MESSAGE","content":"Hi"}', 'SENT', at, at, at from old`,
    `insert into message_events (message_id, account_id, kind, occurred_at) select id, ${sender.accountId}, 'attempt-failed', at from old`,
    `insert into sms_fallbacks (message_id, account_id, plan, segments, delay_seconds, after_expiry) select id, ${sender.accountId}, '{}', 1, 0, false from old`,
    `insert into recipient_actions (id, account_id, agent_id, recipient, message_id, kind, channel, occurred_at)
     select id, ${own}, '${PHONE}', id, 'wrote', 'rcs', at from old`,
    `insert into queue (message_id, account_id, agent_id, task, priority, due_at, expires_at) select id, ${own}, 'revoke', 1, now() + interval '1 day', at from old`,
    `insert into expiries select id, at + interval '2 days' from old`,
    `insert into sms_queue (message_id, copy, account_id, recipient, priority, planned_at, due_at, expires_at, segments)
     select id, 0, ${sender.accountId}, '${PHONE}', 0, at, at, at + interval '2 days', 1 from old`,
    `insert into sms_segments (message_id, copy, segment, carrier, carrier_message_id, recipient) select id, 0, 1, 'c', age, '${PHONE}' from old`,
    `insert into sms_contacts (account_id, recipient, sender, agent_id, message_id, is_copy, sent_at)
     select ${sender.accountId}, '${PHONE}', age, '${sender.agentId}', id, false, at from old`,
    `insert into short_links (code, account_id, message_id, copy, agent_id, recipient, url, created_at)
     select 'code-' || age, ${sender.accountId}, id, 0, '${sender.agentId}', '${PHONE}', 'https://example.com', at from old`,
    `insert into campaigns (id, account_id, agent_id, name, group_numbers, basic, content_id, status, created_at, scheduled_at, started_at, completed_at,
       fan_out_completed_at, fan_out_cursor)
     select id, ${own}, 'Sale', '{1}', false, 1, 'COMPLETED', at, at, at, at, at, '${PHONE}' from old`,
    `insert into campaign_copies select id, '${PHONE}' from old`,
    `insert into account_usage_months select ${sender.accountId}, date_trunc('month', at), 1000 from old`,
    `insert into account_usage values (${sender.accountId}, now(), 0, ${1000 * (MONTHS + 1)}, now())`,
    `insert into report_deltas (account_id, campaign_id, hour, accepted) select ${sender.accountId}, '00000000-0000-0000-0000-000000000000', at, 1 from old`,
  ])
    await pool.query(statement)
  return { ...database, sender }
}

const TABLES = {
  messages: 't.id',
  message_events: 'message_id',
  sms_fallbacks: 'message_id',
  recipient_actions: 't.id',
  queue: 'message_id',
  expiries: 'message_id',
  sms_queue: 'message_id',
  sms_segments: 'message_id',
  sms_contacts: 'message_id',
  short_links: 'message_id',
  campaign_copies: 'campaign_id',
  account_usage_months: "uuid_v7_from(month + interval '1 day')",
}

/** The ages in months of the rows in each table. */
async function agesIn(pool: Pool): Promise<Record<string, number[]>> {
  const ages = Object.entries(TABLES).map(async ([table, id]) => {
    const { rows } = await pool.query<{ age: number }>(`select distinct age from ${table} t join old on old.id = ${id} order by 1`)
    return [table, rows.map(({ age }) => age)]
  })
  return Object.fromEntries(await Promise.all(ages))
}

const all = (ages: number[]) => Object.fromEntries(Object.keys(TABLES).map((table) => [table, ages]))
const ageRange = (to: number) => Array.from({ length: to + 1 }, (_, age) => age)

describe('the retention by months', () => {
  test('drops older months with everything that belongs to them, and keeps the sums of reports', async () => {
    const { pool, sender } = await createOldDatabase()
    assert.deepEqual(await agesIn(pool), all(ageRange(MONTHS)))
    assert.equal(await dropOldMonths(pool, 2, logger), true)
    assert.deepEqual(await agesIn(pool), all([0, 1, 2]))
    const { rows: tables } = await pool.query(`select count(*)::int from pg_tables where tablename ~ '_\\d{4}_\\d{2}$'`)
    assert.equal(tables[0].count, 4 * (3 + 2 + 1))
    const { rows } = await pool.query(
      `select (select sum(accepted)::int from report_deltas) as accepted, (select stored_bytes from account_usage where account_id = $1) as bytes,
         (select count(*)::int from campaigns where fan_out_cursor <> '') as cursors`,
      [sender.accountId],
    )
    assert.deepEqual(rows, [{ accepted: MONTHS + 1, bytes: 3_000, cursors: 3 }])
    assert.equal(await dropOldMonths(pool, 2, logger), true)
    assert.deepEqual(await agesIn(pool), all([0, 1, 2]))
  })

  test('keeps a month until it has been over for 30 days, however short the retention is', async () => {
    const { pool } = await createOldDatabase()
    const young = await findOldMonths(pool, 0)
    const { rows } = await pool.query<{ month: string }>(
      `select distinct to_char(at, 'YYYY_MM') as month from old where date_trunc('month', at) + interval '1 month 30 days' <= now() order by 1`,
    )
    assert.deepEqual(
      young.map(({ name }) => name),
      rows.map(({ month }) => month),
    )
    assert.deepEqual(await findOldMonths(pool, 1_200), [])
  })

  test('keeps a month while an SMS of it waits, and drops the months before and after it', async () => {
    const { pool } = await createOldDatabase()
    await pool.query(
      `update sms_queue set due_at = '9999-01-01', expires_at = '9999-01-03' where message_id = (select id from old where age = 4)`,
    )
    assert.equal(await dropOldMonths(pool, 2, logger), true)
    assert.deepEqual(await agesIn(pool), all([0, 1, 2, 4]))
    await pool.query('delete from sms_queue where expires_at > now()')
    assert.equal(await dropOldMonths(pool, 2, logger), true)
    const { sms_queue: _, ...others } = await agesIn(pool)
    const { sms_queue: __, ...expected } = all([0, 1, 2])
    assert.deepEqual(others, expected)
  })

  test('keeps a month while a message of it has not expired, and drops the months before and after it', async () => {
    const { pool } = await createOldDatabase()
    await pool.query(`update expiries set expires_at = now() + interval '1 hour' where message_id = (select id from old where age = 4)`)
    assert.equal(await dropOldMonths(pool, 2, logger), true)
    assert.deepEqual((await agesIn(pool)).messages, [0, 1, 2, 4])
    await pool.query('delete from expiries where expires_at > now()')
    assert.equal(await dropOldMonths(pool, 2, logger), true)
    assert.deepEqual((await agesIn(pool)).messages, [0, 1, 2])
  })

  test('waits for an export that reads the month, and continues afterwards', async () => {
    const { pool, url } = await createOldDatabase()
    const reader = await createHotPool({ connectionString: url }, () => {}).connect()
    await reader.query('begin')
    await reader.query('set local idle_in_transaction_session_timeout = 0; select from messages limit 1')
    assert.equal(await dropOldMonths(pool, 3, logger), false)
    const { messages, short_links: links } = await agesIn(pool)
    assert.deepEqual([messages, links], [ageRange(MONTHS), [0, 1, 2, 3]])
    await reader.query('commit')
    reader.release(true)
    assert.equal(await dropOldMonths(pool, 3, logger), true)
    assert.deepEqual(await agesIn(pool), all([0, 1, 2, 3]))
  })

  test('runs in several processes at once, while messages are accepted', async () => {
    const { url, pool, sender } = await createOldDatabase()
    const env = { HERALD_DATABASE_URL: url, ...NO_LIMITS }
    const { url: api } = await startTestService(env, { roles: ['api'] })
    const caller = callerAt(api, sender)
    const [old] = (await pool.query<{ id: string }>('select id from old where age = 5')).rows
    assert.equal((await caller.read(old?.id as string)).status, 200)
    const nodes = await Promise.all([1, 2].map(() => startTestService({ ...env, HERALD_RETENTION_MONTHS: '3' }, { roles: ['delivery'] })))
    const isDropped = async () => (await agesIn(pool)).messages?.length === 4
    do assert.match(await caller.accepted(), /^[0-9a-f-]{36}$/)
    while (!(await isDropped()))
    const logged = (msg: string) => nodes.flatMap(({ log }) => log().match(new RegExp(`"msg":"${msg}"`, 'g')) ?? []).length
    await until('one node has logged each drop', () => logged('dropped the tables of a month') === 2)
    assert.equal(logged('old months will be dropped'), 2)
    assert.equal((await caller.read(old?.id as string)).status, 404)
    const { body } = await caller.ask('GET', `/messages?recipient=${encodeURIComponent(PHONE)}&sort=acceptedAt`)
    assert.ok(body.items.length > 0 && body.items.every(({ messageId }: { messageId: string }) => messageId !== old?.id))
  })
})
