import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { transaction } from '../../../src/db/pool.ts'
import { expireDue } from '../../../src/delivery/expiry.ts'
import { createTestDatabase } from '../../support/database.ts'
import { moveExpiry } from '../../support/expiring.ts'
import { callerAt, newKey, RECIPIENT, smsFallback, startMessageService } from '../../support/messages.ts'
import { startTestService } from '../../support/service.ts'
import { startSimulator } from '../../support/simulator.ts'
import { until } from '../../support/until.ts'
import { createReceiver, createSender, NO_LIMITS, receipt } from '../support.ts'

// From a message that no phone gets in time to the SMS, or to none, by HTTP in and the network's phones out.

const { url, hotPool: pool } = await createTestDatabase()
const simulator = await startSimulator()
// Taking a message back comes after the network has let it expire, as it does where that is not on the same machine.
await simulator.ask('faults', { api: { latency: { rate: 1, ms: 250 } } }, 'PUT')
const service = await startTestService({ HERALD_DATABASE_URL: url, ...NO_LIMITS }, { findCarriers: async () => simulator.settings })
await simulator.ask('webhook', { url: `${service.url}/carriers/${simulator.rcs.name}/webhook` }, 'PUT')
const sender = await createSender(pool)
const caller = callerAt(service.url, sender)

// Long enough for the message to be sent first, also on a busy machine. All tests make their requests at the same time.
const LIFE_MS = 4_000
// For a message that must not expire.
const LONG_LIFE_MS = 600_000
// The expiry is found within half a second, and what is due within a second; the rest is for a machine that is busy with other tests.
const SOON_MS = 5_000
const ENDS = new Set(['DELIVERED', 'FAILED', 'SKIPPED', 'NOT_NEEDED'])

let numbers = 0
const gettingSms = new Set<string>()

/** One that nobody else has: `04` gets no RCS message in time. */
function newNumber(ending = '04'): string {
  numbers += 1
  return `+48700${String(numbers).padStart(4, '0')}${ending}`
}

const later = (time: string, ms: number) => new Date(Date.parse(time) + ms).toISOString()

type Sending = { recipient?: string; lifeMs?: number; planParams?: object; after?: (expiresAt: string) => object | undefined }

async function accepted({ recipient = newNumber(), lifeMs = LIFE_MS, planParams = {}, after = () => undefined }: Sending) {
  const expiresAt = new Date(Date.now() + lifeMs).toISOString()
  const fields = { recipient, expiresAt, smsFallback: smsFallback({ ...planParams }), smsFallbackAfterExpiry: after(expiresAt) }
  const { status, body } = await caller.send(newKey(), caller.request(fields))
  assert.equal(status, 202, JSON.stringify(body))
  return { messageId: body.messageId as string, recipient, expiresAt }
}

/** What a caller reads once that holds. */
async function read(messageId: string, what: string, holds: (message: any) => boolean): Promise<any> {
  return await until(`${messageId} ${what}`, async () => {
    const { body } = await caller.read(messageId)
    return holds(body) ? body : undefined
  })
}

async function ended(sending: Sending) {
  const { messageId, recipient, expiresAt } = await accepted(sending)
  const body = await read(messageId, 'has an SMS that has ended', ({ smsFallback: sms }) => ENDS.has(sms.status))
  return { recipient, expiresAt, body }
}

async function received(number: string): Promise<any[]> {
  return (await simulator.ask(`phones/${number}`)).messages
}

/** One SMS, at that time or soon after it, of a message that the network had and let expire. */
async function assertSentAt({ recipient, expiresAt, body }: Awaited<ReturnType<typeof ended>>, dueAt: string): Promise<void> {
  const { sentAt, deliveredAt, ...rest } = body.smsFallback
  assert.deepEqual(rest, { status: 'DELIVERED', reason: 'RCS_EXPIRED', dueAt, segments: 1 })
  assert.deepEqual([body.status, body.expiredAt], ['EXPIRED', expiresAt])
  assert.ok(body.sentAt < expiresAt, 'the RCS message was at the network')
  gettingSms.add(recipient)
  const [rcs, sms, ...more] = await received(recipient)
  assert.deepEqual([rcs.channel, rcs.deliveredAt, sms.channel, sms.text, more], ['rcs', null, 'sms', 'By SMS', []])
  assert.ok(dueAt <= sms.acceptedAt && sms.acceptedAt <= sentAt && sentAt <= deliveredAt, JSON.stringify([sms, body.smsFallback]))
  const lateMs = Date.parse(sms.acceptedAt) - Date.parse(dueAt)
  assert.ok(lateMs < SOON_MS, `${lateMs} ms late`)
}

// Connections and tokens are there when the short lives of the others begin.
const first = await caller.accepted({ recipient: newNumber('01') })
await read(first, 'is delivered', ({ status }) => status === 'DELIVERED')

