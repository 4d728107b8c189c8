import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readQuotas, setQuotas } from '../../src/accounts/quotas.ts'
import { foldUsage, freeDroppedMonths } from '../../src/accounts/usage.ts'
import { createHotPool, transaction } from '../../src/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { newKey, startMessageService } from '../support/messages.ts'
import { untilFarFromMidnight } from '../support/midnight.ts'

const database = await createTestDatabase({ uncounted: 'tests move usage to other days and months' })
const { hotPool: pool } = database
const { newCaller } = await startMessageService(database)

async function usageOf(accountId: number) {
  const { messagesPerDay, storedBytes } = await readQuotas(pool, accountId)
  return { messages: messagesPerDay.used, bytes: storedBytes.used }
}

const delta = (accountId: number, at: string, messages = 1) =>
  `insert into account_usage_deltas (account_id, at, messages, message_bytes, content_bytes) values (${accountId}, ${at}, ${messages}, 100, 10)`

describe('the usage of an account', () => {
  test('is the same before, during and after a fold by two nodes', async () => {
    await untilFarFromMidnight()
    const caller = await newCaller()
    const otherPool = createHotPool({ connectionString: database.url }, () => {})
    for (let round = 1; round <= 5; round++) {
      await Promise.all(Array.from({ length: 20 }, () => caller.send(newKey(), caller.request())))
      const [before] = await Promise.all([usageOf(caller.accountId), ...[pool, otherPool, pool, otherPool].map(foldUsage)])
      const after = await usageOf(caller.accountId)
      assert.deepEqual([before.messages, after], [20 * round, before])
    }
    await otherPool.end()
  })

  test('includes a delta that is committed after later ones were folded', async () => {
    const { accountId } = await newCaller()
    await pool.query(delta(accountId, `now() - interval '1 minute'`))
    await foldUsage(pool)
    await transaction(pool, async (tx) => {
      await tx.query(delta(accountId, `now() - interval '30 seconds'`))
      await pool.query(delta(accountId, 'now()'))
      await foldUsage(pool)
    })
    await foldUsage(pool)
    assert.equal((await usageOf(accountId)).bytes, 330)
  })

  test('starts again at midnight in messages, and not in bytes', async () => {
    await untilFarFromMidnight()
    const caller = await newCaller()
    await setQuotas(pool, caller.accountId, { messagesPerDay: 2 })
    const yesterday = `date_trunc('day', now(), 'UTC') - interval '1 second'`
    await pool.query(delta(caller.accountId, yesterday, 2))
    assert.deepEqual(await usageOf(caller.accountId), { messages: 0, bytes: 110 })
    await foldUsage(pool)
    assert.deepEqual(await usageOf(caller.accountId), { messages: 0, bytes: 110 })
    assert.equal((await caller.send('k', caller.request())).status, 202)
    await foldUsage(pool)
    await pool.query(delta(caller.accountId, yesterday, 5))
    await foldUsage(pool)
    assert.equal((await usageOf(caller.accountId)).messages, 1, 'a late delta of yesterday does not count today')
    assert.equal((await caller.send('k2', caller.request())).status, 202)
    assert.equal((await caller.send('k3', caller.request())).status, 429)
  })

  test('loses the bytes of the messages of a dropped month, and of no other month', async () => {
    const { accountId } = await newCaller()
    await pool.query(delta(accountId, `'2020-02-29T23:59:59Z'`))
    await pool.query(delta(accountId, 'now()'))
    await foldUsage(pool)
    assert.equal((await usageOf(accountId)).bytes, 220)
    for (const _ of [1, 2]) {
      await freeDroppedMonths(pool)
      assert.equal((await usageOf(accountId)).bytes, 120)
    }
  })
})
