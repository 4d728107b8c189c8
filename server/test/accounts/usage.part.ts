import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readQuotas, setQuotas } from '../../src/accounts/quotas.ts'
import { foldUsage, freeDroppedMonths } from '../../src/accounts/usage.ts'
import { migrate } from '../../src/db/migrate.ts'
import { createPool, transaction } from '../../src/db/pool.ts'
import { acceptedCampaign, fillGroup, makeAll, phones } from '../campaigns/support.ts'
import { assertUsageCounted } from '../support/counted.ts'
import { createTestDatabase } from '../support/database.ts'
import { newKey, smsFallback, startMessageService } from '../support/messages.ts'

const database = await createTestDatabase({ uncounted: 'tests move usage to other days and months' })
const { pool } = database
const { newCaller } = await startMessageService(database)

async function usageOf(accountId: number) {
  const { messagesPerDay, storedBytes } = await readQuotas(pool, accountId)
  return { messages: messagesPerDay.used, bytes: storedBytes.used }
}

const change = (accountId: number, at: string, messages = 1) =>
  `insert into account_usage_changes (account_id, at, messages, message_bytes, content_bytes) values (${accountId}, ${at}, ${messages}, 100, 10)`

describe('what an account has used', () => {
  test('is the same before, while and after changes are folded by two nodes', async () => {
    const caller = await newCaller()
    const otherPool = createPool({ connectionString: database.url }, () => {})
    for (let round = 1; round <= 5; round++) {
      await Promise.all(Array.from({ length: 20 }, () => caller.send(newKey(), caller.request())))
      const [before] = await Promise.all([usageOf(caller.accountId), ...[pool, otherPool, pool, otherPool].map(foldUsage)])
      const after = await usageOf(caller.accountId)
      assert.deepEqual([before.messages, after], [20 * round, before])
    }
    await otherPool.end()
  })

  test('includes a change that is committed after later ones were folded', async () => {
    const { accountId } = await newCaller()
    await pool.query(change(accountId, `now() - interval '1 minute'`))
    await foldUsage(pool)
    await transaction(pool, async (tx) => {
      await tx.query(change(accountId, `now() - interval '30 seconds'`))
      await pool.query(change(accountId, 'now()'))
      await foldUsage(pool)
    })
    await foldUsage(pool)
    assert.equal((await usageOf(accountId)).bytes, 330)
  })

  test('begins anew at midnight in messages, and goes on in bytes', async () => {
    const caller = await newCaller()
    await setQuotas(pool, caller.accountId, { messagesPerDay: 2 })
    const yesterday = `date_trunc('day', now(), 'UTC') - interval '1 second'`
    await pool.query(change(caller.accountId, yesterday, 2))
    assert.deepEqual(await usageOf(caller.accountId), { messages: 0, bytes: 110 })
    await foldUsage(pool)
    assert.deepEqual(await usageOf(caller.accountId), { messages: 0, bytes: 110 })
    assert.equal((await caller.send('k', caller.request())).status, 202)
    await foldUsage(pool)
    await pool.query(change(caller.accountId, yesterday, 5))
    await foldUsage(pool)
    assert.equal((await usageOf(caller.accountId)).messages, 1, 'a late change of yesterday does not count today')
    assert.equal((await caller.send('k2', caller.request())).status, 202)
    assert.equal((await caller.send('k3', caller.request())).status, 429)
  })

  test('is less by the bytes of the messages of a month that was dropped, and of no other month', async () => {
    const { accountId } = await newCaller()
    await pool.query(change(accountId, `'2020-02-29T23:59:59Z'`))
    await pool.query(change(accountId, 'now()'))
    await foldUsage(pool)
    assert.equal((await usageOf(accountId)).bytes, 220)
    for (const _ of [1, 2]) {
      await freeDroppedMonths(pool)
      assert.equal((await usageOf(accountId)).bytes, 120)
    }
  })

  test('is counted from the rows where a database is upgraded', async () => {
    const upgraded = await createTestDatabase()
    const { newCaller: newSender, stop } = await startMessageService(upgraded)
    const caller = await newSender()
    const { recipient, ...request } = caller.request()
    await caller.send('k1', caller.request({ smsFallback: smsFallback(), clientReferenceId: 'ą' }))
    await caller.send('k2', caller.request({ message: { templateId: await caller.template() } }))
    await caller.sendTest({ ...request, recipients: [recipient, '+48500100201'] })
    await fillGroup(upgraded.pool, caller.accountId, 1, phones(0, 2))
    await acceptedCampaign(upgraded.pool, caller, { sms: {} })
    await makeAll(upgraded.pool)
    const before = await readQuotas(upgraded.pool, caller.accountId)
    assert.equal(before.messagesPerDay.used, 4)
    await stop()
    await upgraded.pool.query(`
      drop table account_usage, account_usage_changes, account_usage_months;
      alter table accounts drop column quota_messages_per_day, drop column quota_templates, drop column quota_stored_bytes, drop column quota_exports;
      alter table campaigns drop column reserved_bytes;
      delete from schema_migrations where name = '0013_quotas'`)
    assert.deepEqual(await migrate(upgraded.pool), ['0013_quotas'])
    assert.deepEqual(await readQuotas(upgraded.pool, caller.accountId), before)
    await assertUsageCounted(upgraded.pool)
  })
})
