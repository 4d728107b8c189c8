import assert from 'node:assert/strict'
import { randomInt, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { CarrierEvent } from '../../src/carriers/carrier.ts'
import { createHotPool } from '../../src/db/pool.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { recordResults } from '../../src/delivery/results.ts'
import { recordChanges } from '../../src/events/changes.ts'
import { createTestDatabase } from '../support/database.ts'
import { moveExpiry } from '../support/expiring.ts'
import { whileOthersCommit } from './locks.ts'
import { claimMessage, createReceiver, createSender, kinds, queueMessages, readAll, receipt, sentMessage, statusOf } from './support.ts'
import { claimNow, record } from './worker.ts'

const { url, hotPool: pool } = await createTestDatabase()
const sender = await createSender(pool)
const receive = createReceiver(pool)

async function failedMessage(): Promise<string> {
  const entry = await claimMessage(pool, sender)
  await record(pool, entry, { is: 'failed', reason: 'REJECTED', detail: 'no' })
  return entry.messageId
}

async function expiredMessage(): Promise<string> {
  const messageId = await sentMessage(pool, sender)
  await moveExpiry(pool, [messageId])
  await expireDue(pool)
  return messageId
}

async function storedEvents(events: CarrierEvent[]): Promise<number> {
  const { rowCount } = await pool.query('select from carrier_events where event_id = any ($1)', [events.map(({ eventId }) => eventId)])
  return rowCount ?? 0
}

/** Takes the receipts twice. Fails unless each is noted once in the timeline, as one of these kinds, and nothing else changes. */
async function assertNoted(messageId: string, receipts: CarrierEvent[], notedAs: string[]): Promise<void> {
  const { events: before, ...rest } = await readAll(pool, messageId)
  await receive(receipts)
  await receive(receipts)
  const { events, ...after } = await readAll(pool, messageId)
  assert.deepEqual(after, rest)
  assert.equal(await storedEvents(receipts), 0)
  assert.deepEqual([events.length, new Set(kinds(events.slice(before.length)))], [before.length + notedAs.length, new Set(notedAs)])
}

describe('a receipt', () => {
  test('moves a sent message to DELIVERED and then to READ, and is not stored', async () => {
    const messageId = await sentMessage(pool, sender)
    const delivered = receipt({ messageId })
    await receive([delivered])
    const first = await readAll(pool, messageId)
    assert.deepEqual([first.message.status, first.queue], ['DELIVERED', null])
    const read = receipt({ messageId, kind: 'read' })
    await receive([read])
    const { message, events } = await readAll(pool, messageId)
    assert.deepEqual([message.status, kinds(events)], ['READ', ['sent', 'delivered', 'read']])
    assert.equal(await storedEvents([delivered, read]), 0)
  })

  test('changes nothing if it comes again, later or in the same batch, even with another time', async () => {
    const messageId = await sentMessage(pool, sender)
    const delivered = receipt({ messageId })
    await receive([delivered, delivered])
    const before = await readAll(pool, messageId)
    await receive([delivered])
    await receive([receipt({ messageId, agoMs: -500 })])
    assert.deepEqual(await readAll(pool, messageId), before)
    await receive([receipt({ messageId, kind: 'read' })])
    const read = await readAll(pool, messageId)
    await receive([receipt({ messageId, kind: 'read', agoMs: -500 }), delivered])
    assert.deepEqual(await readAll(pool, messageId), read)
  })

  for (const [order, batches] of Object.entries<('delivered' | 'read')[][]>({
    'READ comes before DELIVERED': [['read'], ['delivered']],
    'both are in one batch, READ first': [['read', 'delivered']],
    'both are in one batch': [['delivered', 'read']],
    'READ comes alone': [['read']],
  })) {
    test(`leads to READ with all times if ${order}`, async () => {
      const messageId = await sentMessage(pool, sender)
      for (const batch of batches) await receive(batch.map((kind) => receipt({ messageId, kind })))
      const { message, events } = await readAll(pool, messageId)
      assert.equal(message.status, 'READ')
      assert.ok(message.sent_at <= message.delivered_at && message.delivered_at <= message.read_at)
      if (batches.flat().length === 1) assert.equal(message.delivered_at, message.read_at)
      assert.equal(events.length, 3)
      assert.deepEqual(new Set(kinds(events)), new Set(['sent', 'delivered', 'read']))
    })
  }

  test('ends the send if it comes before the response: the result no longer counts', async () => {
    for (const result of [{ is: 'sent' }, { is: 'retry', afterMs: 0, detail: 'lost' }] as const) {
      const entry = await claimMessage(pool, sender)
      await receive([receipt(entry)])
      const before = await readAll(pool, entry.messageId)
      assert.deepEqual([before.message.status, before.queue, kinds(before.events)], ['DELIVERED', null, ['sent', 'delivered']])
      assert.equal(await record(pool, entry, result), false)
      assert.deepEqual(await readAll(pool, entry.messageId), before)
    }
  })

  test('after FAILED or EXPIRED is noted in the timeline once, and changes nothing else', async () => {
    for (const messageId of [await failedMessage(), await expiredMessage()]) {
      const late = [receipt({ messageId }), receipt({ messageId, kind: 'read' })]
      await assertNoted(messageId, late, ['delivered-late', 'read-late'])
    }
  })

  test('about the revocation is noted in the timeline once, and changes nothing else', async () => {
    const messageId = await expiredMessage()
    const revocations = [receipt({ messageId, kind: 'expired' }), receipt({ messageId, kind: 'expiry-failed' })]
    await assertNoted(messageId, revocations, ['revoke-failed', 'revoked'])
  })

  test('after the expiry is late even if the message is not marked yet; READ of a message delivered in time is not', async () => {
    const [late, inTime] = [await sentMessage(pool, sender), await sentMessage(pool, sender)]
    await receive([receipt({ messageId: inTime })])
    await moveExpiry(pool, [late, inTime])
    await receive([receipt({ messageId: late }), receipt({ messageId: inTime, kind: 'read' })])
    const { message, events } = await readAll(pool, late)
    assert.deepEqual([message.status, kinds(events)], ['SENT', ['sent', 'delivered-late']])
    assert.equal(await statusOf(pool, inTime), 'READ')
    await expireDue(pool)
    assert.equal(await statusOf(pool, late), 'EXPIRED')
  })

  test('of a delivery before the expiry that arrives after it leaves EXPIRED, and the timeline has both times, once', async () => {
    const messageId = await sentMessage(pool, sender)
    await moveExpiry(pool, [messageId], `date_trunc('second', now()) - interval '10 minutes'`)
    await expireDue(pool)
    const delivered = receipt({ messageId, agoMs: 1_200_000 })
    const started = Date.now()
    await receive([delivered])
    const first = await readAll(pool, messageId)
    await receive([delivered])
    const { message, events } = await readAll(pool, messageId)
    assert.deepEqual(events, first.events, 'a repeated receipt changes neither time')
    const [{ occurred_at, recorded_at }] = events.filter(({ kind }) => kind === 'delivered-late') as [any]
    const [occurredAt, recordedAt, expiresAt] = [occurred_at, recorded_at, message.expires_at].map((time) => Date.parse(time)) as [
      number,
      number,
      number,
    ]
    assert.deepEqual([message.status, message.delivered_at, occurredAt], ['EXPIRED', null, delivered.occurredAt.getTime()])
    assert.ok(occurredAt < expiresAt && expiresAt < recordedAt && recordedAt >= started - 1, JSON.stringify(events))
  })

  test('for an unknown message, or from another phone, carrier or agent, is stored once and moves nothing', async () => {
    const messageId = await sentMessage(pool, sender)
    const before = await readAll(pool, messageId)
    const strays = [
      receipt({ messageId, phone: '+48500100201' }),
      receipt({ messageId, carrier: 'another' }),
      receipt({ messageId, agentId: 'another' }),
      receipt({ messageId: randomUUID() }),
      receipt({ messageId: 'MsgNotAUuid', kind: 'read' }),
      receipt({ messageId: '' }),
    ]
    await receive([...strays, ...strays])
    await receive(strays)
    assert.deepEqual(await readAll(pool, messageId), before)
    assert.equal(await storedEvents(strays), strays.length)
    // In one batch with a receipt that matches.
    const [own, stray] = [receipt({ messageId }), receipt({ messageId, kind: 'read', phone: '+48500100201' })]
    await receive([stray, own])
    assert.deepEqual([await statusOf(pool, messageId), await storedEvents([own]), await storedEvents([stray])], ['DELIVERED', 0, 1])
  })

  test('gets a time between the last known one and now, if the carrier’s clock is an hour ahead, or an hour or two days behind', async () => {
    for (const agoMs of [48 * 3_600_000, 3_600_000, -3_600_000]) {
      for (const messageId of [await sentMessage(pool, sender), (await claimMessage(pool, sender)).messageId]) {
        await receive([receipt({ messageId, agoMs }), receipt({ messageId, kind: 'read', agoMs: agoMs * 2 })])
        const { message } = await readAll(pool, messageId)
        assert.equal(message.status, 'READ')
        const times = [message.accepted_at, message.sent_at, message.delivered_at, message.read_at, new Date().toISOString()].map(
          Date.parse,
        )
        assert.deepEqual(
          times,
          times.toSorted((a, b) => a - b),
          `${agoMs}`,
        )
      }
    }
  })
})

describe('a receipt that waits', () => {
  test('for the result of its send moves the message once that is committed', async () => {
    const entry = await claimMessage(pool, sender)
    const delivered = receipt(entry)
    await whileOthersCommit(
      pool,
      (tx) => record(tx, entry, { is: 'sent' }),
      () => receive([delivered]),
    )
    assert.deepEqual([await statusOf(pool, entry.messageId), await storedEvents([delivered])], ['DELIVERED', 0])
  })

  test('for another receipt of the same message counts after it', async () => {
    const messageId = await sentMessage(pool, sender)
    const read = receipt({ messageId, kind: 'read' })
    const deliver = `with delivered as (update messages set status = 'DELIVERED', delivered_at = sent_at where id = $1 returning *),
      ${recordChanges('delivered', [{ kind: 'message.delivered', at: 'delivered_at' }])} select`
    await whileOthersCommit(
      pool,
      (tx) => tx.query(deliver, [messageId]),
      () => receive([read]),
    )
    assert.deepEqual([await statusOf(pool, messageId), await storedEvents([read])], ['READ', 0])
  })

  test('in a full batch, for a claim of the same messages, moves its message', async () => {
    const ids = await queueMessages(pool, sender, { count: 500 })
    const claimed = 'update queue set lease = gen_random_uuid(), attempts = attempts + 1 where message_id = any ($1)'
    await whileOthersCommit(
      pool,
      (tx) => tx.query(claimed, [ids]),
      () => receive(ids.map((messageId) => receipt({ messageId }))),
    )
    const { rowCount } = await pool.query(`select from messages where id = any ($1) and status = 'DELIVERED'`, [ids])
    assert.equal(rowCount, ids.length)
  })
})

const ROUNDS = 40
const seed = randomInt(2 ** 31)

describe(`no deadlock occurs (seed ${seed})`, () => {
  const other = createHotPool({ connectionString: url }, () => {})
  let state = seed

  /** Shuffles in the same way for the same seed. */
  function shuffle<T>(items: T[]): T[] {
    const keyed = items.map((item) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
      return { item, key: state >>> 8 }
    })
    return keyed.toSorted((a, b) => a.key - b.key).map(({ item }) => item)
  }

  async function deadlocks(): Promise<number> {
    await pool.query('select pg_stat_clear_snapshot()')
    const { rows } = await pool.query<{ deadlocks: number }>('select deadlocks from pg_stat_database where datname = current_database()')
    return rows[0]?.deadlocks ?? Number.NaN
  }

  test('when two nodes receive overlapping batches in opposite orders', async () => {
    const receiveElsewhere = createReceiver(other)
    for (let round = 0; round < ROUNDS; round += 1) {
      const ids = await queueMessages(pool, sender, { count: 30 })
      if (round % 2 === 0) await claimNow(pool)
      const both = ['delivered', 'read'] as const
      const events = shuffle(ids.flatMap((messageId) => both.map((kind) => receipt({ messageId, kind }))))
      await Promise.all([receive(events), receiveElsewhere(events.toReversed())])
      const { rowCount } = await pool.query(`select from messages where id = any ($1) and status = 'READ'`, [ids])
      assert.equal(rowCount, ids.length)
    }
    assert.equal(await deadlocks(), 0)
  })

  test('when receipts, a claim, results and the expiry concern the same messages', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const ids = await queueMessages(pool, sender, { count: 40 })
      // A worker that was suspended past its leases: all entries are due again, in another order than that of their ids.
      const held = (await claimNow(pool)).entries
      const order = shuffle(ids)
      await pool.query(
        `update queue q set due_at = now() - o.n * interval '1 millisecond'
         from unnest($1::uuid[]) with ordinality as o (id, n) where q.message_id = o.id`,
        [order],
      )
      await pool.query(`update expiries set expires_at = now() where message_id = any ($1)`, [order.slice(0, 20)])
      await Promise.all([
        receive(shuffle(ids.map((messageId) => receipt({ messageId })))),
        claimNow(other),
        recordResults(other, shuffle(held.map(({ messageId, lease }) => ({ messageId, lease, is: 'sent' })))),
        expireDue(other),
      ])
      await pool.query('delete from queue')
    }
    await other.end()
    assert.equal(await deadlocks(), 0)
  })
})
