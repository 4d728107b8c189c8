import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { Registry } from 'prom-client'
import { expireDue } from '../../src/delivery/expiry.ts'
import { createDeliveryMetrics } from '../../src/delivery/metrics.ts'
import { createSend } from '../../src/delivery/send.ts'
import { claimNow, createCarrier, createHold, logger, makeDue, record, sent, startWorker } from '../delivery/worker.ts'
import { createTestDatabase } from '../support/database.ts'
import { moveExpiry } from '../support/expiring.ts'
import { countRows, type MessageCaller, NOTHING, newKey, startMessageService } from '../support/messages.ts'
import { assertError, type ErrorDetails } from '../support/service.ts'
import { until } from '../support/until.ts'
import { closedWindow, openingOf, openWindow } from './support.ts'

const database = await createTestDatabase()
const { hotPool: pool, url } = database
const { newCaller } = await startMessageService(database)

beforeEach(async () => {
  await pool.query(`update carrier_rates set next_slot_at = '-infinity'`)
})

const HOUR_MS = 3_600_000
const ALL_DAYS = ['MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT', 'SUN']

async function entryOf(messageId: string) {
  const { rows } = await pool.query(
    'select due_at as "dueAt", attempts, claimed, lease, delivery_window as window from queue where message_id = $1',
    [messageId],
  )
  return rows[0]
}

async function claimOf({ agentId }: MessageCaller) {
  return (await claimNow(pool)).entries.filter((entry) => entry.agentId === agentId)
}

/** Makes the window of a message one that is closed, as if time had passed. Its entry stays due. */
async function close(messageId: string): Promise<Date> {
  const window = closedWindow()
  const text = `${window.from}-${window.to} 1234567 UTC`
  await pool.query('update queue set delivery_window = $2 where message_id = $1', [messageId, text])
  return openingOf(window)
}