describe('the SMS of a message that expires', { concurrency: 20 }, () => {
  test('is SKIPPED without smsFallbackAfterExpiry', async () => {
    const { recipient, body } = await ended({})
    assert.equal(body.status, 'EXPIRED')
    assert.deepEqual(body.smsFallback, { status: 'SKIPPED', reason: 'EXPIRED', segments: 1 })
    assert.equal((await received(recipient)).length, 1)
  })

  test('is sent at once with a delay of 0', async () => {
    const sent = await ended({ after: () => ({ delay: 0 }) })
    await assertSentAt(sent, sent.expiresAt)
  })

  test('is sent so many seconds after the expiry as the delay says', async () => {
    const sent = await ended({ after: () => ({ delay: 1 }) })
    await assertSentAt(sent, later(sent.expiresAt, 1_000))
  })

  test('is sent at sendTime', async () => {
    const sent = await ended({ after: (expiresAt) => ({ sendTime: later(expiresAt, 700) }) })
    await assertSentAt(sent, later(sent.expiresAt, 700))
  })

  test('is sent at sendTime where the delay ends before that', async () => {
    const sent = await ended({ after: (expiresAt) => ({ sendTime: later(expiresAt, 1_500), delay: 1 }) })
    await assertSentAt(sent, later(sent.expiresAt, 1_500))
  })

  test('is sent at the end of the delay where that is later than sendTime', async () => {
    const sent = await ended({ after: (expiresAt) => ({ sendTime: later(expiresAt, 1), delay: 1 }) })
    await assertSentAt(sent, later(sent.expiresAt, 1_000))
  })

  test('does not wait for what planParams say, which is for failures', async () => {
    const planParams = { delay: 604_800, sendTime: later(new Date().toISOString(), 3_600_000) }
    const sent = await ended({ planParams, after: () => ({ delay: 0 }) })
    await assertSentAt(sent, sent.expiresAt)
  })

  test('is not needed where the phone comes online after the expiry and before it is due', async () => {
    const { messageId, recipient, expiresAt } = await accepted({ after: () => ({ delay: 8 }) })
    const waiting = await read(messageId, 'has an SMS that is scheduled', ({ smsFallback: sms }) => sms.status === 'SCHEDULED')
    const dueAt = later(expiresAt, 8_000)
    assert.deepEqual(waiting.smsFallback, { status: 'SCHEDULED', reason: 'RCS_EXPIRED', dueAt, segments: 1 })
    await until('the network has let it expire', async () => (await received(recipient))[0].expiredAt)
    await simulator.ask(`phones/${recipient}/deliver`, { messageId })
    const needless = { status: 'NOT_NEEDED', reason: 'RCS_DELIVERED', segments: 1 }
    const told = await read(messageId, 'has an SMS that is not needed', ({ smsFallback: sms }) => sms.status === 'NOT_NEEDED')
    assert.deepEqual([told.status, told.smsFallback], ['EXPIRED', needless])
    assert.ok(new Date().toISOString() < dueAt, 'that shows before it would have been sent')
    await until(
      'its time has come',
      async () => (await pool.query('select from sms_queue where message_id = $1', [messageId])).rowCount === 0,
    )
    assert.ok(new Date().toISOString() >= dueAt)
    assert.deepEqual((await caller.read(messageId)).body.smsFallback, needless)
    assert.equal((await received(recipient)).length, 1)
  })

  test('is not needed where the message is delivered before it expires', async () => {
    const { messageId, recipient } = await accepted({ lifeMs: LONG_LIFE_MS, after: () => ({ delay: 0 }) })
    await until('the network has it', async () => (await received(recipient))[0])
    await simulator.ask(`phones/${recipient}/deliver`, { messageId })
    const body = await read(messageId, 'is read', ({ status }) => status === 'READ')
    assert.deepEqual(body.smsFallback, { status: 'NOT_NEEDED', reason: 'RCS_DELIVERED', segments: 1 })
  })

  test('is sent by what planParams say where the message fails instead', async () => {
    const recipient = newNumber('02')
    const { body } = await ended({ recipient, lifeMs: LONG_LIFE_MS, after: () => ({ delay: 604_800 }) })
    const { sentAt, deliveredAt, ...rest } = body.smsFallback
    assert.deepEqual(rest, { status: 'DELIVERED', reason: 'RCS_FAILED', dueAt: body.failedAt, segments: 1 })
    gettingSms.add(recipient)
  })
})

test('the network has one SMS for each of these, and no other', async () => {
  await until('nothing is left to do', async () => {
    const { rows } = await pool.query(
      `select (select count(*) from sms_queue) + (select count(*) from messages where status in ('ACCEPTED', 'SENT')) as count`,
    )
    return rows[0].count === 0
  })
  const { entries } = await simulator.ask('ledger?limit=10000')
  const phones = entries.filter(({ kind }: { kind: string }) => kind === 'sms-part').map(({ phone }: { phone: string }) => phone)
  assert.deepEqual(phones.toSorted(), [...gettingSms].toSorted())
  assert.doesNotMatch(service.log(), /"level":"error"/)
})

test('is due at once, too, where the network’s word that it has expired comes while it is being marked', async () => {
  const database = await createTestDatabase({ uncounted: 'a message is sent by hand' })
  const { newCaller } = await startMessageService(database)
  const { accepted: acceptedBy } = await newCaller()
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
  const messageId = await acceptedBy({ expiresAt, smsFallback: smsFallback(), smsFallbackAfterExpiry: { delay: 0 } })
  await database.hotPool.query(`update messages set status = 'SENT', sent_at = now() where id = $1`, [messageId])
  await database.hotPool.query('delete from queue where message_id = $1', [messageId])
  await moveExpiry(database.hotPool, [messageId])
  const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  const inLine = (count: number) => until(`${count} wait`, async () => (await database.hotPool.query(waiting)).rowCount === count)
  const both = await transaction(database.hotPool, async (tx) => {
    await tx.query('select from messages where id = $1 for update', [messageId])
    const marking = expireDue(database.hotPool)
    await inLine(1)
    const telling = createReceiver(database.hotPool)([receipt({ kind: 'expired', messageId, phone: RECIPIENT })])
    await inLine(2)
    return [marking, telling]
  })
  await Promise.all(both)
  const { rows } = await database.hotPool.query(
    'select awaits_revocation as "awaitsRevocation", due_at <= now() as "isDue" from sms_queue where message_id = $1',
    [messageId],
  )
  assert.equal(rows.length, 1)
  assert.equal(rows[0].isDue, true, 'nothing is left to wait for')
})
