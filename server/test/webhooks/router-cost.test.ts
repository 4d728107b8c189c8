import assert from 'node:assert/strict'
import { test } from 'node:test'
import { routeEvents } from '../../src/events/router.ts'
import { addEndpoint } from '../../src/webhooks/endpoints.ts'
import { createTestDatabase } from '../support/database.ts'
import { keyring } from '../support/keyring.ts'
import { newAccount, tellMany } from './support.ts'

const { hotPool: pool } = await createTestDatabase()

/** The fastest of several rounds of the router, each over 2,000 events that no endpoint of the account wants. */
async function routingMs(endpoints: number): Promise<number> {
  const accountId = await newAccount(pool)
  for (let n = 0; n < endpoints; n += 1) {
    await addEndpoint(pool, { accountId, url: `https://shop.example.com/${n}`, kinds: ['campaign.completed'] }, keyring)
  }
  const times: number[] = []
  for (let round = 0; round < 7; round += 1) {
    await tellMany(pool, accountId, 2_000)
    const startedAt = performance.now()
    assert.equal((await routeEvents(pool)).routed, 2_000)
    times.push(performance.now() - startedAt)
  }
  const { rows } = await pool.query('select from webhook_deliveries where account_id = $1', [accountId])
  assert.equal(rows.length, 0)
  return Math.min(...times)
}

test('routing for an account with 20 endpoints reads each page once, as for one endpoint', async (t) => {
  await routingMs(1)
  const [one, twenty] = [await routingMs(1), await routingMs(20)]
  t.diagnostic(`${one.toFixed(1)} ms with one endpoint, ${twenty.toFixed(1)} ms with twenty`)
  // To parse each page for each endpoint takes some 15 times as long.
  assert.ok(twenty < 6 * one + 10, `${twenty} ms instead of ${one} ms`)
})
