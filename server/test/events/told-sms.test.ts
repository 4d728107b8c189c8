import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import type { CarrierEvent } from '../../src/carriers/carrier.ts'
import { createHotPool } from '../../src/db/pool.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { FAILURES, SMS_FAILURES } from '../../src/delivery/failures.ts'
import { ensurePace } from '../../src/delivery/rate.ts'
import { processReplies } from '../../src/delivery/replies.ts'
import type { SmsEntry } from '../../src/delivery/sms/claim.ts'
import { recordSmsResults, type SmsEntryResult, type SubmittedPart } from '../../src/delivery/sms/results.ts'
import { recordOptOut } from '../../src/replies/opt-outs.ts'
import {
  acceptMessages,
  createSmsCarrier,
  fateOf,
  LONG_TEXT,
  nextPhone,
  passTime,
  readSms,
  recordSent,
  refusedMessage,
  SMS_CARRIER,
  smsReceipt,
  startSmsWorker,
  takeOne,
  takeSms,
} from '../delivery/sms/support.ts'
import { CARRIER, createReceiver, createSender, logger, readAll, receipt, type Sender } from '../delivery/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { moveExpiry } from '../support/expiring.ts'
import { assertAllTold, readTold } from '../support/told.ts'
import { until } from '../support/until.ts'
import { assertAsDocumented } from './documented.ts'

// What becomes of the SMS that a message falls back to is told once, and only of the recipient's own.

const { url, hotPool: pool } = await createTestDatabase()
const otherNode = createHotPool({ connectionString: url }, () => {})
after(() => otherNode.end())
await ensurePace(pool, CARRIER)
await ensurePace(pool, SMS_CARRIER)
const take = createReceiver(pool)

beforeEach(async () => {
  await pool.query('delete from sms_queue')
})

let ids = 0
const nextIds = (count = 1) => Array.from({ length: count }, () => `${4_000_000 + ids++}`)

type Fallen = { sender: Sender; messageId: string; phone: string }

/** A message that the RCS network has refused, so that its SMS is due. The caller gave it a name. */
async function fallen(accepted: Omit<Parameters<typeof refusedMessage>[2] & object, 'recipients'> = {}): Promise<Fallen> {
  const sender = await createSender(pool)
  const phone = nextPhone()
  const messageId = await refusedMessage(pool, sender, { ...accepted, recipients: [phone] })
  await pool.query(`update messages set client_reference_id = 'order-1' where id = $1`, [messageId])
  return { sender, messageId, phone }
}

/** Takes it up and writes down what came of it. */
async function end(messageId: string, verdict: SmsEntryResult, parts: SubmittedPart[] = []): Promise<void> {
  const { copy, lease } = await takeOne(pool, messageId)
  await recordSmsResults(pool, SMS_CARRIER, [{ messageId, copy, lease, parts, ...verdict }])
}

type Expected = [kind: 'sms.sent' | 'sms.delivered' | 'sms.failed', failure?: { reason: string; description: string }]

/** After the failure of the message itself the account was told these, of its SMS, and nothing else: with the SMS's own times. */
async function assertTold({ sender, messageId, phone }: Fallen, expected: Expected[], segments = 1, first = 'message.failed') {
  const { fallback } = await readSms(pool, messageId)
  const [rcs, ...told] = await readTold(pool, sender)
  assert.deepEqual([rcs?.kind, rcs?.subjectId], [first, messageId])
  const common = { messageId, clientReferenceId: 'order-1', agentId: sender.agentId, recipient: phone, test: false, segments }
  assert.deepEqual(
    told,
    expected.map(([kind, failure]) => ({
      kind,
      subjectId: messageId,
      occurredAt: new Date(fallback[`${kind.slice('sms.'.length)}_at`]),
      data: { ...common, ...(failure && { failure }) },
    })),
  )
}

