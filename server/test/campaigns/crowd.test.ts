import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import pg from 'pg'
import { moveCampaign } from '../../src/campaigns/campaigns.ts'
import { startDue } from '../../src/delivery/campaigns/lifecycle.ts'
import { claim } from '../../src/delivery/claim.ts'
import { ensureRate } from '../../src/delivery/rate.ts'
import { createSender, queueMessage } from '../delivery/support.ts'
import { CARRIER } from '../delivery/worker.ts'
import { createTestDatabase } from '../support/database.ts'
import { assertAllEmitted } from '../support/emitted.ts'
import { acceptedCampaign, fillGroup, phone } from './support.ts'

const { url, hotPool: pool } = await createTestDatabase({
  unmetered: 'messages are queued by hand',
  uncounted: 'so their claims have no message',
})
await ensureRate(pool, CARRIER)
const [sender, other] = [await createSender(pool), await createSender(pool)]
await fillGroup(pool, sender.accountId, 1, [phone(0)])

async function claimNow(free: number): Promise<string[]> {
  const rates = { messagesPerSecond: undefined, messagesPerSecondPerAgent: undefined }
  const request = { free, lease: randomUUID(), leaseMs: 60_000, pausedAgents: [], calls: new Map() }
  return (await claim(pool, { ...request, carrier: { name: CARRIER, ...rates } })).entries.map(({ messageId }) => messageId)
}

/** A running campaign as claims see it: entries of the queue. */
async function queuedCampaign(count: number): Promise<string> {
  const campaignId = await acceptedCampaign(pool, sender)
  await startDue(pool)
  await pool.query('update campaigns set fan_out_completed_at = now() where id = $1', [campaignId])
  // Not by the pool, whose statements have a time limit.
  const client = new pg.Client(url)
  await client.connect()
  await client.query(
    `insert into queue (message_id, account_id, agent_id, task, priority, campaign_id, due_at, expires_at)
     select uuid_v7(), $1, $2, 'send', 2, $3, now() - interval '1 minute', now() + interval '1 day' from generate_series(1, $4::int)`,
    [sender.accountId, sender.agentId, campaignId, count],
  )
  await client.end()
  return campaignId
}

/** The time of a claim that finds one message of another account: the fastest of 11, since other processes only make a claim slower. */
async function claimTimeMs(): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < 11; round += 1) {
    const messageId = await queueMessage(pool, other)
    const startedAt = performance.now()
    const claimed = await claimNow(20)
    times.push(performance.now() - startedAt)
    assert.deepEqual(claimed, [messageId])
  }
  return Math.min(...times)
}

test('a campaign of 100,000 messages does not slow claims while it is paused, and yields to transactional messages while it runs', async (t) => {
  await claimTimeMs()
  const aloneMs = await claimTimeMs()
  const campaignId = await queuedCampaign(100_000)
  await moveCampaign(pool, campaignId, 'PAUSED')
  let besideMs = await claimTimeMs()
  // On a busy machine, the fastest of 11 can be slow, too. A scan never gets faster.
  for (let again = 0; again < 5 && besideMs >= 3 * aloneMs + 2; again += 1) besideMs = Math.min(besideMs, await claimTimeMs())
  t.diagnostic(`a claim took ${aloneMs.toFixed(2)} ms, and ${besideMs.toFixed(2)} ms beside a paused campaign`)
  // A scan of 100,000 entries takes 60 ms and more.
  assert.ok(besideMs < 3 * aloneMs + 2, `${besideMs} ms instead of ${aloneMs} ms`)

  await moveCampaign(pool, campaignId, 'RUNNING')
  const transactional = [await queueMessage(pool, sender), await queueMessage(pool, other)]
  assert.deepEqual(new Set(await claimNow(2)), new Set(transactional))
  const last = await queueMessage(pool, sender)
  const claimed = await claimNow(40)
  assert.ok(claimed.includes(last) && claimed.length === 20, 'the campaign gets the rest of the share of its account')
  assert.equal(await assertAllEmitted(pool), 1, 'its start is an event, and its pause is not')
})
