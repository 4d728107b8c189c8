import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resumeAccount, suspendAccount } from '../../../src/accounts/accounts.ts'
import { addAutoReply } from '../../../src/replies/auto-replies.ts'
import { findOptOuts } from '../../../src/replies/opt-outs.ts'
import { createSender } from '../support.ts'
import { logged, pool } from './nodes.ts'
import { PHONE, receiveReplies, tapped, wrote } from './recipients.ts'
import { actionsOf, MINUTE_MS, messagesOf, sentMessage, template, triggering } from './shared.ts'

test('replies to a suspended account are recorded, opt out, and send nothing, also later', async () => {
  const sender = await createSender(pool)
  const { accountId, agentId } = sender
  const templateId = await template(sender)
  const messageId = await sentMessage(sender, { content: triggering(templateId), agoMs: 3 * MINUTE_MS })
  await addAutoReply(pool, { accountId, agentId, keyword: 'hours', templateId })
  await suspendAccount(pool, accountId)
  const lines = await logged(() =>
    receiveReplies([
      wrote(sender, 'hours', { agoMs: 2 * MINUTE_MS }),
      tapped(sender, messageId, 'more', { agoMs: MINUTE_MS }),
      wrote(sender, 'STOP', { agoMs: 1_000 }),
    ]),
  )
  assert.deepEqual(
    lines.map(({ reason }) => reason),
    ['the template was not sent: suspended', 'the template was not sent: suspended'],
  )
  assert.deepEqual(
    (await actionsOf(sender)).map(({ kind }) => kind),
    ['wrote', 'tapped', 'opted-out'],
  )
  assert.equal((await findOptOuts(pool, { accountId, agentId, phone: PHONE }))[0]?.optedOut, true)
  await resumeAccount(pool, accountId)
  assert.deepEqual(await messagesOf(sender), [])
  await receiveReplies([tapped(sender, messageId, 'more')])
  assert.equal((await messagesOf(sender)).length, 1)
})
