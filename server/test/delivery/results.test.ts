import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Entry } from '../../src/delivery/claim.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { recordResults } from '../../src/delivery/results.ts'
import { createTestDatabase } from '../support/database.ts'
import { moveExpiry } from '../support/expiring.ts'
import { whileOthersCommit } from './locks.ts'
import { claimMessage, createSender, kinds, queueMessages, readAll } from './support.ts'
import { assertPostponed, claimNow, makeDue, record, type SendResult } from './worker.ts'

const { hotPool: pool } = await createTestDatabase()
const sender = await createSender(pool)

const RESULTS: SendResult[] = [
  { is: 'sent' },
  { is: 'failed', reason: 'REJECTED', detail: 'no' },
  { is: 'retry', afterMs: 0, detail: 'later' },
  { is: 'revoke-asked', detail: '' },
  { is: 'revoke-refused', detail: 'gone' },
]

async function claimAgain({ messageId }: Entry): Promise<Entry> {
  await makeDue(pool, [messageId])
  return (await claimNow(pool)).entries.find((entry) => entry.messageId === messageId) as Entry
}

describe('a result changes nothing if', () => {
  const losses: Record<string, (entry: Entry) => Promise<unknown>> = {
    'another worker has claimed the entry': claimAgain,
    'another worker has recorded a result': async (entry) => assert.ok(await record(pool, await claimAgain(entry), { is: 'sent' })),
    'another worker has postponed the entry': async (entry) =>
      assert.ok(await record(pool, await claimAgain(entry), { is: 'retry', afterMs: 60_000, detail: 'later' })),
    'the worker has recorded a result before': async (entry) => assert.ok(await record(pool, entry, RESULTS[1] as SendResult)),
    'the message has expired': async ({ messageId }) => {
      await moveExpiry(pool, [messageId])
      await expireDue(pool)
    },
  }
  for (const [loss, lose] of Object.entries(losses)) {
    test(loss, async () => {
      const entry = await claimMessage(pool, sender)
      await lose(entry)
      const before = await readAll(pool, entry.messageId)
      for (const result of RESULTS) assert.equal(await record(pool, entry, result), false)
      assert.deepEqual(await readAll(pool, entry.messageId), before)
    })
  }

  test('its lease has ended, beside a result of the same batch that counts', async () => {
    const [stale, held] = [await claimMessage(pool, sender), await claimMessage(pool, sender)]
    await claimAgain(stale)
    const before = await readAll(pool, stale.messageId)
    const results = [stale, held].map(({ messageId, lease }) => ({ messageId, lease, is: 'sent' as const }))
    assert.deepEqual(await recordResults(pool, results), [false, true])
    assert.deepEqual(await readAll(pool, stale.messageId), before)
    assert.equal((await readAll(pool, held.messageId)).message.status, 'SENT')
  })
})

describe('the result', () => {
  async function recorded(result: SendResult) {
    const entry = await claimMessage(pool, sender)
    assert.equal(await record(pool, entry, result), true)
    return await readAll(pool, entry.messageId)
  }

  test('sent makes the message SENT and removes its queue entry', async () => {
    const { message, queue, events } = await recorded({ is: 'sent' })
    assert.deepEqual([message.status, queue, kinds(events), events[0].occurred_at], ['SENT', null, ['sent'], message.sent_at])
  })

  for (const [detail, description] of [
    ['400 FAILED_PRECONDITION', 'The network refused the message. The network said: 400 FAILED_PRECONDITION'],
    ['', 'The network refused the message.'],
  ] as const) {
    test(`failed makes the message FAILED with its reason and the network’s text "${detail}"`, async () => {
      const { message, queue, events } = await recorded({ is: 'failed', reason: 'REJECTED', detail })
      assert.deepEqual([message.status, message.failure_reason, message.failure_description], ['FAILED', 'REJECTED', description])
      const [{ reason, occurred_at }] = events
      assert.deepEqual([queue, kinds(events), reason, occurred_at], [null, ['failed'], 'REJECTED', message.failed_at])
    })
  }

  test('retry releases and postpones the entry, and keeps its attempts', async () => {
    const since = Date.now()
    const { message, queue, events } = await recorded({ is: 'retry', afterMs: 30_000, detail: '503' })
    assert.deepEqual([message.status, queue.lease, queue.attempts], ['ACCEPTED', null, 1])
    assertPostponed(queue, 30_000, since)
    assert.deepEqual([kinds(events), events[0].detail], [['attempt-failed'], '503'])
  })

  test('retry notes ten attempts in the timeline, and no more', async () => {
    const entry = await claimMessage(pool, sender)
    for (let attempt = 1; attempt <= 13; attempt += 1) {
      await pool.query('update queue set attempts = $2, lease = $3 where message_id = $1', [entry.messageId, attempt, entry.lease])
      assert.ok(await record(pool, entry, { is: 'retry', afterMs: 0, detail: `${attempt}` }))
      // Attempts are at least a second apart: two within a millisecond would be one row.
      await pool.query(`update message_events set occurred_at = occurred_at - interval '1 second' where message_id = $1`, [entry.messageId])
    }
    const { events } = await readAll(pool, entry.messageId)
    assert.equal(events.map(({ detail }) => detail).join(), '1,2,3,4,5,6,7,8,9,10')
  })

  for (const result of RESULTS.slice(0, 2)) {
    test(`${result.is} after the expiry leaves the message for the expiry loop, which expires and revokes it`, async () => {
      const entry = await claimMessage(pool, sender)
      await moveExpiry(pool, [entry.messageId])
      assert.equal(await record(pool, entry, result), true)
      const after = await readAll(pool, entry.messageId)
      assert.deepEqual([after.message.status, after.queue, after.events], ['ACCEPTED', null, []])
      await expireDue(pool)
      const expired = await readAll(pool, entry.messageId)
      assert.deepEqual([expired.message.status, expired.queue.task, expired.expiry], ['EXPIRED', 'revoke', null])
    })
  }
})

test('a full batch of results is recorded as a whole after it waited for locks on entries or messages', async () => {
  await queueMessages(pool, sender, { count: 1_000 })
  const { entries } = await claimNow(pool)
  assert.ok(entries.length >= 500)
  const idsOf = (some: Entry[]) => some.map(({ messageId }) => messageId)
  const ids = idsOf(entries)
  for (const [table, id] of Object.entries({ queue: 'message_id', messages: 'id' })) {
    const half = entries.splice(0, 250)
    const recorded = await whileOthersCommit(
      pool,
      (tx) => tx.query(`update ${table} set expires_at = expires_at + interval '1 second' where ${id} = any ($1)`, [ids]),
      () =>
        recordResults(
          pool,
          half.map(({ messageId, lease }) => ({ messageId, lease, is: 'sent' })),
        ),
    )
    assert.ok(recorded.every(Boolean))
    const { rowCount } = await pool.query(`select from messages where id = any ($1) and status = 'SENT'`, [idsOf(half)])
    assert.equal(rowCount, half.length, `after waiting for ${table}`)
  }
})
