import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { beforeEach, describe, test } from 'node:test'
import { createEventReceiver } from '../../../src/delivery/receipts.ts'
import { createTestDatabase } from '../../support/database.ts'
import { erased } from '../../support/erased.ts'
import { readOnce, startSimulated } from '../simulated.ts'
import { createSender, kinds, sendUntilAccepted } from '../support.ts'
import { LONG_TEXT, nextPhone, readSms, refusedMessage, refusedMessages, smsReceipt, smsStatusOf } from './support.ts'
import { claimDueSms, claimSmsOf, recordSent, recordSms } from './worker.ts'

const { hotPool: pool } = await createTestDatabase()
const sender = await createSender(pool)
const receive = createEventReceiver(pool, () => {}, erased)

const SENT = ['SENT', 'RCS_FAILED']
const DELIVERED = ['DELIVERED', 'RCS_FAILED']
const UNDELIVERABLE = ['FAILED', 'UNDELIVERABLE']

beforeEach(async () => {
  await pool.query('delete from sms_queue')
  await pool.query('delete from sms_receipts')
})

let ids = 0
function nextId(): string {
  ids += 1
  return `${1_000_000 + ids}`
}

/** An SMS that the network has, in so many segments. */
async function submitted({ segments = 1, phone = nextPhone(), ids = Array.from({ length: segments }, nextId) } = {}) {
  const messageId = await refusedMessage(pool, sender, { recipients: [phone], ...(ids.length === 3 && { content: LONG_TEXT }) })
  await recordSent(pool, await claimSmsOf(pool, messageId), ids)
  return { messageId, phone, ids }
}

async function countReceipts(): Promise<number> {
  return (await pool.query('select from sms_receipts')).rowCount ?? 0
}

describe('an SMS', () => {
  test('is DELIVERED when all its segments are, in any order, and no row is left', async () => {
    const { messageId, phone, ids } = await submitted({ segments: 3 })
    for (const id of ids.toReversed()) {
      assert.deepEqual(await smsStatusOf(pool, messageId), SENT)
      await receive([smsReceipt({ phone, ids: [id] })])
    }
    const { fallback, segments, events } = await readSms(pool, messageId)
    assert.deepEqual([fallback.status, fallback.reason, segments.length, await countReceipts()], [...DELIVERED, 0, 0])
    assert.ok(fallback.sent_at <= fallback.delivered_at)
    assert.deepEqual(kinds(events), ['sms-scheduled', 'sms-checked', 'sms-sent', 'sms-delivered'])
  })

  test('is FAILED with UNDELIVERABLE and the network’s text when one of its segments fails', async () => {
    const { messageId, phone, ids } = await submitted({ segments: 3 })
    const [first, second, third] = ids as [string, string, string]
    await receive([smsReceipt({ phone, ids: [first] }), smsReceipt({ phone, ids: [second], kind: 'sms-failed', detail: 'UNDELIV 011' })])
    const { fallback, events } = await readSms(pool, messageId)
    assert.deepEqual([fallback.status, fallback.reason, fallback.detail], [...UNDELIVERABLE, 'UNDELIV 011'])
    assert.equal(events.at(-1)?.kind, 'sms-failed')
    await receive([smsReceipt({ phone, ids: [third] })])
    assert.deepEqual((await readSms(pool, messageId)).fallback, fallback)
  })

  test('of which a segment failed before all were submitted is FAILED once they are', async () => {
    const [phone, id] = [nextPhone(), nextId()]
    const messageId = await refusedMessage(pool, sender, { recipients: [phone], content: LONG_TEXT })
    await recordSms(pool, await claimSmsOf(pool, messageId), { is: 'retry', afterMs: 0, detail: '' }, [id])
    await receive([smsReceipt({ phone, ids: [id], kind: 'sms-failed', detail: 'REJECTD' })])
    assert.deepEqual(await smsStatusOf(pool, messageId), ['SCHEDULED', 'RCS_FAILED'])
    await recordSent(pool, await claimSmsOf(pool, messageId), [nextId(), nextId()])
    assert.deepEqual(await smsStatusOf(pool, messageId), UNDELIVERABLE)
  })

  test('is not changed by a receipt of progress or a receipt without a number', async () => {
    const { messageId, phone, ids } = await submitted()
    const before = await readSms(pool, messageId)
    await receive([smsReceipt({ phone, ids, kind: 'sms-underway' }), smsReceipt({ phone: '', ids })])
    assert.deepEqual([await readSms(pool, messageId), await countReceipts()], [before, 0])
  })
})