describe('a message with a delivery window', () => {
  test('waits until the window opens, and is ACCEPTED', async () => {
    const caller = await newCaller()
    const window = closedWindow()
    const messageId = await caller.accepted({ deliveryWindow: window })
    assert.deepEqual((await entryOf(messageId)).dueAt, openingOf(window))
    assert.deepEqual(await claimOf(caller), [])
    const { body } = await caller.read(messageId)
    assert.deepEqual([body.status, body.deliveryWindow], ['ACCEPTED', { ...window, days: ALL_DAYS }])
    assert.deepEqual((await caller.ask('GET', '/messages')).body.items[0].deliveryWindow, body.deliveryWindow)
    await makeDue(pool, [messageId])
  })

  test('is sent at once if the window is open', async () => {
    const caller = await newCaller()
    const messageId = await caller.accepted({ deliveryWindow: openWindow() })
    assert.deepEqual(
      (await claimOf(caller)).map((entry) => entry.messageId),
      [messageId],
    )
  })

  test('waits for the first opening after sendAt', async () => {
    const caller = await newCaller()
    const window = closedWindow()
    const sendAt = new Date(openingOf(window).getTime() + 2 * HOUR_MS).toISOString()
    const messageId = await caller.accepted({ deliveryWindow: window, sendAt })
    assert.deepEqual((await entryOf(messageId)).dueAt, new Date(openingOf(window).getTime() + 24 * HOUR_MS))
    const inWindow = new Date(openingOf(window).getTime() + HOUR_MS / 2).toISOString()
    assert.deepEqual((await entryOf(await caller.accepted({ deliveryWindow: window, sendAt: inWindow }))).dueAt, new Date(inWindow))
  })

  test('has the clock of the member, or else that of the country of the number', async () => {
    const caller = await newCaller()
    const [recipient, other] = ['+48500100201', '+48500100202']
    async function join(group: number, timeZone: string): Promise<void> {
      await caller.ask('PUT', `/segments/${group}`, { name: 'Members' })
      await caller.ask('POST', `/segments/${group}/members`, { members: [{ phone: recipient, timeZone }] })
    }
    await join(1, 'Pacific/Honolulu')
    // Honolulu has no summer time, and is ten hours behind UTC.
    const window = closedWindow('recipient')
    const ofMember = await entryOf(await caller.accepted({ recipient, deliveryWindow: window }))
    assert.deepEqual([ofMember.dueAt, ofMember.window.split(' ').at(-1)], [openingOf(window, -10), 'Pacific/Honolulu'])
    const ofCountry = await entryOf(await caller.accepted({ recipient: other, deliveryWindow: window }))
    assert.equal(ofCountry.window.split(' ').at(-1), 'country:PL')
    await join(2, 'Asia/Tokyo')
    const ofBoth = await entryOf(await caller.accepted({ recipient, deliveryWindow: window }))
    assert.equal(ofBoth.window.split(' ').at(-1), 'Asia/Tokyo,Pacific/Honolulu')
    const stranger = await newCaller()
    assert.equal((await entryOf(await stranger.accepted({ recipient, deliveryWindow: window }))).window.split(' ').at(-1), 'country:PL')
  })

  test('is postponed by the claim if its window has closed, and no attempt is counted', async () => {
    const caller = await newCaller()
    const messageId = await caller.accepted({ deliveryWindow: openWindow() })
    const opensAt = await close(messageId)
    assert.deepEqual(await claimOf(caller), [])
    const { dueAt, attempts, claimed, lease } = await entryOf(messageId)
    assert.deepEqual([dueAt, attempts, claimed, lease], [opensAt, 0, false, null])
    assert.equal((await caller.read(messageId)).body.status, 'ACCEPTED')
  })

  test('is postponed after a retry, and after its worker has died', async () => {
    const caller = await newCaller()
    const messageId = await caller.accepted({ deliveryWindow: openWindow() })
    const [entry] = await claimOf(caller)
    assert.ok(entry !== undefined && (await record(pool, entry, { is: 'retry', afterMs: 0, detail: '503' })))
    await close(messageId)
    assert.deepEqual(await claimOf(caller), [])
    assert.deepEqual([(await entryOf(messageId)).attempts, (await caller.read(messageId)).body.status], [1, 'SENDING'])

    const left = await caller.accepted({ deliveryWindow: openWindow() })
    assert.equal((await claimOf(caller)).length, 1)
    const opensAt = await close(left)
    await makeDue(pool, [left])
    assert.deepEqual(await claimOf(caller), [])
    assert.deepEqual([(await entryOf(left)).dueAt, (await entryOf(left)).attempts], [opensAt, 1])
  })

  test('is not sent if the window closes between the claim and the call', async () => {
    const caller = await newCaller()
    await caller.accepted({ deliveryWindow: openWindow() })
    const [entry] = await claimOf(caller)
    assert.ok(entry !== undefined)
    const carrier = createCarrier()
    const metrics = createDeliveryMetrics(new Registry())
    const send = createSend({ carrier, metrics, logger, route: async () => undefined, stopping: new AbortController().signal })
    const content = { type: 'MESSAGE', content: 'Hi' } as const
    const facts = {
      expiresAt: new Date(),
      stoppedBy: null,
      capability: null,
      isErased: false,
      heldBackForMs: 0,
      traffic: 'TRANSACTION',
    } as const
    const message = { messageId: entry.messageId, recipient: '+48500100200', content, ...facts }
    const closing = { ...entry, nowMs: entry.nowMs + 2 * HOUR_MS }
    assert.deepEqual(await send(closing, message, performance.now()), { is: 'not-tried', afterMs: 0 })
    assert.equal(carrier.seen.length, 0)
    assert.equal((await send(entry, message, performance.now())).is, 'sent')
  })

  test('takes no call from messages behind it whose window is open', async (t) => {
    const caller = await newCaller()
    const closed = await Promise.all(Array.from({ length: 60 }, () => caller.accepted({ deliveryWindow: openWindow() })))
    for (const messageId of closed) await close(messageId)
    const open = await caller.accepted({ deliveryWindow: openWindow() })
    const carrier = createCarrier({ concurrency: 4, onSend: sent })
    startWorker(t, url, carrier)
    await until('the other message is sent', () => carrier.seen.some(({ messageId }) => messageId === open))
    assert.deepEqual(
      carrier.seen.filter(({ messageId }) => closed.includes(messageId)),
      [],
    )
    const { rows } = await pool.query(
      'select claimed, count(*)::int from queue where message_id = any ($1) and due_at > now() group by 1',
      [closed],
    )
    assert.deepEqual(rows, [{ claimed: false, count: 60 }])
  })

  test('is sent within the rate of the carrier when thousands open at once', async (t) => {
    const caller = await newCaller()
    const RATE = 20
    const ids = await Promise.all(Array.from({ length: 3 * RATE }, () => caller.accepted({ deliveryWindow: closedWindow() })))
    await pool.query('update queue set due_at = now(), delivery_window = $2 where message_id = any ($1)', [ids, '00:00-24:00 1234567 UTC'])
    const carrier = createCarrier({ messagesPerSecond: RATE, onSend: sent })
    startWorker(t, url, carrier)
    const own = () => carrier.seen.filter(({ messageId }) => ids.includes(messageId))
    await until('all are sent', () => own().length === ids.length)
    const times = own().map(({ at }) => at)
    times.slice(RATE).forEach((at, index) => {
      const span = at - (times[index] as number)
      // A call may begin late, and timers are up to 2 ms early.
      assert.ok(span > 1_000 - 100 - 4, `${RATE + 1} messages in ${span} ms`)
    })
  })

  test('expires before the window opens', async () => {
    const caller = await newCaller()
    const messageId = await caller.accepted({ deliveryWindow: closedWindow() })
    await moveExpiry(pool, [messageId])
    await expireDue(pool)
    assert.equal((await caller.read(messageId)).body.status, 'EXPIRED')
    assert.equal(await entryOf(messageId), undefined)
  })

  test('can be cancelled while it waits', async () => {
    const caller = await newCaller()
    const messageId = await caller.accepted({ deliveryWindow: closedWindow() })
    const { status, body } = await caller.ask('POST', `/messages/${messageId}/cancel`)
    assert.deepEqual([status, body.failure.reason], [200, 'CANCELLED'])
    assert.equal(await entryOf(messageId), undefined)
  })

  test('is revoked also while the window is closed', async (t) => {
    const caller = await newCaller()
    const hold = createHold(t)
    const messageId = await caller.accepted({ deliveryWindow: openWindow() })
    const [entry] = await claimOf(caller)
    assert.ok(entry !== undefined && (await record(pool, entry, { is: 'unknown', afterMs: 60_000, detail: '503' })))
    await close(messageId)
    await caller.ask('POST', `/messages/${messageId}/cancel`)
    hold.release()
    assert.deepEqual(
      (await claimOf(caller)).map(({ task }) => task),
      ['revoke'],
    )
  })
})

