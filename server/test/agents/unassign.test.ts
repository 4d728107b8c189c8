import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  activateAgent,
  assignAgent,
  changeAgent,
  countAgentUse,
  listActiveAgents,
  listAgents,
  unassignAgent,
} from '../../src/agents/agents.ts'
import { failInactive } from '../../src/delivery/fail.ts'
import { addAutoReply, listAutoReplies } from '../../src/replies/auto-replies.ts'
import { changeOptOut, findOptOuts, recordOptOut } from '../../src/replies/opt-outs.ts'
import { createTemplate, deleteTemplate } from '../../src/templates/templates.ts'
import { untilBlocked } from '../delivery/locks.ts'
import { createReceiver, createSender, queueMessage, readAll, receipt, sentMessage, statusOf } from '../delivery/support.ts'
import { createTestDatabase } from '../support/database.ts'

const { pool } = await createTestDatabase({ unmetered: 'messages are queued by hand' })
const TEMPLATE = { name: 'Hours', basic: false, status: 'APPROVED', message: { type: 'MESSAGE', content: '8 to 16' } } as const
const PHONE = '+48500100200'
const OTHER_PHONE = '+48500100201'

/** A sender with a template and an automatic reply. */
async function replyingSender() {
  const sender = await createSender(pool)
  const { accountId, agentId } = sender
  const { id: templateId } = await createTemplate(pool, accountId, TEMPLATE)
  const reply = { accountId, agentId, keyword: 'hours', templateId }
  await addAutoReply(pool, reply)
  return { ...sender, templateId, reply }
}

describe('an agent that is unassigned', () => {
  test('is gone for the account, fails its queued messages, loses its automatic replies, and keeps its opt-outs', async () => {
    const { accountId, agentId, templateId, reply } = await replyingSender()
    const key = { accountId, agentId, phone: PHONE }
    await changeOptOut(pool, key, true)
    await changeAgent(pool, accountId, agentId, { displayName: 'Shop' })
    const waiting = await queueMessage(pool, { accountId, agentId })
    const { autoRepliesRemoved, active } = await unassignAgent(pool, agentId, accountId)
    assert.deepEqual([autoRepliesRemoved, active], [1, false])
    assert.deepEqual(await listActiveAgents(pool, accountId), [])
    assert.deepEqual((await listAgents(pool)).find((agent) => agent.agentId === agentId)?.accounts, [])
    await failInactive(pool)
    assert.equal((await readAll(pool, waiting)).message.failure_reason, 'AGENT_INACTIVE')
    assert.deepEqual(await listAutoReplies(pool, accountId), [])
    await deleteTemplate(pool, accountId, templateId)
    assert.equal((await countAgentUse(pool, agentId, accountId)).optOuts, 1)
    for (const refused of [
      () => activateAgent(pool, agentId, accountId),
      () => unassignAgent(pool, agentId, accountId),
      () => addAutoReply(pool, reply),
    ]) {
      await assert.rejects(refused, /^Error: The agent .* is not assigned to account /)
    }
  })

  test('still gets receipts and opt-outs of its earlier messages', async () => {
    const sender = await createSender(pool)
    const messageId = await sentMessage(pool, sender)
    await unassignAgent(pool, sender.agentId, sender.accountId)
    await createReceiver(pool)([receipt({ messageId })])
    assert.equal(await statusOf(pool, messageId), 'DELIVERED')
    const { accountId, agentId } = sender
    assert.equal(await recordOptOut(pool, { accountId, agentId, phone: OTHER_PHONE, optedOut: true, source: 'word' }), true)
  })

  test('is active again once it is assigned again, with its opt-outs and without its display name', async () => {
    const { accountId, agentId } = await createSender(pool)
    const key = { accountId, agentId, phone: PHONE }
    await changeOptOut(pool, key, true)
    await changeAgent(pool, accountId, agentId, { displayName: 'Shop' })
    await unassignAgent(pool, agentId, accountId)
    const again = await assignAgent(pool, agentId, accountId)
    assert.deepEqual([again.active, again.displayName], [true, undefined])
    assert.equal((await findOptOuts(pool, key))[0]?.optedOut, true)
    assert.equal((await listActiveAgents(pool, accountId)).length, 1)
  })

  test('keeps no automatic reply that is added at the same time, whichever comes first', async () => {
    for (const isFirst of ['add', 'unassign']) {
      const { accountId, agentId, reply } = await replyingSender()
      const other = { ...reply, keyword: 'menu' }
      const blocker = await pool.connect()
      await blocker.query('begin')
      await blocker.query('select from agent_assignments where account_id = $1 and agent_id = $2 for update', [accountId, agentId])
      const [add, unassign] = [
        () => addAutoReply(pool, other).catch((error: Error) => error.message),
        () => unassignAgent(pool, agentId, accountId),
      ]
      const first = isFirst === 'add' ? add() : unassign()
      await untilBlocked(pool, 1)
      const second = isFirst === 'add' ? unassign() : add()
      await untilBlocked(pool, 2)
      await blocker.query('rollback')
      blocker.release()
      await Promise.all([first, second])
      assert.deepEqual(await listAutoReplies(pool, accountId), [], isFirst)
    }
  })
})