describe('an SMS that the network took', () => {
  test('is told as sent, and once all its parts have arrived as delivered, each once', async () => {
    const one = await fallen({ content: LONG_TEXT })
    const entry = await takeOne(pool, one.messageId)
    const partIds = nextIds(3)
    await recordSent(pool, entry, partIds)
    await recordSent(pool, entry, partIds)
    await assertTold(one, [['sms.sent']], 3)
    const [first, ...others] = partIds.map((id) => smsReceipt({ phone: one.phone, ids: [id] }))
    await take([first as ReturnType<typeof smsReceipt>, smsReceipt({ kind: 'sms-underway', phone: one.phone, ids: partIds })])
    await assertTold(one, [['sms.sent']], 3)
    await Promise.all([take(others), createReceiver(otherNode)(others.toReversed())])
    await take(others)
    await assertTold(one, [['sms.sent'], ['sms.delivered']], 3)
  })

  test('is told as failed when a receipt says so, with the network’s words where it has any', async () => {
    for (const detail of ['UNDELIV 011', '']) {
      const one = await fallen()
      const [id] = nextIds() as [string]
      await recordSent(pool, await takeOne(pool, one.messageId), [id])
      const failed = smsReceipt({ kind: 'sms-failed', phone: one.phone, ids: [id], detail })
      await take([failed])
      await take([failed, smsReceipt({ phone: one.phone, ids: [id] })])
      const description = `${SMS_FAILURES.UNDELIVERABLE}${detail === '' ? '' : ` The network said: ${detail}`}`
      await assertTold(one, [['sms.sent'], ['sms.failed', { reason: 'UNDELIVERABLE', description }]])
    }
  })

  test('is told as failed once, though several of its parts failed', async () => {
    const one = await fallen({ content: LONG_TEXT })
    const partIds = nextIds(3)
    await recordSent(pool, await takeOne(pool, one.messageId), partIds)
    await take(partIds.map((id) => smsReceipt({ kind: 'sms-failed', phone: one.phone, ids: [id], detail: '1' })))
    const failure = { reason: 'UNDELIVERABLE', description: `${SMS_FAILURES.UNDELIVERABLE} The network said: 1` }
    await assertTold(one, [['sms.sent'], ['sms.failed', failure]], 3)
  })

  test('is told as sent first, where its receipts were quicker than the answer to its submit', async () => {
    for (const kind of ['sms-delivered', 'sms-failed'] as const) {
      const one = await fallen()
      const [id] = nextIds() as [string]
      const entry = await takeOne(pool, one.messageId)
      await take([smsReceipt({ kind, phone: one.phone, ids: [id] })])
      await assertTold(one, [])
      await recordSent(pool, entry, [id])
      const failure = { reason: 'UNDELIVERABLE', description: SMS_FAILURES.UNDELIVERABLE }
      await assertTold(one, [['sms.sent'], kind === 'sms-failed' ? ['sms.failed', failure] : ['sms.delivered']])
    }
  })

  test('is told with as many segments as it really took', async () => {
    const one = await fallen()
    await end(
      one.messageId,
      { is: 'sent', segments: 2 },
      nextIds(2).map((carrierMessageId, index) => ({ part: index + 1, carrierMessageId })),
    )
    await assertTold(one, [['sms.sent']], 2)
  })

  test('after its message had expired is told after that', async () => {
    const sender = await createSender(pool)
    const phone = nextPhone()
    const [messageId] = (await acceptMessages(pool, sender, { recipients: [phone], afterExpiry: { delay: 0 } })) as [string]
    await pool.query(`update messages set client_reference_id = 'order-1' where id = $1`, [messageId])
    await moveExpiry(pool, [messageId])
    await expireDue(pool)
    await passTime(pool)
    await recordSent(pool, await takeOne(pool, messageId), nextIds())
    await assertTold({ sender, messageId, phone }, [['sms.sent']], 1, 'message.expired')
  })
})

describe('an SMS that the network did not take', () => {
  test('is told as failed, with how many segments it would have had, and why', async () => {
    const one = await fallen({ content: LONG_TEXT })
    await end(one.messageId, { is: 'failed', reason: 'INVALID_RECIPIENT', detail: 'ESME_RINVDSTADR "x"' })
    const description = `${SMS_FAILURES.INVALID_RECIPIENT} The network said: ESME_RINVDSTADR "x"`
    await assertTold(one, [['sms.failed', { reason: 'INVALID_RECIPIENT', description }]], 3)
  })

  test('after it took the beginning is told as failed once, whatever becomes of that', async () => {
    const one = await fallen({ content: LONG_TEXT })
    const [id] = nextIds() as [string]
    await end(one.messageId, { is: 'failed', reason: 'REJECTED', detail: '' }, [{ part: 1, carrierMessageId: id }])
    await take([smsReceipt({ phone: one.phone, ids: [id] })])
    await take([smsReceipt({ kind: 'sms-failed', phone: one.phone, ids: [id] })])
    await assertTold(one, [['sms.failed', { reason: 'REJECTED', description: SMS_FAILURES.REJECTED }]], 3)
  })

  test('is told as failed where it was lost, and nobody knows whether the network has it', async (t) => {
    const one = await fallen()
    await takeOne(pool, one.messageId)
    await passTime(pool)
    const carrier = createSmsCarrier()
    startSmsWorker(t, url, carrier)
    await until('it is given up', async () => (await fateOf(pool, one.messageId))[0] === 'FAILED')
    assert.deepEqual(carrier.to(one.phone), [])
    await assertTold(one, [['sms.failed', { reason: 'OUTCOME_UNKNOWN', description: SMS_FAILURES.OUTCOME_UNKNOWN }]])
  })

  test('and is tried again or given back is told as nothing; nor is what comes without the lease', async () => {
    const one = await fallen()
    await end(one.messageId, { is: 'not-tried', afterMs: 0 })
    await end(one.messageId, { is: 'retry', afterMs: 0, detail: 'busy' })
    const { copy, lease } = await takeOne(pool, one.messageId)
    await passTime(pool)
    await takeOne(pool, one.messageId)
    await recordSmsResults(pool, SMS_CARRIER, [{ messageId: one.messageId, copy, lease, parts: [], is: 'sent', segments: 1 }])
    await assertTold(one, [])
  })
})