describe('a receipt', () => {
  for (const [kind, end] of [
    ['sms-delivered', DELIVERED],
    ['sms-failed', UNDELIVERABLE],
  ] as const) {
    test(`${kind} counts if it comes before the response to its submit`, async () => {
      const [phone, id] = [nextPhone(), nextId()]
      const messageId = await refusedMessage(pool, sender, { recipients: [phone] })
      const entry = await claimSmsOf(pool, messageId)
      await receive([smsReceipt({ phone, ids: [id], kind })])
      assert.deepEqual(await smsStatusOf(pool, messageId), ['SCHEDULED', 'RCS_FAILED'])
      await recordSent(pool, entry, [id])
      assert.deepEqual([await smsStatusOf(pool, messageId), await countReceipts()], [end, 0])
    })

    test(`${kind} changes nothing if it comes again, in the same batch or later, or after the opposite`, async () => {
      const { messageId, phone, ids } = await submitted()
      const first = smsReceipt({ phone, ids, kind })
      await receive([first, first, smsReceipt({ phone, ids, kind })])
      const before = await readSms(pool, messageId)
      assert.deepEqual([before.fallback.status, before.fallback.reason], end)
      const opposite = kind === 'sms-failed' ? 'sms-delivered' : 'sms-failed'
      for (const again of [first, smsReceipt({ phone, ids, kind }), smsReceipt({ phone, ids, kind: opposite })]) {
        await receive([again])
        assert.deepEqual(await readSms(pool, messageId), before)
      }
    })
  }

  test('of one segment that comes again does not count for the others', async () => {
    const { messageId, phone, ids } = await submitted({ segments: 3 })
    const first = () => smsReceipt({ phone, ids: ids.slice(0, 1) })
    await receive([first(), first(), first()])
    await receive([first()])
    assert.deepEqual(await smsStatusOf(pool, messageId), SENT)
  })

  for (const isEarly of [false, true]) {
    test(`with a hexadecimal id finds its SMS ${isEarly ? 'before' : 'after'} the response with a decimal one`, async () => {
      const [phone, id] = [nextPhone(), nextId()]
      const messageId = await refusedMessage(pool, sender, { recipients: [phone] })
      const entry = await claimSmsOf(pool, messageId)
      const receipt = smsReceipt({ phone, ids: [Number(id).toString(16), id, '12345'] })
      if (isEarly) await receive([receipt])
      await recordSent(pool, entry, [id])
      if (!isEarly) await receive([receipt])
      assert.deepEqual([await smsStatusOf(pool, messageId), await countReceipts()], [DELIVERED, 0])
    })
  }

  test('whose readings match two SMS to one phone moves the first match alone', async () => {
    const phone = nextPhone()
    const [likely, unlikely] = [await submitted({ phone }), await submitted({ phone })]
    await receive([smsReceipt({ phone, ids: ['none', ...likely.ids, ...unlikely.ids] })])
    assert.deepEqual([await smsStatusOf(pool, likely.messageId), await smsStatusOf(pool, unlikely.messageId)], [DELIVERED, SENT])
  })

  test('of another phone or another carrier moves nothing', async () => {
    const { messageId, phone, ids } = await submitted()
    const before = await readSms(pool, messageId)
    await receive([smsReceipt({ phone: nextPhone(), ids }), smsReceipt({ phone, ids, carrier: 'another' })])
    assert.deepEqual(await readSms(pool, messageId), before)
    const early = nextId()
    await receive([smsReceipt({ phone, ids: [early], carrier: 'another' }), smsReceipt({ phone: nextPhone(), ids: [early] })])
    assert.deepEqual(await smsStatusOf(pool, (await submitted({ phone, ids: [early] })).messageId), SENT)
  })

  test('of a copy to a test number does not change the message', async () => {
    const [phone, tester, own, ofCopy] = [nextPhone(), nextPhone(), nextId(), nextId()]
    const planParams = { testNumbers: [tester], useTestNumbers: true }
    const messageId = await refusedMessage(pool, sender, { recipients: [phone], planParams })
    await recordSent(pool, await claimSmsOf(pool, messageId), [own])
    await recordSent(pool, await claimSmsOf(pool, messageId, 1), [ofCopy])
    const before = await readSms(pool, messageId)
    assert.equal(before.segments.map(({ copy, recipient }) => `${copy} ${recipient}`).join(), `0 ${phone},1 ${tester}`)
    await receive([smsReceipt({ phone: tester, ids: [ofCopy], kind: 'sms-failed' })])
    assert.deepEqual(await readSms(pool, messageId), { ...before, segments: before.segments.slice(0, 1) })
    await receive([smsReceipt({ phone, ids: [own] })])
    assert.deepEqual(await smsStatusOf(pool, messageId), DELIVERED)
  })
})