describe('POST /messages rejects a deliveryWindow', () => {
  const W = '/deliveryWindow'
  const from = 'must be a time of day from 00:00 to 23:59, such as 09:00'
  const to = 'must be a time of day from 00:00 to 24:00, such as 20:00'
  const zone = 'must be recipient, or the IANA name of a time zone, such as Europe/Warsaw'
  const window = (fields: object) => ({ from: '09:00', to: '20:00', ...fields })
  const invalid: [what: string, window: unknown, details: ErrorDetails][] = [
    [
      'without times',
      {},
      [
        [`${W}/from`, 'is required'],
        [`${W}/to`, 'is required'],
      ],
    ],
    ['that is a text', '09:00-20:00', [[W, 'must be an object']]],
    ['with an unknown field', window({ zone: 'UTC' }), [[`${W}/zone`, 'is not known here; is it misspelt?']]],
    ['with another time', window({ from: '9:00' }), [[`${W}/from`, from]]],
    ['from 24:00', window({ from: '24:00' }), [[`${W}/from`, from]]],
    ['to 24:01', window({ to: '24:01' }), [[`${W}/to`, to]]],
    ['with a number', window({ to: 20 }), [[`${W}/to`, 'must be a string']]],
    ['of no length', window({ to: '09:00' }), [[`${W}/to`, 'must not be the same as from']]],
    ['on no day', window({ days: [] }), [[`${W}/days`, 'must have at least 1 item']]],
    ['on an unknown day', window({ days: ['MON', 'Tue'] }), [[`${W}/days/1`, 'must be one of MON, TUE, WED, THU, FRI, SAT, SUN']]],
    ['on a day twice', window({ days: ['MON', 'TUE', 'MON'] }), [[`${W}/days/2`, 'is the same day as /days/0']]],
    ['in an unknown zone', window({ timeZone: 'Europe/Krakow' }), [[`${W}/timeZone`, zone]]],
    ['at an offset', window({ timeZone: '+01:00' }), [[`${W}/timeZone`, zone]]],
    ['in no zone', window({ timeZone: '' }), [[`${W}/timeZone`, zone]]],
  ]
  for (const [what, deliveryWindow, details] of invalid) {
    test(what, async () => {
      const { accountId, request, send, ask } = await newCaller()
      assertError(await send(newKey(), request({ deliveryWindow })), 400, 'RCS_INVALID_REQUEST', details)
      assert.deepEqual(await countRows(pool, accountId), NOTHING)
      const { recipient, ...body } = request({ deliveryWindow, name: 'Sale', segmentIds: [1] })
      assertError(await ask('POST', '/campaigns', body, { 'Idempotency-Key': newKey() }), 400, 'RCS_INVALID_REQUEST', details)
    })
  }
})
