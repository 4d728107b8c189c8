import assert from 'node:assert/strict'
import { randomInt, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { CarrierEvent } from '../../src/carriers/carrier.ts'
import { createHotPool, type Pool } from '../../src/db/pool.ts'
import { claim } from '../../src/delivery/claim.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { ensurePace } from '../../src/delivery/rate.ts'
import { type EntryResult, type Result, recordResults } from '../../src/delivery/results.ts'
import { recordChanges } from '../../src/events/changes.ts'
import { createTestDatabase } from '../support/database.ts'
import {
  CARRIER,
  createReceiver,
  createSender,
  kindsOf,
  queueMessage,
  queueMessages,
  readAll,
  receipt,
  statusOf,
  whileOthersCommit,
} from './support.ts'

const { url, hotPool: pool } = await createTestDatabase()
await ensurePace(pool, CARRIER)
const sender = await createSender(pool)
const take = createReceiver(pool)

type Claimed = { messageId: string; lease: string }

async function claimAll(db: Pool = pool): Promise<Claimed[]> {
  const carrier = { name: CARRIER, messagesPerSecond: undefined, messagesPerSecondPerAgent: undefined }
  const { entries } = await claim(db, { carrier, free: 1_000, leaseMs: 60_000, pausedAgents: [], calls: new Map() })
  return entries
}

async function claimed(): Promise<Claimed> {
  const messageId = await queueMessage(pool, sender)
  return (await claimAll()).find((entry) => entry.messageId === messageId) as Claimed
}

async function sentMessage(): Promise<string> {
  const { messageId, lease } = await claimed()
  await recordResults(pool, [{ messageId, lease, is: 'sent' }])
  return messageId
}

async function failedMessage(): Promise<string> {
  const { messageId, lease } = await claimed()
  await recordResults(pool, [{ messageId, lease, is: 'failed', reason: 'REJECTED', detail: 'no' }])
  return messageId
}

async function runOut(messageId: string): Promise<void> {
  for (const [table, id] of Object.entries({ messages: 'id', queue: 'message_id', expiries: 'message_id' })) {
    await pool.query(`update ${table} set expires_at = now() - interval '1 second' where ${id} = $1`, [messageId])
  }
}

async function expiredMessage(): Promise<string> {
  const messageId = await sentMessage()
  await runOut(messageId)
  await expireDue(pool)
  return messageId
}

async function keptEvents(events: CarrierEvent[]): Promise<number> {
  const { rowCount } = await pool.query('select from carrier_events where event_id = any ($1)', [events.map(({ eventId }) => eventId)])
  return rowCount ?? 0
}

describe('a receipt', () => {
  test('moves a message that was sent to DELIVERED, and on to READ; nothing is left to expire and nothing is kept', async () => {
    const messageId = await sentMessage()
    const delivered = receipt({ messageId })
    await take([delivered])
    const first = await readAll(pool, messageId)
    assert.deepEqual([first.message.status, first.queue], ['DELIVERED', null])
    const read = receipt({ messageId, kind: 'read' })
    await take([read])
    assert.deepEqual([await statusOf(pool, messageId), await kindsOf(pool, messageId)], ['READ', ['sent', 'delivered', 'read']])
    assert.equal(await keptEvents([delivered, read]), 0)
  })

  test('that comes twice, later or in the same batch, changes nothing, not even with another time', async () => {
    const messageId = await sentMessage()
    const delivered = receipt({ messageId })
    await take([delivered, delivered])
    const before = await readAll(pool, messageId)
    await take([delivered])
    await take([receipt({ messageId, agoMs: -500 })])
    assert.deepEqual(await readAll(pool, messageId), before)
    await take([receipt({ messageId, kind: 'read' })])
    const read = await readAll(pool, messageId)
    await take([receipt({ messageId, kind: 'read', agoMs: -500 }), delivered])
    assert.deepEqual(await readAll(pool, messageId), read)
  })

  for (const [name, batches] of Object.entries<('delivered' | 'read')[][]>({
    'READ before DELIVERED': [['read'], ['delivered']],
    'both in one batch, READ in front': [['read', 'delivered']],
    'both in one batch': [['delivered', 'read']],
  })) {
    test(`in any order ends in READ with both times: ${name}`, async () => {
      const messageId = await sentMessage()
      for (const kinds of batches) await take(kinds.map((kind) => receipt({ messageId, kind })))
      const { message } = await readAll(pool, messageId)
      assert.equal(message.status, 'READ')
      assert.ok(message.sent_at <= message.delivered_at && message.delivered_at <= message.read_at)
      assert.deepEqual(new Set(await kindsOf(pool, messageId)), new Set(['delivered', 'read', 'sent']))
    })
  }

  test('READ alone implies DELIVERED, at the same time', async () => {
    const messageId = await sentMessage()
    await take([receipt({ messageId, kind: 'read' })])
    const { message } = await readAll(pool, messageId)
    assert.deepEqual([message.status, message.delivered_at], ['READ', message.read_at])
  })

  test('that is quicker than the answer to the send ends the sending: the worker’s result is refused', async () => {
    const verdicts: EntryResult[] = [{ is: 'sent' }, { is: 'retry', afterMs: 0, detail: 'lost' }]
    for (const verdict of verdicts) {
      const entry = await claimed()
      await take([receipt(entry)])
      const before = await readAll(pool, entry.messageId)
      assert.deepEqual([before.message.status, before.queue], ['DELIVERED', null])
      assert.deepEqual(
        before.events.map(({ kind }) => kind),
        ['delivered', 'sent'],
      )
      const counted = await recordResults(pool, [{ messageId: entry.messageId, lease: entry.lease, ...verdict }])
      assert.deepEqual([counted, await readAll(pool, entry.messageId)], [[false], before])
    }
  })

  test('after FAILED or EXPIRED stands in the timeline, once, and changes nothing', async () => {
    for (const messageId of [await failedMessage(), await expiredMessage()]) {
      const before = await readAll(pool, messageId)
      const late = [receipt({ messageId }), receipt({ messageId, kind: 'read' })]
      await take(late)
      await take(late)
      const { events, ...after } = await readAll(pool, messageId)
      assert.deepEqual(after, { message: before.message, queue: before.queue, expiry: before.expiry })
      const added = events.slice(before.events.length).map(({ kind }) => kind)
      assert.deepEqual(added.toSorted(), ['delivered-late', 'read-late'])
      assert.equal(await keptEvents(late), 0)
    }
  })

  test('after the expiry, of a message that is not marked yet, is late all the same; READ of one delivered in time is not', async () => {
    const [late, inTime] = [await sentMessage(), await sentMessage()]
    await take([receipt({ messageId: inTime })])
    for (const messageId of [late, inTime]) await runOut(messageId)
    await take([receipt({ messageId: late }), receipt({ messageId: inTime, kind: 'read' })])
    assert.deepEqual([await statusOf(pool, late), await kindsOf(pool, late)], ['SENT', ['sent', 'delivered-late']])
    assert.equal(await statusOf(pool, inTime), 'READ')
    await expireDue(pool)
    assert.equal(await statusOf(pool, late), 'EXPIRED')
  })

  test('that names no message of ours, or another phone, carrier or agent, is kept once and moves nothing', async () => {
    const messageId = await sentMessage()
    const before = await readAll(pool, messageId)
    const strays = [
      receipt({ messageId, phone: '+48500100201' }),
      receipt({ messageId, carrier: 'another' }),
      receipt({ messageId, agentId: 'another' }),
      receipt({ messageId: randomUUID() }),
      receipt({ messageId: 'MsgNotAUuid', kind: 'read' }),
      receipt({ messageId: '' }),
    ]
    await take([...strays, ...strays])
    await take(strays)
    assert.deepEqual(await readAll(pool, messageId), before)
    assert.equal(await keptEvents(strays), strays.length)
    // Beside one that is the message's own, in one batch.
    const [own, stray] = [receipt({ messageId }), receipt({ messageId, kind: 'read', phone: '+48500100201' })]
    await take([stray, own])
    assert.deepEqual([await statusOf(pool, messageId), await keptEvents([own]), await keptEvents([stray])], ['DELIVERED', 0, 1])
  })

  test('has a time between what was known before and now, though the carrier’s clock is an hour ahead, or an hour or two days behind', async () => {
    for (const agoMs of [48 * 3_600_000, 3_600_000, -3_600_000]) {
      for (const messageId of [await sentMessage(), (await claimed()).messageId]) {
        await take([receipt({ messageId, agoMs }), receipt({ messageId, kind: 'read', agoMs: agoMs * 2 })])
        const { message } = await readAll(pool, messageId)
        assert.equal(message.status, 'READ')
        const times = [message.accepted_at, message.sent_at, message.delivered_at, message.read_at].map((time) => Date.parse(time))
        assert.deepEqual(
          times.toSorted((a, b) => a - b),
          times,
        )
        assert.ok((times.at(-1) as number) <= Date.now() + 1_000, `${agoMs}: ${times}`)
      }
    }
  })

  test('that the network took a message back, or could not, stands in the timeline and changes nothing', async () => {
    const messageId = await expiredMessage()
    const before = await readAll(pool, messageId)
    const events = [receipt({ messageId, kind: 'expired' }), receipt({ messageId, kind: 'expiry-failed' })]
    await take(events)
    await take(events)
    const after = await readAll(pool, messageId)
    assert.deepEqual(after.message, before.message)
    const added = after.events.slice(before.events.length).map(({ kind }) => kind)
    assert.deepEqual(added.toSorted(), ['revoke-failed', 'revoked'])
  })
})

describe('a receipt that has to wait', () => {
  test('for the result of its send, which is being written, moves the message once that is committed', async () => {
    const { messageId, lease } = await claimed()
    const delivered = receipt({ messageId })
    await whileOthersCommit(
      pool,
      (tx) => recordResults(tx, [{ messageId, lease, is: 'sent' }]),
      () => take([delivered]),
    )
    assert.deepEqual([await statusOf(pool, messageId), await keptEvents([delivered])], ['DELIVERED', 0])
  })

  test('for another receipt of the same message counts after it', async () => {
    const messageId = await sentMessage()
    const read = receipt({ messageId, kind: 'read' })
    const deliver = `with delivered as (update messages set status = 'DELIVERED', delivered_at = sent_at where id = $1 returning *),
      ${recordChanges('delivered', [{ kind: 'message.delivered', at: 'delivered_at' }])} select`
    await whileOthersCommit(
      pool,
      (tx) => tx.query(deliver, [messageId]),
      () => take([read]),
    )
    assert.deepEqual([await statusOf(pool, messageId), await keptEvents([read])], ['READ', 0])
  })

  test('with a full batch, for a worker that claims the same messages: all move, and the database lives on', async () => {
    const ids = await queueMessages(pool, sender, { count: 500 })
    await whileOthersCommit(
      pool,
      (tx) => tx.query('update queue set lease = gen_random_uuid(), attempts = attempts + 1 where message_id = any ($1)', [ids]),
      () => take(ids.map((messageId) => receipt({ messageId }))),
    )
    const { rowCount } = await pool.query(`select from messages where id = any ($1) and status = 'DELIVERED'`, [ids])
    assert.equal(rowCount, ids.length)
  })
})

const ROUNDS = 40

/** What went wrong at the database itself, by its own count. */
async function deadlocks(): Promise<number> {
  await pool.query('select pg_stat_clear_snapshot()')
  const { rows } = await pool.query<{ deadlocks: number }>('select deadlocks from pg_stat_database where datname = current_database()')
  return rows[0]?.deadlocks ?? Number.NaN
}

const seed = randomInt(2 ** 31)

/** Deterministic by its seed: which way round is told where it fails. */
function createShuffle(start: number): <T>(items: T[]) => T[] {
  let state = start
  return (items) => {
    const keyed = items.map((item) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
      return { item, key: state >>> 8 }
    })
    return keyed.toSorted((a, b) => a.key - b.key).map(({ item }) => item)
  }
}

