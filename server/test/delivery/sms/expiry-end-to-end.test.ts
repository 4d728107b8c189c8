import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { transaction } from '../../../src/db/pool.ts'
import { expireDue } from '../../../src/delivery/expiry.ts'
import { createTestDatabase } from '../../support/database.ts'
import { moveExpiry } from '../../support/expiring.ts'
import { RECIPIENT, smsFallback, startMessageService } from '../../support/messages.ts'
import { until } from '../../support/until.ts'
import { untilBlocked } from '../locks.ts'
import { readOnce, startSimulated } from '../simulated.ts'
import { createReceiver, receipt, sendUntilAccepted } from '../support.ts'

// From a message that no phone gets in time to its SMS, by HTTP on Herald's side and on the phones' side.

const { pool, simulator, service, newCaller, received } = await startSimulated()
const caller = await newCaller()
// With this latency, a revocation arrives after the network has let the message expire.
await simulator.ask('faults', { api: { latency: { rate: 1, ms: 250 } } }, 'PUT')

let numbers = 0
const withSms = new Set<string>()

/** A new number; `04` gets no RCS message in time. */
function newNumber(ending = '04'): string {
  numbers += 1
  return `+48700${String(numbers).padStart(4, '0')}${ending}`
}

const later = (time: string, ms: number) => new Date(Date.parse(time) + ms).toISOString()
const laterOf = (a: string, b: string) => (a > b ? a : b)

const read = (messageId: string, what: string, holds: (message: any) => boolean) => readOnce(caller, messageId, what, holds)

/** On this machine, twelve messages take this long to reach the network. */
async function measureMs(): Promise<number> {
  const startedAt = performance.now()
  const sent = await Promise.all(Array.from({ length: 12 }, () => sendUntilAccepted(caller, { recipient: newNumber('01') })))
  for (const { messageId } of sent) await read(messageId, 'is delivered', ({ status }) => status === 'DELIVERED')
  return performance.now() - startedAt
}

// Long enough for all messages to reach the network before they expire.
const LIFE_MS = 2_000 + 3 * (await measureMs())
const LONG_LIFE_MS = 3_600_000

type Sending = { recipient?: string; lifeMs?: number; planParams?: object; after?: (expiresAt: string) => object | undefined }

async function accepted({ recipient = newNumber(), lifeMs = LIFE_MS, planParams = {}, after = () => undefined }: Sending) {
  const expiresAt = new Date(Date.now() + lifeMs).toISOString()
  const fields = { recipient, expiresAt, smsFallback: smsFallback({ ...planParams }), smsFallbackAfterExpiry: after(expiresAt) }
  const { messageId } = await sendUntilAccepted(caller, fields)
  return { messageId: messageId as string, recipient, expiresAt }
}

async function ended(sending: Sending) {
  const sent = await accepted(sending)
  const ENDS = ['DELIVERED', 'FAILED', 'SKIPPED', 'NOT_NEEDED']
  return { ...sent, body: await read(sent.messageId, 'has an SMS that has ended', ({ smsFallback: sms }) => ENDS.includes(sms.status)) }
}

