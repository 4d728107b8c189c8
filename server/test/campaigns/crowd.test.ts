import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { moveCampaign } from '../../src/campaigns/campaigns.ts'
import { startDue } from '../../src/delivery/campaigns/lifecycle.ts'
import { claim } from '../../src/delivery/claim.ts'
import { ensurePace } from '../../src/delivery/rate.ts'
import { CARRIER, createSender, queueMessage } from '../delivery/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { assertAllTold } from '../support/told.ts'
import { acceptedCampaign, fillGroup, phone } from './support.ts'

const { hotPool: pool } = await createTestDatabase({ unmetered: 'messages are queued by hand' })
await ensurePace(pool, CARRIER)
const [sender, other] = [await createSender(pool), await createSender(pool)]
await fillGroup(pool, sender.accountId, 1, [phone(0)])

async function claimNow(free: number): Promise<string[]> {
  const rates = { messagesPerSecond: undefined, messagesPerSecondPerAgent: undefined }
  const request = { free, lease: randomUUID(), leaseMs: 60_000, pausedAgents: [], calls: new Map() }
  return (await claim(pool, { ...request, carrier: { name: CARRIER, ...rates } })).entries.map(({ messageId }) => messageId)
}

/** A campaign that runs, as claims see it: entries of the queue. */
async function queuedCampaign(count: number): Promise<string> {
  const campaignId = await acceptedCampaign(pool, sender)
  await startDue(pool)
  await pool.query('update campaigns set fan_out_completed_at = now() where id = $1', [campaignId])
  // In pieces: a busy machine takes seconds for all of them, which no statement may.
  for (let piece = 0; piece < 5; piece += 1) {
    await pool.query(
      `insert into queue (message_id, account_id, agent_id, task, priority, campaign_id, due_at, expires_at)
       select uuid_v7(), $1, $2, 'send', 2, $3, now() - interval '1 minute', now() + interval '1 day' from generate_series(1, $4)`,
      [sender.accountId, sender.agentId, campaignId, count / 5],
    )
  }
  return campaignId
}

/** The time of a claim that finds one message, of another account. The fastest of many: other processes only ever make one slower. */
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

test('a campaign of 100,000 does not slow the claims of others while it is paused, and lets transactional messages pass while it runs', async (t) => {
  await claimTimeMs()
  const aloneMs = await claimTimeMs()
  const campaignId = await queuedCampaign(100_000)
  await moveCampaign(pool, campaignId, 'PAUSED')
  const besideMs = await claimTimeMs()
  t.diagnostic(`a claim took ${aloneMs.toFixed(2)} ms, and ${besideMs.toFixed(2)} ms beside a paused campaign`)
  // Looking at 100,000 entries takes 60 ms and more.
  assert.ok(besideMs < 3 * aloneMs + 2, `${besideMs} ms instead of ${aloneMs} ms`)

  await moveCampaign(pool, campaignId, 'RUNNING')
  const transactional = [await queueMessage(pool, sender), await queueMessage(pool, other)]
  assert.deepEqual(new Set(await claimNow(2)), new Set(transactional))
  const last = await queueMessage(pool, sender)
  const claimed = await claimNow(40)
  assert.ok(claimed.includes(last) && claimed.length === 20, 'and the campaign has the rest of what its account may have')
  assert.equal(await assertAllTold(pool), 1, 'its start was told, and not its pause')
})