describe('never wait for each other in a circle:', () => {
  const other = createHotPool({ connectionString: url }, () => {})
  const takeElsewhere = createReceiver(other)
  const shuffle = createShuffle(seed)

  test(`two nodes that take overlapping batches in opposite orders (seed ${seed})`, async () => {
    const before = await deadlocks()
    for (let round = 0; round < ROUNDS; round += 1) {
      const ids = await queueMessages(pool, sender, { count: 30 })
      if (round % 2 === 0) await claimAll()
      const kinds = ['delivered', 'read'] as const
      const events = shuffle(ids.flatMap((messageId) => kinds.map((kind) => receipt({ messageId, kind }))))
      await Promise.all([take(events), takeElsewhere(events.toReversed())])
      const { rowCount } = await pool.query(`select from messages where id = any ($1) and status = 'READ'`, [ids])
      assert.equal(rowCount, ids.length)
    }
    assert.equal(await deadlocks(), before)
  })

  test(`a node that takes receipts, a worker that claims, one that writes results and one that expires (seed ${seed})`, async () => {
    const before = await deadlocks()
    for (let round = 0; round < ROUNDS; round += 1) {
      const ids = await queueMessages(pool, sender, { count: 40 })
      // Of a worker that was stopped past its lease: all are due again, in another order than that of their ids.
      const held = await claimAll()
      const order = shuffle(ids)
      await pool.query(
        `update queue q set due_at = now() - o.n * interval '1 millisecond'
         from unnest($1::uuid[]) with ordinality as o (id, n) where q.message_id = o.id`,
        [order],
      )
      await pool.query(`update expiries set expires_at = now() where message_id = any ($1)`, [order.slice(0, 20)])
      await Promise.all([
        take(shuffle(ids.map((messageId) => receipt({ messageId })))),
        claimAll(other),
        recordResults(other, shuffle(held.map((entry): Result => ({ messageId: entry.messageId, lease: entry.lease, is: 'sent' })))),
        expireDue(other),
      ])
      await pool.query('delete from queue')
    }
    await other.end()
    assert.equal(await deadlocks(), before)
  })
})
