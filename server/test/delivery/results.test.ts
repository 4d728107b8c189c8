import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { claim, type Entry } from '../../src/delivery/claim.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { ensurePace } from '../../src/delivery/rate.ts'
import { type EntryResult, recordResults } from '../../src/delivery/results.ts'
import { createTestDatabase } from '../support/database.ts'
import { CARRIER, createSender, queueMessage, queueMessages, readAll, whileOthersCommit } from './support.ts'

const { hotPool: pool } = await createTestDatabase()
await ensurePace(pool, CARRIER)
const sender = await createSender(pool)

async function claimAll(): Promise<Entry[]> {
  const carrier = { name: CARRIER, messagesPerSecond: undefined, messagesPerSecondPerAgent: undefined }
  const request = { carrier, free: 1_000, lease: randomUUID(), leaseMs: 60_000, pausedAgents: [], calls: new Map() }
  return (await claim(pool, request)).entries
}

async function claimed(): Promise<Entry> {
  const messageId = await queueMessage(pool, sender)
  return (await claimAll()).find((entry) => entry.messageId === messageId) as Entry
}

async function record({ messageId, lease }: Entry, verdict: EntryResult): Promise<boolean> {
  return (await recordResults(pool, [{ messageId, lease, ...verdict }]))[0] === true
}

async function endLease({ messageId }: Entry): Promise<void> {
  await pool.query('update queue set due_at = now(), leased_until = now() where message_id = $1', [messageId])
}

async function runOut({ messageId }: Entry): Promise<void> {
  for (const [table, id] of Object.entries({ messages: 'id', queue: 'message_id', expiries: 'message_id' })) {
    await pool.query(`update ${table} set expires_at = now() - interval '1 second' where ${id} = $1`, [messageId])
  }
}

const VERDICTS: EntryResult[] = [
  { is: 'sent' },
  { is: 'failed', reason: 'REJECTED', detail: 'no' },
  { is: 'retry', afterMs: 0, detail: 'later' },
  { is: 'revoke-asked', detail: '' },
  { is: 'revoke-refused', detail: 'gone' },
]

describe('a worker whose lease is over writes nothing, whatever came of its call:', () => {
  const losses: Record<string, (entry: Entry) => Promise<unknown>> = {
    'another worker has taken the entry up': async (entry) => {
      await endLease(entry)
      await claimAll()
    },
    'another worker has written its result': async (entry) => {
      await endLease(entry)
      const again = (await claimAll()).find(({ messageId }) => messageId === entry.messageId) as Entry
      assert.ok(await record(again, { is: 'sent' }))
    },
    'another worker has put it off': async (entry) => {
      await endLease(entry)
      const again = (await claimAll()).find(({ messageId }) => messageId === entry.messageId) as Entry
      assert.ok(await record(again, { is: 'retry', afterMs: 60_000, detail: 'later' }))
    },
    'it has written a result before': async (entry) => assert.ok(await record(entry, { is: 'failed', reason: 'REJECTED', detail: 'no' })),
    'the message has run out': async (entry) => {
      await runOut(entry)
      await expireDue(pool)
    },
  }
  for (const [name, lose] of Object.entries(losses)) {
    test(name, async () => {
      const entry = await claimed()
      await lose(entry)
      const before = await readAll(pool, entry.messageId)
      for (const verdict of VERDICTS) assert.equal(await record(entry, verdict), false)
      assert.deepEqual(await readAll(pool, entry.messageId), before)
    })
  }

  test('of a batch, only what is held counts, and the rest stays as it is', async () => {
    const [stale, held] = [await claimed(), await claimed()]
    await endLease(stale)
    await claimAll()
    const before = await readAll(pool, stale.messageId)
    const results = [stale, held].map(({ messageId, lease }) => ({ messageId, lease, is: 'sent' as const }))
    assert.deepEqual(await recordResults(pool, results), [false, true])
    assert.deepEqual(await readAll(pool, stale.messageId), before)
    assert.equal((await readAll(pool, held.messageId)).message.status, 'SENT')
  })
})

