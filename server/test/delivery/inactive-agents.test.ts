import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { activateAgent, changeAgent } from '../../src/agents/agents.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { failInactive } from '../../src/delivery/fail.ts'
import { createTestDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { claimMessage, createSender, kinds, queueMessage, queueMessages, readAll, type Sender, statusOf } from './support.ts'
import { claimNow, createCarrier, makeDue, record, startWorker } from './worker.ts'

const { url, hotPool: pool } = await createTestDatabase()

async function deactivate({ accountId, agentId }: Sender): Promise<void> {
  assert.equal((await changeAgent(pool, accountId, agentId, { active: false }))?.active, false)
}

async function isClaimed(messageId: string): Promise<boolean> {
  return (await claimNow(pool)).entries.some((entry) => entry.messageId === messageId)
}

describe('after an agent was deactivated,', () => {
  test('queued messages of that account fail with AGENT_INACTIVE, and those that were tried before are revoked', async () => {
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
      assert.equal(message.failure_description, 'The agent was deactivated before the message was sent.')
      assert.equal(queue?.task, index === 1 ? 'revoke' : undefined)
      assert.deepEqual([kinds(events), events[0].reason, events[0].occurred_at], [['failed'], 'AGENT_INACTIVE', message.failed_at])
    }
    assert.ok(await isClaimed(kept))
  })

  test('nothing is claimed before the agent is active again', async () => {
    const sender = await createSender(pool)
    const messageId = await queueMessage(pool, sender)
    await deactivate(sender)
    assert.equal(await isClaimed(messageId), false)
    await activateAgent(pool, sender.agentId, sender.accountId)
    assert.ok(await isClaimed(messageId))
  })

  test('a running call is left to its result; a retry fails', async () => {
    const sender = await createSender(pool)
    const [sent, retried] = [await claimMessage(pool, sender), await claimMessage(pool, sender)]
    await deactivate(sender)
    assert.equal((await failInactive(pool)).failed, 0)
    await record(pool, sent, { is: 'sent' })
    await record(pool, retried, { is: 'retry', afterMs: 60_000, detail: 'later' })
    assert.equal((await failInactive(pool)).failed, 1)
    assert.deepEqual([await statusOf(pool, sent.messageId), await statusOf(pool, retried.messageId)], ['SENT', 'FAILED'])
  })

  test('a message of a crashed worker fails once its lease has ended', async () => {
    const sender = await createSender(pool)
    const { messageId } = await claimMessage(pool, sender)
    await deactivate(sender)
    assert.equal((await failInactive(pool)).failed, 0)
    await makeDue(pool, [messageId])
    assert.equal((await failInactive(pool)).failed, 1)
    assert.equal(await statusOf(pool, messageId), 'FAILED')
  })

  test('an expired message does not fail but expires, and is revoked', async (t) => {
    const sender = await createSender(pool)
    const messageId = await queueMessage(pool, sender, { attempts: 1, expiresInMs: -1 })
    await deactivate(sender)
    await failInactive(pool)
    assert.equal(await statusOf(pool, messageId), 'ACCEPTED')
    await expireDue(pool)
    assert.equal((await failInactive(pool)).failed, 0)
    const carrier = createCarrier()
    startWorker(t, url, carrier)
    await until('it is revoked', async () => (await readAll(pool, messageId)).queue === null)
    const tasks = carrier.seen.filter((seen) => seen.messageId === messageId).map(({ task }) => task)
    assert.deepEqual([tasks, await statusOf(pool, messageId)], [['revoke'], 'EXPIRED'])
  })

  test('more than a thousand messages fail in batches', async () => {
    const sender = await createSender(pool)
    await queueMessages(pool, sender, { count: 1_500 })
    await deactivate(sender)
    assert.deepEqual(await failInactive(pool), { failed: 1_000, mayBeMore: true })
    assert.deepEqual(await failInactive(pool), { failed: 500, mayBeMore: false })
  })
})
