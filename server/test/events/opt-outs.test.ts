import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Executor } from '../../src/db/pool.ts'
import { OperatorError } from '../../src/errors.ts'
import { changeOptOut, recordOptOut } from '../../src/replies/opt-outs.ts'
import { whileOthersCommit } from '../delivery/locks.ts'
import { createSender } from '../delivery/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { readEmitted } from '../support/emitted.ts'

// The operator's opt-outs. Opt-outs by recipients have a row of their own, which the check of the dropped database compares.

const { hotPool: pool } = await createTestDatabase()

test('emits an operator’s opt-out once, and nothing for an opt-in or a rejected change', async () => {
  const sender = await createSender(pool)
  const key = { accountId: sender.accountId, agentId: sender.agentId, phone: '+48500100299' }
  await changeOptOut(pool, key, true)
  await changeOptOut(pool, key, true)
  await changeOptOut(pool, key, false)
  await assert.rejects(changeOptOut(pool, key, false), OperatorError)
  await assert.rejects(changeOptOut(pool, { ...key, agentId: 'nobody' }, true), OperatorError)
  assert.deepEqual(
    (await readEmitted(pool, sender)).map(({ kind }) => kind),
    ['recipient.opted_out'],
  )
})

test('emits an operator’s opt-out with the stored time when it waits for another change', async () => {
  const sender = await createSender(pool)
  const key = { accountId: sender.accountId, agentId: sender.agentId, phone: '+48500100299' }
  const optIn = (tx: Executor) => recordOptOut(tx, { ...key, optedOut: false, source: 'word' })
  const {
    after: [optOut],
  } = await whileOthersCommit(pool, optIn, () => changeOptOut(pool, key, true))
  assert.deepEqual((await readEmitted(pool, sender))[0]?.occurredAt, optOut?.changedAt)
})