describe('nothing is told of an SMS', () => {
  test('that a rule held back', async (t) => {
    const one = await fallen()
    const { accountId, agentId } = one.sender
    await recordOptOut(pool, { accountId, agentId, phone: one.phone, optedOut: true, source: 'operator' })
    startSmsWorker(t, url, createSmsCarrier())
    await until('it is held back', async () => (await fateOf(pool, one.messageId))[0] === 'SKIPPED')
    await assertTold(one, [])
  })

  test('that is not needed', async () => {
    const one = await fallen()
    await end(one.messageId, { is: 'not-needed' })
    assert.deepEqual(await fateOf(pool, one.messageId), ['NOT_NEEDED', 'RCS_DELIVERED'])
    await assertTold(one, [])
  })

  test('of a message that was delivered, or that expired where none was asked for', async () => {
    const sender = await createSender(pool)
    const [delivered, expired] = [nextPhone(), nextPhone()]
    const [first, second] = (await acceptMessages(pool, sender, { recipients: [delivered, expired] })) as [string, string]
    await take([receipt({ messageId: first, phone: delivered })])
    await moveExpiry(pool, [second])
    await expireDue(pool)
    assert.equal((await fateOf(pool, second))[0], 'SKIPPED')
    assert.deepEqual(
      (await readTold(pool, sender)).map(({ kind, subjectId }) => [kind, subjectId]),
      [
        ['message.sent', first],
        ['message.delivered', first],
        ['message.expired', second],
      ],
    )
  })

  test('that is a copy for a test number, whether it is taken, refused or arrives', async () => {
    const testNumbers = [nextPhone(), nextPhone(), nextPhone()]
    const one = await fallen({ planParams: { testNumbers, useTestNumbers: true } })
    await recordSent(pool, await takeOne(pool, one.messageId), nextIds())
    const copies = (await takeSms(pool)).toSorted((a, b) => a.copy - b.copy)
    assert.deepEqual(
      copies.map((entry) => [entry.messageId, entry.copy]),
      [1, 2, 3].map((place) => [one.messageId, place]),
    )
    const [first, second, third] = copies as [SmsEntry, SmsEntry, SmsEntry]
    const [arrived, lost] = nextIds(2) as [string, string]
    await recordSent(pool, first, [arrived])
    await recordSent(pool, second, [lost])
    const { messageId, copy, lease } = third
    await recordSmsResults(pool, SMS_CARRIER, [{ messageId, copy, lease, parts: [], is: 'failed', reason: 'REJECTED', detail: '' }])
    await take([
      smsReceipt({ phone: first.recipient, ids: [arrived] }),
      smsReceipt({ kind: 'sms-failed', phone: second.recipient, ids: [lost] }),
    ])
    assert.deepEqual(await fateOf(pool, one.messageId), ['SENT', 'RCS_FAILED'])
    await assertTold(one, [['sms.sent']])
  })

  test('as the recipient’s where it is a test number that answers its copy', async () => {
    const [tester, number] = [nextPhone(), '48732000001']
    const one = await fallen({ planParams: { sender: number, testNumbers: [tester], useTestNumbers: true } })
    await recordSent(pool, await takeOne(pool, one.messageId), nextIds())
    await recordSent(pool, await takeOne(pool, one.messageId, 1), nextIds())
    const wrote = { carrier: SMS_CARRIER, eventId: one.messageId, phone: tester, number, kind: 'wrote', text: 'Hello' } as const
    await take([{ ...wrote, occurredAt: new Date() } as unknown as CarrierEvent])
    await assertTold(one, [['sms.sent']])
    await processReplies(pool, logger)
    const { agentId } = one.sender
    const data = { agentId, recipient: tester, channel: 'sms', action: 'wrote', text: 'Hello' }
    const told = await readTold(pool, one.sender)
    assert.deepEqual([told.length, told.at(-1)?.kind, told.at(-1)?.data], [3, 'message.replied', data])
  })
})

test('the failure of the message is told before all that becomes of its SMS', async () => {
  const one = await fallen()
  const { message } = await readAll(pool, one.messageId)
  const [failed] = await readTold(pool, one.sender)
  // It was told before the caller's name for it was written here.
  const data = { messageId: one.messageId, agentId: one.sender.agentId, recipient: one.phone, test: false }
  const failure = { reason: 'NOT_REACHABLE', description: `${FAILURES.NOT_REACHABLE} The network said: 404` }
  assert.deepEqual(failed, {
    kind: 'message.failed',
    subjectId: one.messageId,
    occurredAt: new Date(message.failed_at),
    data: { ...data, failure },
  })
})

test('all that these SMS went through was told, as it is documented', async () => {
  assert.ok((await assertAllTold(pool)) > 30)
  await assertAsDocumented(pool)
})
