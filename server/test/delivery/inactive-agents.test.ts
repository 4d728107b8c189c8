import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { activateAgent, changeAgent } from '../../src/agents/agents.ts'
import { claim, type Entry } from '../../src/delivery/claim.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { failInactive } from '../../src/delivery/fail.ts'
import { ensurePace } from '../../src/delivery/rate.ts'
import { recordResults } from '../../src/delivery/results.ts'
import { createTestDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import {
  CARRIER,
  createCarrier,
  createSender,
  queueMessage,
  queueMessages,
  readAll,
  type Sender,
  startWorker,
  statusOf,
} from './support.ts'

const { url, hotPool: pool } = await createTestDatabase()
await ensurePace(pool, CARRIER)

async function claimOne(messageId: string): Promise<Entry | undefined> {
  const carrier = { name: CARRIER, messagesPerSecond: undefined, messagesPerSecondPerAgent: undefined }
  const request = { carrier, free: 10, leaseMs: 60_000, pausedAgents: [], calls: new Map() }
  return (await claim(pool, request)).entries.find((entry) => entry.messageId === messageId)
}

async function deactivate({ accountId, agentId }: Sender): Promise<void> {
  assert.equal((await changeAgent(pool, accountId, agentId, { active: false }))?.active, false)
}

describe('of an agent that was deactivated', () => {
  test('what is queued fails with AGENT_INACTIVE; what was tried before is taken back too, since its answer may have been lost; other accounts of the agent are left alone', async () => {
    const [sender, other] = [await createSender(pool), await createSender(pool)]
    await pool.query('insert into agent_assignments (account_id, agent_id) values ($1, $2)', [other.accountId, sender.agentId])
    const ids = [
      await queueMessage(pool, sender),
      await queueMessage(pool, sender, { attempts: 1, dueInMs: 60_000 }),
      await queueMessage(pool, sender, { priority: 2 }),
    ]
    const kept = await queueMessage(pool, { accountId: other.accountId, agentId: sender.agentId })
    await deactivate(sender)
    assert.deepEqual(await failInactive(pool), { failed: 3, mayBeMore: false })
    for (const [index, id] of ids.entries()) {
      const { message, queue, events } = await readAll(pool, id)
      assert.deepEqual([message.status, message.failure_reason], ['FAILED', 'AGENT_INACTIVE'])
      assert.equal(queue?.task, index === 1 ? 'revoke' : undefined)
      assert.equal(message.failure_description, 'The agent was deactivated before the message was sent.')
      assert.deepEqual(
        events.map(({ kind, reason, occurred_at }) => ({ kind, reason, occurred_at })),
        [{ kind: 'failed', reason: 'AGENT_INACTIVE', occurred_at: message.failed_at }],
      )
    }
    assert.ok(await claimOne(kept))
  })

  test('nothing is claimed, even before it has failed', async () => {
    const sender = await createSender(pool)
    const messageId = await queueMessage(pool, sender)
    await deactivate(sender)
    assert.equal(await claimOne(messageId), undefined)
    await activateAgent(pool, sender.agentId, sender.accountId)
    assert.ok(await claimOne(messageId))
  })

  test('what is being sent is left to its outcome; if that is to try again, it fails', async () => {
    const sender = await createSender(pool)
    const [goes, comesBack] = await queueMessages(pool, sender, { count: 2 })
    const carrier = { name: CARRIER, messagesPerSecond: undefined, messagesPerSecondPerAgent: undefined }
    const { entries } = await claim(pool, { carrier, free: 10, leaseMs: 60_000, pausedAgents: [], calls: new Map() })
    assert.equal(entries.length, 2)
    const { lease } = entries[0] as (typeof entries)[number]
    await deactivate(sender)
    assert.equal((await failInactive(pool)).failed, 0)
    await recordResults(pool, [
      { messageId: goes as string, lease, is: 'sent' },
      { messageId: comesBack as string, lease, is: 'retry', afterMs: 60_000, detail: 'later' },
    ])
    assert.equal((await failInactive(pool)).failed, 1)
    assert.deepEqual([await statusOf(pool, goes as string), await statusOf(pool, comesBack as string)], ['SENT', 'FAILED'])
  })

  test('what a crashed worker held fails once its lease has ended', async () => {
    const sender = await createSender(pool)
    const messageId = await queueMessage(pool, sender)
    await claimOne(messageId)
    await deactivate(sender)
    assert.equal((await failInactive(pool)).failed, 0)
    await pool.query('update queue set due_at = now(), leased_until = now() where message_id = $1', [messageId])
    assert.equal((await failInactive(pool)).failed, 1)
    assert.equal(await statusOf(pool, messageId), 'FAILED')
  })

  test('what has run out is not failed but expires, and what is to be taken back is taken back', async (t) => {
    const sender = await createSender(pool)
    const messageId = await queueMessage(pool, sender, { attempts: 1, expiresInMs: -1 })
    await deactivate(sender)
    await failInactive(pool)
    assert.equal(await statusOf(pool, messageId), 'ACCEPTED')
    await expireDue(pool)
    assert.equal((await failInactive(pool)).failed, 0)
    const carrier = createCarrier()
    startWorker(t, url, carrier)
    await until('it is taken back', async () => (await readAll(pool, messageId)).queue === null)
    assert.deepEqual(
      carrier.seen.filter((seen) => seen.messageId === messageId).map(({ task }) => task),
      ['revoke'],
    )
    assert.equal(await statusOf(pool, messageId), 'EXPIRED')
  })

  test('a thousand and more go in portions', async () => {
    const sender = await createSender(pool)
    await queueMessages(pool, sender, { count: 1_500 })
    await deactivate(sender)
    assert.deepEqual(await failInactive(pool), { failed: 1_000, mayBeMore: true })
    assert.deepEqual(await failInactive(pool), { failed: 500, mayBeMore: false })
  })
})