describe('a result', () => {
  test('sent: SENT with its time, out of the queue, and still to expire', async () => {
    const entry = await claimed()
    assert.equal(await record(entry, { is: 'sent' }), true)
    const { message, queue, events } = await readAll(pool, entry.messageId)
    assert.deepEqual([message.status, queue], ['SENT', null])
    assert.deepEqual(
      events.map(({ kind, occurred_at }) => [kind, occurred_at]),
      [['sent', message.sent_at]],
    )
  })

  test('failed: FAILED with its reason and a description, in the network’s words where it has any, and nothing left to do', async () => {
    const descriptions: string[] = []
    for (const detail of ['400 FAILED_PRECONDITION', '']) {
      const entry = await claimed()
      await record(entry, { is: 'failed', reason: 'REJECTED', detail })
      const { message, queue, events } = await readAll(pool, entry.messageId)
      assert.deepEqual([message.status, message.failure_reason, queue], ['FAILED', 'REJECTED', null])
      assert.deepEqual(
        events.map(({ kind, occurred_at, reason }) => ({ kind, occurred_at, reason })),
        [{ kind: 'failed', occurred_at: message.failed_at, reason: 'REJECTED' }],
      )
      descriptions.push(message.failure_description)
    }
    assert.deepEqual(descriptions, [
      'The network refused the message. The network said: 400 FAILED_PRECONDITION',
      'The network refused the message.',
    ])
  })

  test('again: due after the time it names, without a lease, its attempts kept', async () => {
    const entry = await claimed()
    await record(entry, { is: 'retry', afterMs: 30_000, detail: '503' })
    const { message, queue, events } = await readAll(pool, entry.messageId)
    assert.deepEqual([message.status, queue.lease, queue.attempts], ['ACCEPTED', null, 1])
    const inMs = Date.parse(queue.due_at) - Date.now()
    assert.ok(inMs > 25_000 && inMs <= 30_500, `${inMs}`)
    assert.deepEqual(
      events.map(({ kind, detail }) => [kind, detail]),
      [['attempt-failed', '503']],
    )
  })

  test('again: ten attempts are noted in the timeline, and no more', async () => {
    const entry = await claimed()
    for (let attempt = 1; attempt <= 13; attempt += 1) {
      await pool.query('update queue set attempts = $2, lease = $3 where message_id = $1', [entry.messageId, attempt, entry.lease])
      assert.ok(await record(entry, { is: 'retry', afterMs: 0, detail: `${attempt}` }))
      // Attempts are at least a second apart: two within a millisecond would be one row.
      await pool.query(`update message_events set occurred_at = occurred_at - interval '1 second' where message_id = $1`, [entry.messageId])
    }
    const { events } = await readAll(pool, entry.messageId)
    assert.deepEqual(
      events.map(({ detail }) => Number(detail)),
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    )
  })

  for (const verdict of VERDICTS.slice(0, 2)) {
    test(`${verdict.is}, but after its expiry: it leaves the queue, stays for the expiry to mark, and is then taken back`, async () => {
      const entry = await claimed()
      await runOut(entry)
      assert.equal(await record(entry, verdict), true)
      const after = await readAll(pool, entry.messageId)
      assert.deepEqual([after.message.status, after.queue, after.events], ['ACCEPTED', null, []])
      await expireDue(pool)
      const marked = await readAll(pool, entry.messageId)
      assert.deepEqual([marked.message.status, marked.queue.task, marked.expiry], ['EXPIRED', 'revoke', null])
    })
  }
})

test('a full batch of results that has to wait for locks on its entries and messages is written as a whole', async () => {
  await queueMessages(pool, sender, { count: 1_000 })
  const entries = await claimAll()
  assert.ok(entries.length >= 500)
  const ids = entries.map(({ messageId }) => messageId)
  for (const [table, id] of Object.entries({ queue: 'message_id', messages: 'id' })) {
    const half = entries.splice(0, 250)
    const counted = await whileOthersCommit(
      pool,
      (tx) => tx.query(`update ${table} set expires_at = expires_at + interval '1 second' where ${id} = any ($1)`, [ids]),
      () =>
        recordResults(
          pool,
          half.map(({ messageId, lease }) => ({ messageId, lease, is: 'sent' })),
        ),
    )
    assert.ok(counted.every(Boolean))
    const halfIds = half.map(({ messageId }) => messageId)
    const { rowCount } = await pool.query(`select from messages where id = any ($1) and status = 'SENT'`, [halfIds])
    assert.equal(rowCount, half.length, `after waiting for ${table}`)
  }
})
