import assert from 'node:assert/strict'
import { test } from 'node:test'
import { routeEvents } from '../../src/events/router.ts'
import { addEndpoint } from '../../src/webhooks/endpoints.ts'
import { createTestDatabase } from '../support/database.ts'
import { keyring } from '../support/keyring.ts'
import { assertRatio, newAccount, writeMany } from './support.ts'

const { hotPool: pool } = await createTestDatabase()

/** Returns how long routing 2,000 events takes that no endpoint of the account wants. */
async function prepareRouting(endpoints: number): Promise<() => Promise<number>> {
  const accountId = await newAccount(pool)
  for (let n = 0; n < endpoints; n += 1) {
    await addEndpoint(pool, { accountId, url: `https://shop.example.com/${n}`, types: ['campaign.completed'] }, keyring)
  }
  return async () => {
    await writeMany(pool, accountId, 2_000)
    const startedAt = performance.now()
    assert.equal((await routeEvents(pool)).routed, 2_000)
    return performance.now() - startedAt
  }
}

test('routing for an account with 20 endpoints reads each page once, as for one endpoint', async () => {
  const [one, twenty] = [await prepareRouting(1), await prepareRouting(20)]
  // Parsing each page for each endpoint takes some 15 times as long.
  await assertRatio(twenty, one, 6)
  assert.equal((await pool.query('select from webhook_deliveries')).rowCount, 0)
})
