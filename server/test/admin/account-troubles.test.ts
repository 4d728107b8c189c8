import assert from 'node:assert/strict'
import { test } from 'node:test'
import { suspendAccount } from '../../src/accounts/accounts.ts'
import { setQuotas } from '../../src/accounts/quotas.ts'
import { READ_TROUBLES, readTroubles } from '../../src/health/account-troubles.ts'
import { NO_CAMPAIGN } from '../../src/ids.ts'
import { addEndpoint } from '../../src/webhooks/endpoints.ts'
import { createSender, queueMessages } from '../delivery/support.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { keyring } from '../support/keyring.ts'

const { pool } = await createTestDatabase({ uncounted: 'queues and counters are filled by hand' })

const troublesOf = async (accountId: number) => (await readTroubles(pool)).find((each) => each.accountId === accountId)

test('an account without troubles is not listed', async () => {
  const { accountId } = await createSender(pool)
  await addEndpoint(pool, { accountId, url: 'https://example.com/a' }, keyring)
  assert.equal(await troublesOf(accountId), undefined)
})

test('lists messages that wait longest first, and none of a suspended account', async () => {
  const [short, long, suspended] = [await createSender(pool), await createSender(pool), await createSender(pool)]
  await queueMessages(pool, short, { count: 1, dueInMs: -60_000 })
  await queueMessages(pool, long, { count: 2, dueInMs: -600_000 })
  await queueMessages(pool, suspended, { count: 1, dueInMs: -900_000 })
  await suspendAccount(pool, suspended.accountId)
  const troubles = await readTroubles(pool)
  assert.deepEqual(
    troubles.filter(({ oldestDueMs }) => oldestDueMs !== null).map(({ accountId }) => accountId),
    [long.accountId, short.accountId],
  )
  assert.ok(Math.abs((troubles[0]?.oldestDueMs ?? 0) - 600_000) < 20_000)
})

test('counts endpoints that fail, and those that were disabled because they failed, but no removed ones', async () => {
  const { accountId } = await createSender(pool)
  let urls = 0
  const add = async (change: string) => {
    urls += 1
    const { endpointId } = await addEndpoint(pool, { accountId, url: `https://example.com/${urls}` }, keyring)
    await pool.query(`update webhook_endpoints set ${change} where id = $1`, [endpointId])
  }
  await add('failing_since = now()')
  await add(`status = 'DISABLED', disabled_at = now(), disabled_because = 'FAILING'`)
  await add(`status = 'DISABLED', disabled_at = now(), disabled_because = 'CALLER'`)
  await add('failing_since = now(), removed_at = now()')
  assert.equal((await troublesOf(accountId))?.failingEndpoints, 2)
})

test('counts the failed messages of the last 24 hours for which no SMS was sent, folded or not', async () => {
  const { accountId } = await createSender(pool)
  const count = async (table: string, hours: number, counts: object) =>
    await pool.query(
      `insert into ${table} (account_id, campaign_id, hour, ${Object.keys(counts)}) values ($1, $2, date_trunc('hour', now()) - $3 * interval '1 hour', ${Object.values(counts)})`,
      [accountId, NO_CAMPAIGN, hours],
    )
  await count('report_deltas', 0, { accepted: 10, failed: 4, sms_sent: 3 })
  await count('report_deltas', 3, { accepted: 5, expired: 2 })
  await count('report_deltas', 30, { accepted: 90, failed: 90 })
  assert.deepEqual(await troublesOf(accountId), {
    accountId,
    oldestDueMs: null,
    failingEndpoints: 0,
    accepted: 15,
    failed: 3,
    quotaUsed: 0,
  })
})

test('counts failed messages of running and recently completed campaigns, whenever they were created, but not of cancelled ones', async () => {
  const { accountId } = await createSender(pool)
  const add = async (status: string, times: string, failed: number) => {
    const { rows } = await pool.query(
      `insert into campaigns (id, account_id, agent_id, name, group_numbers, basic, content_id, status, created_at, scheduled_at, ${times.replaceAll(/ = [^,]*/g, '')})
       values (uuid_v7(), $1, 'agent', 'Sale', '{1}', false, 1, $2, now() - interval '9 days', now(), ${times.replaceAll(/\w+ = /g, '')}) returning id`,
      [accountId, status],
    )
    await pool.query(
      `insert into report_deltas (account_id, campaign_id, hour, accepted, failed) values ($1, $2, date_trunc('hour', now()), 1000, $3)`,
      [accountId, rows[0].id, failed],
    )
  }
  await add('RUNNING', 'started_at = now()', 1)
  await add('PAUSED', 'started_at = now()', 10)
  await add('COMPLETED', 'started_at = now(), completed_at = now()', 100)
  await add('COMPLETED', `started_at = now(), completed_at = now() - interval '4 days'`, 200)
  await add('CANCELLED', 'started_at = now(), cancelled_at = now()', 400)
  const { accepted, failed } = (await troublesOf(accountId)) ?? {}
  assert.deepEqual({ accepted, failed }, { accepted: 3_000, failed: 111 })
})

test('reads no history of campaigns, counters and endpoints', async () => {
  const { accountId } = await createSender(pool)
  await pool.query(
    `with old as (
      insert into campaigns (id, account_id, agent_id, name, group_numbers, basic, content_id, status, created_at, scheduled_at, started_at, completed_at)
      select gen_random_uuid(), $1, 'agent', 'Old', '{1}', false, 1, 'COMPLETED', at, at, at, at
      from generate_series(1, 5000) as n, lateral (select now() - interval '10 days' - n * interval '1 hour' as at) as times
      returning id, account_id, date_trunc('hour', created_at) as hour
    )
    insert into report_deltas (account_id, campaign_id, hour, accepted) select account_id, id, hour, 10 from old`,
    [accountId],
  )
  const endpoint = `insert into webhook_endpoints (account_id, url, removed_at) select $1, 'https://example.com/' || n, now() from generate_series(1, 5000) n`
  await pool.query(endpoint, [accountId])
  for (const table of ['campaigns', 'report_deltas', 'webhook_endpoints']) await ownerOf(pool).query(`analyze ${table}`)
  const { rows } = await pool.query<{ 'QUERY PLAN': string }>(`explain ${READ_TROUBLES}`)
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
  assert.doesNotMatch(plan, /Seq Scan on (campaigns|report_deltas|report_totals|webhook_endpoints|queue)/)
})

test('lists an account that has used most of a quota', async () => {
  const { accountId } = await createSender(pool)
  await setQuotas(pool, accountId, { messagesPerDay: 100 })
  const use = `insert into account_usage (account_id, day, messages, stored_bytes, folded_until) values ($1, utc_day(now()), $2, 0, now())
    on conflict (account_id) do update set messages = excluded.messages`
  await pool.query(use, [accountId, 79])
  assert.equal(await troublesOf(accountId), undefined)
  await pool.query(use, [accountId, 90])
  assert.equal((await troublesOf(accountId))?.quotaUsed, 0.9)
})
