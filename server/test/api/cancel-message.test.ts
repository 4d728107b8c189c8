import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { claimNow, record } from '../delivery/worker.ts'
import { createTestDatabase } from '../support/database.ts'
import { type MessageCaller, newKey, smsFallback, startMessageService } from '../support/messages.ts'
import { assertError } from '../support/service.ts'

const database = await createTestDatabase()
const { hotPool: pool } = database
const { newCaller } = await startMessageService(database)

const cancel = ({ ask }: MessageCaller, messageId: string) => ask('POST', `/messages/${messageId}/cancel`)
const FAILURE = { reason: 'CANCELLED', description: 'The message was cancelled before it was sent.' }

/** Claims the messages of this caller. Those of other tests are claimed, too, and stay leased. */
async function claimOf({ agentId }: MessageCaller) {
  return (await claimNow(pool, { free: 1_000 })).entries.filter((entry) => entry.agentId === agentId)
}

function assertState(response: Awaited<ReturnType<typeof cancel>>, status: string): void {
  const reason = `is ${status}: a message can be cancelled while it waits to be handed to the network`
  assertError(response, 409, 'RCS_MESSAGE_STATE', [['/status', reason]])
}

describe('POST /messages/{messageId}/cancel', () => {
  test('fails a waiting message, which is never sent, and skips its SMS', async () => {
    const caller = await newCaller()
    const messageId = await caller.accepted({ smsFallback: smsFallback() })
    const before = (await caller.read(messageId)).body
    const { status, body } = await cancel(caller, messageId)
    const { failedAt } = body
    const sms = { ...before.smsFallback, status: 'SKIPPED', reason: 'CANCELLED' }
    assert.deepEqual([status, body], [200, { ...before, status: 'FAILED', failedAt, failure: FAILURE, smsFallback: sms }])
    assert.deepEqual(await claimOf(caller), [])
  })

  test('returns the same to a second request, and to ten at once', async () => {
    const caller = await newCaller()
    const messageId = await caller.accepted()
    const first = await Promise.all(Array.from({ length: 10 }, () => cancel(caller, messageId)))
    const { body } = await cancel(caller, messageId)
    for (const response of first) assert.deepEqual([response.status, response.body], [200, body])
  })

  test('responds 409 while the message is being sent, and cancels and revokes it between two attempts', async () => {
    const caller = await newCaller()
    const messageId = await caller.accepted()
    const [entry] = await claimOf(caller)
    assertState(await cancel(caller, messageId), 'SENDING')
    assert.ok(entry !== undefined && (await record(pool, entry, { is: 'unknown', afterMs: 60_000, detail: '503' })))
    assert.equal((await cancel(caller, messageId)).body.failure.reason, 'CANCELLED')
    assert.deepEqual(
      (await claimOf(caller)).map((each) => [each.messageId, each.task]),
      [[messageId, 'revoke']],
    )
  })

  test('cancels a message whose worker made no call', async () => {
    const caller = await newCaller()
    const messageId = await caller.accepted()
    const [entry] = await claimOf(caller)
    assert.ok(entry !== undefined && (await record(pool, entry, { is: 'not-tried', afterMs: 0 })))
    assert.equal((await cancel(caller, messageId)).body.failure.reason, 'CANCELLED')
  })

  test('responds 409 to a message that was sent', async () => {
    const caller = await newCaller()
    const messageId = await caller.accepted()
    const [entry] = await claimOf(caller)
    assert.ok(entry !== undefined && (await record(pool, entry, { is: 'sent' })))
    assertState(await cancel(caller, messageId), 'SENT')
  })

  test('either cancels a message or leaves it to the worker that claims it at the same moment', async () => {
    const caller = await newCaller()
    const ids = await Promise.all(Array.from({ length: 40 }, () => caller.accepted()))
    const [answers, claimed] = await Promise.all([Promise.all(ids.map((id) => cancel(caller, id))), claimOf(caller)])
    for (const [index, { status }] of answers.entries()) {
      assert.equal(status, claimed.some(({ messageId }) => messageId === ids[index]) ? 409 : 200)
    }
  })

  test('needs no body, and responds 400 to a field', async () => {
    const caller = await newCaller()
    const path = `/messages/${await caller.accepted()}/cancel`
    const { status, body } = await caller.ask('POST', path, { reason: 'changed my mind' })
    assert.deepEqual([status, body.details], [400, [{ path: '/reason', reason: 'is not known here; is it misspelt?' }]])
    assert.equal((await caller.ask('POST', path, {})).status, 200)
  })

  test('responds 404 to an unknown message and to that of another account', async () => {
    const [caller, other] = [await newCaller(), await newCaller()]
    const messageId = await other.accepted()
    for (const id of [messageId, newKey(), 'x']) assertError(await cancel(caller, id), 404, 'RCS_MESSAGE_NOT_FOUND')
    assert.equal((await other.read(messageId)).body.status, 'ACCEPTED')
  })
})