describe('the SMS of a message that expires', { concurrency: 20 }, () => {
  test('is SKIPPED without smsFallbackAfterExpiry', async () => {
    const { recipient, body } = await ended({})
    assert.deepEqual([body.status, body.smsFallback], ['EXPIRED', { status: 'SKIPPED', reason: 'EXPIRED', segments: 1 }])
    assert.equal((await received(recipient)).length, 1)
  })

  for (const [name, { delay, sendTimeMs, planParams }] of Object.entries<{ delay?: number; sendTimeMs?: number; planParams?: object }>({
    'at once with a delay of 0': { delay: 0 },
    'after the delay': { delay: 1 },
    'at sendTime': { sendTimeMs: 700 },
    'at sendTime if the delay ends before it': { sendTimeMs: 1_500, delay: 1 },
    'after the delay if sendTime is before its end': { sendTimeMs: 1, delay: 1 },
    'whatever the delay and sendTime for failures': {
      delay: 0,
      planParams: { delay: 604_800, sendTime: later(new Date().toISOString(), 3_600_000) },
    },
  })) {
    test(`is sent ${name}`, async () => {
      const sendTime = (expiresAt: string) => (sendTimeMs === undefined ? {} : { sendTime: later(expiresAt, sendTimeMs) })
      const after = (expiresAt: string) => ({ ...sendTime(expiresAt), ...(delay !== undefined && { delay }) })
      const { recipient, expiresAt, body } = await ended({ after, ...(planParams && { planParams }) })
      const dueAt = laterOf(later(expiresAt, sendTimeMs ?? 0), later(expiresAt, 1_000 * (delay ?? 0)))
      const { sentAt, deliveredAt, ...rest } = body.smsFallback
      assert.deepEqual(rest, { status: 'DELIVERED', reason: 'RCS_EXPIRED', dueAt, segments: 1 })
      assert.deepEqual([body.status, body.expiredAt], ['EXPIRED', expiresAt])
      assert.ok(body.sentAt < expiresAt, 'the RCS message was at the network')
      withSms.add(recipient)
      const [rcs, sms, ...more] = await received(recipient)
      assert.deepEqual([rcs.channel, rcs.deliveredAt, sms.channel, sms.text, more], ['rcs', null, 'sms', 'By SMS', []])
      const times = [dueAt, sms.acceptedAt, sentAt, deliveredAt]
      assert.deepEqual(times, times.toSorted(), 'the times are in order')
    })
  }

  test('is not needed if the phone gets the message after the expiry and before the SMS is due', async () => {
    const { messageId, recipient, expiresAt } = await accepted({ after: () => ({ delay: 3_600 }) })
    const waiting = await read(messageId, 'has an SMS that is scheduled', ({ smsFallback: sms }) => sms.status === 'SCHEDULED')
    const dueAt = later(expiresAt, 3_600_000)
    assert.deepEqual(waiting.smsFallback, { status: 'SCHEDULED', reason: 'RCS_EXPIRED', dueAt, segments: 1 })
    await until('the network has let it expire', async () => (await received(recipient))[0].expiredAt)
    await simulator.ask(`phones/${recipient}/deliver`, { messageId })
    const notNeeded = { status: 'NOT_NEEDED', reason: 'RCS_DELIVERED', segments: 1 }
    const delivered = await read(messageId, 'has an SMS that is not needed', ({ smsFallback: sms }) => sms.status === 'NOT_NEEDED')
    assert.deepEqual([delivered.status, delivered.smsFallback], ['EXPIRED', notNeeded])
    const { rowCount } = await pool.query('update sms_queue set due_at = now() where message_id = $1', [messageId])
    assert.equal(rowCount, 1, 'the caller reads it before the SMS is due')
    await until(
      'the SMS was due',
      async () => (await pool.query('select from sms_queue where message_id = $1', [messageId])).rowCount === 0,
    )
    assert.deepEqual((await caller.read(messageId)).body.smsFallback, notNeeded)
    assert.equal((await received(recipient)).length, 1)
  })

  test('is not needed if the message is delivered before it expires', async () => {
    const { messageId, recipient } = await accepted({ lifeMs: LONG_LIFE_MS, after: () => ({ delay: 0 }) })
    await until('the network has it', async () => (await received(recipient))[0])
    await simulator.ask(`phones/${recipient}/deliver`, { messageId })
    const body = await read(messageId, 'is read', ({ status }) => status === 'READ')
    assert.deepEqual(body.smsFallback, { status: 'NOT_NEEDED', reason: 'RCS_DELIVERED', segments: 1 })
  })

  test('is sent by planParams if the message fails instead', async () => {
    const { body, recipient } = await ended({ recipient: newNumber('02'), lifeMs: LONG_LIFE_MS, after: () => ({ delay: 604_800 }) })
    const { sentAt, deliveredAt, ...rest } = body.smsFallback
    assert.deepEqual(rest, { status: 'DELIVERED', reason: 'RCS_FAILED', dueAt: body.failedAt, segments: 1 })
    withSms.add(recipient)
  })
})

test('the network has one SMS for each fallback that was sent, and no other', async () => {
  const open = `select from sms_queue union all select from messages where status in ('ACCEPTED', 'SENT')`
  await until('all have ended', async () => (await pool.query(open)).rowCount === 0)
  const { entries } = await simulator.ask('ledger?limit=10000')
  const phones: string[] = entries.filter(({ kind }: { kind: string }) => kind === 'sms-part').map(({ phone }: { phone: string }) => phone)
  assert.deepEqual([phones.length, new Set(phones)], [withSms.size, withSms])
  assert.doesNotMatch(service.log(), /"level":"error"/)
})

test('the SMS is due at once if the network reports the revocation while the message is being marked', async () => {
  const database = await createTestDatabase({ uncounted: 'a message is sent by hand' })
  const { accepted: acceptedBy } = await (await startMessageService(database)).newCaller()
  const expiresAt = new Date(Date.now() + LONG_LIFE_MS).toISOString()
  const messageId = await acceptedBy({ expiresAt, smsFallback: smsFallback(), smsFallbackAfterExpiry: { delay: 0 } })
  await database.pool.query(`update messages set status = 'SENT', sent_at = now() where id = $1`, [messageId])
  await database.pool.query('delete from queue where message_id = $1', [messageId])
  await moveExpiry(database.pool, [messageId])
  const both = await transaction(database.pool, async (tx) => {
    await tx.query('select from messages where id = $1 for update', [messageId])
    const marking = expireDue(database.pool)
    await untilBlocked(database.pool, 1)
    const receiving = createReceiver(database.pool)([receipt({ kind: 'expired', messageId, phone: RECIPIENT })])
    await untilBlocked(database.pool, 2)
    return [marking, receiving]
  })
  await Promise.all(both)
  const { rows } = await database.pool.query('select due_at <= now() as "isDue" from sms_queue where message_id = $1', [messageId])
  assert.deepEqual(rows, [{ isDue: true }])
})