describe('an id that the network reuses', () => {
  test('belongs to the later SMS, whatever became of the receipt of the earlier one', async () => {
    for (let round = 0; round < 5; round++) {
      const [phone, id] = [nextPhone(), nextId()]
      const earlier = await submitted({ phone, ids: [id] })
      await pool.query(`update sms_segments set submitted_at = now() - interval '3 days' where message_id = $1`, [earlier.messageId])
      const later = await submitted({ phone, ids: [id] })
      await receive([smsReceipt({ phone, ids: [id] })])
      assert.deepEqual([await smsStatusOf(pool, earlier.messageId), await smsStatusOf(pool, later.messageId)], [SENT, DELIVERED])
    }
  })

  test('is not matched with a receipt from long before its submit', async () => {
    const [phone, id] = [nextPhone(), nextId()]
    await receive([smsReceipt({ phone, ids: [id] })])
    await pool.query(`update sms_receipts set received_at = now() - interval '3 minutes'`)
    assert.deepEqual(await smsStatusOf(pool, (await submitted({ phone, ids: [id] })).messageId), SENT)
  })
})

const ROUNDS = 200
// As many concurrent transactions as there are connections: one that waits for a connection fails after a while.
const CONCURRENT = 5
const seed = randomInt(2 ** 31)

test(`a receipt and the response to its submit are matched if they come at once, ${ROUNDS} rounds (seed ${seed})`, async () => {
  let state = seed
  /** From 0 to 1, the same sequence for the same seed. */
  const random = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return state / 2 ** 31
  }
  for (let from = 0; from < ROUNDS; from += CONCURRENT) {
    const idOf = new Map((await refusedMessages(pool, sender, { count: CONCURRENT })).map((id) => [id, nextId()]))
    const entries = (await claimDueSms(pool)).filter(({ messageId }) => idOf.has(messageId))
    assert.equal(entries.length, CONCURRENT)
    const works = entries.flatMap((entry) => {
      const id = idOf.get(entry.messageId) as string
      // A taker for each receipt: one taker would write them together.
      const receive = () => createEventReceiver(pool, () => {}, erased)([smsReceipt({ phone: entry.recipient, ids: [id] })])
      return [() => recordSent(pool, entry, [id]), receive]
    })
    const shuffled = works.map((work) => ({ work, at: random() })).toSorted((a, b) => a.at - b.at)
    await Promise.all(shuffled.map(({ work }) => work()))
    const { rows } = await pool.query('select status, reason from sms_fallbacks where message_id = any ($1)', [[...idOf.keys()]])
    assert.deepEqual(rows, Array(CONCURRENT).fill({ status: 'DELIVERED', reason: 'RCS_FAILED' }))
  }
  assert.equal(await countReceipts(), 0)
})

test('every SMS ends as on the phone if receipts come before the responses, twice, and with hexadecimal ids', async () => {
  const { simulator, service, newCaller } = await startSimulated()
  const caller = await newCaller()
  const always = { rate: 1 }
  const faults = { receiptBeforeAnswer: { rate: 0.5 }, receiptDuplicated: always, hexInReceipt: always }
  await simulator.ask('faults', { seed, smpp: faults }, 'PUT')
  const expected = new Map<string, string>()
  for (let n = 10; n < 22; n++) {
    const ending = n % 4 === 3 ? '08' : '02'
    const content = n % 2 === 0 ? 'Short.' : LONG_TEXT
    const smsFallback = { planParams: { sender: 'MyShop' }, smsMessagesPlan: [{ content, multipart: true }] }
    const { messageId } = await sendUntilAccepted(caller, { recipient: `+4860070${n}${ending}`, smsFallback })
    expected.set(messageId, ending === '08' ? 'FAILED' : 'DELIVERED')
  }
  for (const [messageId, status] of expected) {
    await readOnce(caller, messageId, `is ${status}`, ({ smsFallback }) => smsFallback.status === status)
  }
  assert.equal((await simulator.ask('counts'))['sms-part'], 6 * 1 + 6 * 3)
  assert.doesNotMatch(service.log(), /"level":"error"/)
})
