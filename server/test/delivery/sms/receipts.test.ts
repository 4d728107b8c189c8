import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { beforeEach, describe, test } from 'node:test'
import { ensurePace } from '../../../src/delivery/rate.ts'
import { createEventTaker } from '../../../src/delivery/receipts.ts'
import { recordSmsResults } from '../../../src/delivery/sms/results.ts'
import { createTestDatabase } from '../../support/database.ts'
import { callerAt } from '../../support/messages.ts'
import { startTestService } from '../../support/service.ts'
import { startSimulator } from '../../support/simulator.ts'
import { until } from '../../support/until.ts'
import { CARRIER, createSender, NO_LIMITS } from '../support.ts'
import {
  fateOf,
  LONG_TEXT,
  nextPhone,
  readSms,
  recordSent,
  refusedMessage,
  refusedMessages,
  SMS_CARRIER,
  smsReceipt,
  takeOne,
  takeSms,
} from './support.ts'

const { hotPool: pool } = await createTestDatabase()
await ensurePace(pool, CARRIER)
await ensurePace(pool, SMS_CARRIER)
const sender = await createSender(pool)
const take = createEventTaker(pool, () => {})

beforeEach(async () => {
  await pool.query('delete from sms_queue')
  await pool.query('delete from sms_receipts')
})

let ids = 0
function nextId(): string {
  ids += 1
  return `${1_000_000 + ids}`
}

type Submitted = { messageId: string; phone: string; ids: string[] }

/** An SMS that the network has, in so many parts. */
async function submitted({ parts = 1, phone = nextPhone(), partIds = Array.from({ length: parts }, nextId) } = {}): Promise<Submitted> {
  const messageId = await refusedMessage(pool, sender, { recipients: [phone], ...(partIds.length === 3 && { content: LONG_TEXT }) })
  await recordSent(pool, await takeOne(pool, messageId), partIds)
  return { messageId, phone, ids: partIds }
}

async function countKept(): Promise<number> {
  return (await pool.query('select from sms_receipts')).rowCount ?? 0
}

describe('an SMS', () => {
  test('is DELIVERED when all its parts are, in any order, and not before; nothing is left behind', async () => {
    const { messageId, phone, ids: partIds } = await submitted({ parts: 3 })
    for (const id of partIds.toReversed()) {
      assert.deepEqual(await fateOf(pool, messageId), ['SENT', 'RCS_FAILED'])
      await take([smsReceipt({ phone, ids: [id] })])
    }
    const { fallback, parts, events } = await readSms(pool, messageId)
    assert.deepEqual([fallback.status, fallback.reason, parts.length, await countKept()], ['DELIVERED', 'RCS_FAILED', 0, 0])
    assert.ok(fallback.sent_at <= fallback.delivered_at)
    assert.deepEqual(
      events.map(({ kind }) => kind),
      ['sms-scheduled', 'sms-sent', 'sms-delivered'],
    )
  })

  test('is FAILED, UNDELIVERABLE when one of its parts is, with the network’s words', async () => {
    const { messageId, phone, ids: partIds } = await submitted({ parts: 3 })
    const [first, second, third] = partIds as [string, string, string]
    await take([smsReceipt({ phone, ids: [first] }), smsReceipt({ phone, ids: [second], kind: 'sms-failed', detail: 'UNDELIV 011' })])
    const failed = await readSms(pool, messageId)
    assert.deepEqual([failed.fallback.status, failed.fallback.reason], ['FAILED', 'UNDELIVERABLE'])
    assert.equal(failed.fallback.detail, 'UNDELIV 011')
    assert.deepEqual(failed.events.at(-1)?.kind, 'sms-failed')
    await take([smsReceipt({ phone, ids: [third] })])
    assert.deepEqual((await readSms(pool, messageId)).fallback, failed.fallback)
  })

  test('of which a part failed before all were submitted is FAILED once they are', async () => {
    const phone = nextPhone()
    const messageId = await refusedMessage(pool, sender, { recipients: [phone], content: LONG_TEXT })
    const { copy, lease } = await takeOne(pool, messageId)
    const first = [{ part: 1, carrierMessageId: nextId() }]
    await recordSmsResults(pool, SMS_CARRIER, [{ messageId, copy, lease, is: 'retry', afterMs: 0, detail: '', parts: first }])
    await take([smsReceipt({ phone, ids: [first[0]?.carrierMessageId as string], kind: 'sms-failed', detail: 'REJECTD' })])
    assert.deepEqual(await fateOf(pool, messageId), ['SCHEDULED', 'RCS_FAILED'])
    const rest = { messageId, copy, lease: (await takeOne(pool, messageId)).lease, is: 'sent', segments: 3 } as const
    const parts = [2, 3].map((part) => ({ part, carrierMessageId: nextId() }))
    await recordSmsResults(pool, SMS_CARRIER, [{ ...rest, parts }])
    assert.deepEqual(await fateOf(pool, messageId), ['FAILED', 'UNDELIVERABLE'])
  })

  test('is not moved by word that it is under way, nor by a receipt without a number', async () => {
    const { messageId, phone, ids: partIds } = await submitted()
    const before = await readSms(pool, messageId)
    await take([smsReceipt({ phone, ids: partIds, kind: 'sms-underway' }), smsReceipt({ phone: '', ids: partIds })])
    assert.deepEqual([await readSms(pool, messageId), await countKept()], [before, 0])
  })
})

describe('a receipt', () => {
  for (const kind of ['sms-delivered', 'sms-failed'] as const) {
    test(`that is quicker than the answer to its submit counts when that comes: ${kind}`, async () => {
      const [phone, id] = [nextPhone(), nextId()]
      const messageId = await refusedMessage(pool, sender, { recipients: [phone] })
      const entry = await takeOne(pool, messageId)
      await take([smsReceipt({ phone, ids: [id], kind })])
      assert.deepEqual(await fateOf(pool, messageId), ['SCHEDULED', 'RCS_FAILED'])
      await recordSent(pool, entry, [id])
      const expected = kind === 'sms-delivered' ? ['DELIVERED', 'RCS_FAILED'] : ['FAILED', 'UNDELIVERABLE']
      assert.deepEqual([await fateOf(pool, messageId), await countKept()], [expected, 0])
    })
  }

  test('that comes twice, later or in the same batch, changes nothing more', async () => {
    const { messageId, phone, ids: partIds } = await submitted()
    const delivered = smsReceipt({ phone, ids: partIds })
    await take([delivered, delivered, smsReceipt({ phone, ids: partIds })])
    const before = await readSms(pool, messageId)
    assert.equal(before.fallback.status, 'DELIVERED')
    await take([delivered])
    await take([smsReceipt({ phone, ids: partIds })])
    assert.deepEqual(await readSms(pool, messageId), before)
  })

  test('of one part that comes twice does not count for the others', async () => {
    const { messageId, phone, ids: partIds } = await submitted({ parts: 3 })
    const first = () => smsReceipt({ phone, ids: partIds.slice(0, 1) })
    await take([first(), first(), first()])
    await take([first()])
    assert.deepEqual(await fateOf(pool, messageId), ['SENT', 'RCS_FAILED'])
  })

  test('that says the opposite of the one before changes nothing: the first report counts', async () => {
    for (const [first, second, status] of [
      ['sms-delivered', 'sms-failed', 'DELIVERED'],
      ['sms-failed', 'sms-delivered', 'FAILED'],
    ] as const) {
      const { messageId, phone, ids: partIds } = await submitted()
      await take([smsReceipt({ phone, ids: partIds, kind: first })])
      const before = await readSms(pool, messageId)
      assert.equal(before.fallback.status, status)
      await take([smsReceipt({ phone, ids: partIds, kind: second })])
      assert.deepEqual(await readSms(pool, messageId), before)
    }
  })

  test('whose id is hexadecimal where the answer’s is decimal, or the reverse, finds its SMS, before the answer too', async () => {
    for (const isEarly of [false, true]) {
      const [phone, id] = [nextPhone(), nextId()]
      const messageId = await refusedMessage(pool, sender, { recipients: [phone] })
      const entry = await takeOne(pool, messageId)
      const receipt = smsReceipt({ phone, ids: [Number(id).toString(16), id, '12345'] })
      if (isEarly) await take([receipt])
      await recordSent(pool, entry, [id])
      if (!isEarly) await take([receipt])
      assert.deepEqual([await fateOf(pool, messageId), await countKept()], [['DELIVERED', 'RCS_FAILED'], 0])
    }
  })

  test('whose readings fit two SMS to one phone is of the first that fits, and moves one of them', async () => {
    const phone = nextPhone()
    const [likely, unlikely] = [await submitted({ phone }), await submitted({ phone })]
    await take([smsReceipt({ phone, ids: ['none', ...likely.ids, ...unlikely.ids] })])
    assert.deepEqual(await fateOf(pool, likely.messageId), ['DELIVERED', 'RCS_FAILED'])
    assert.deepEqual(await fateOf(pool, unlikely.messageId), ['SENT', 'RCS_FAILED'])
  })

  test('of another phone or another carrier moves nothing', async () => {
    const { messageId, phone, ids: partIds } = await submitted()
    const before = await readSms(pool, messageId)
    await take([smsReceipt({ phone: nextPhone(), ids: partIds }), smsReceipt({ phone, ids: partIds, carrier: 'another' })])
    assert.deepEqual(await readSms(pool, messageId), before)
    const later = await refusedMessage(pool, sender, { recipients: [phone] })
    const stranger = nextId()
    await take([smsReceipt({ phone, ids: [stranger], carrier: 'another' }), smsReceipt({ phone: nextPhone(), ids: [stranger] })])
    await recordSent(pool, await takeOne(pool, later), [stranger])
    assert.deepEqual(await fateOf(pool, later), ['SENT', 'RCS_FAILED'])
  })

  test('of a copy to a test number has no effect on the message; the copy gets none of its own either', async () => {
    const [phone, tester] = [nextPhone(), nextPhone()]
    const planParams = { testNumbers: [tester], useTestNumbers: true }
    const messageId = await refusedMessage(pool, sender, { recipients: [phone], planParams })
    const [own, ofCopy] = [nextId(), nextId()]
    await recordSent(pool, await takeOne(pool, messageId), [own])
    await recordSent(pool, await takeOne(pool, messageId, 1), [ofCopy])
    const before = await readSms(pool, messageId)
    assert.deepEqual(
      before.parts.map(({ copy, recipient }) => [copy, recipient]),
      [
        [0, phone],
        [1, tester],
      ],
    )
    await take([smsReceipt({ phone: tester, ids: [ofCopy], kind: 'sms-failed' })])
    const { parts, ...after } = await readSms(pool, messageId)
    assert.deepEqual([after.fallback, after.events, parts.map(({ copy }) => copy)], [before.fallback, before.events, [0]])
    await take([smsReceipt({ phone, ids: [own] })])
    assert.deepEqual(await fateOf(pool, messageId), ['DELIVERED', 'RCS_FAILED'])
  })
})

describe('an id that the network uses again', () => {
  test('is of the later SMS, whatever became of the receipt of the earlier one', async () => {
    for (let round = 0; round < 5; round++) {
      const [phone, id] = [nextPhone(), nextId()]
      const earlier = await submitted({ phone, partIds: [id] })
      await pool.query(`update sms_segments set submitted_at = now() - interval '3 days' where message_id = $1`, [earlier.messageId])
      const later = await submitted({ phone, partIds: [id] })
      await take([smsReceipt({ phone, ids: [id] })])
      assert.deepEqual([(await fateOf(pool, earlier.messageId))[0], (await fateOf(pool, later.messageId))[0]], ['SENT', 'DELIVERED'])
    }
  })

  test('is not delivered by what was told long before its submit', async () => {
    const [phone, id] = [nextPhone(), nextId()]
    await take([smsReceipt({ phone, ids: [id] })])
    await pool.query(`update sms_receipts set received_at = now() - interval '3 minutes'`)
    const { messageId } = await submitted({ phone, partIds: [id] })
    assert.deepEqual(await fateOf(pool, messageId), ['SENT', 'RCS_FAILED'])
  })
})

const ROUNDS = 200
// As many transactions as there are connections: one that waits for a connection fails after a while.
const AT_ONCE = 5
const seed = randomInt(2 ** 31)

/** From 0 up to 1, ever the same for a seed. */
function createRandom(): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return state / 2 ** 31
  }
}

test(`a receipt and the answer to its submit at the same moment: each finds the other, ${ROUNDS} rounds (seed ${seed})`, async () => {
  const random = createRandom()
  for (let from = 0; from < ROUNDS; from += AT_ONCE) {
    const idOf = new Map((await refusedMessages(pool, sender, { count: AT_ONCE })).map((id) => [id, nextId()]))
    const entries = (await takeSms(pool)).filter(({ messageId }) => idOf.has(messageId))
    assert.equal(entries.length, AT_ONCE)
    const works = entries.flatMap((entry) => {
      const id = idOf.get(entry.messageId) as string
      // A taker each: one taker writes what it is given together.
      return [
        () => recordSent(pool, entry, [id]),
        () => createEventTaker(pool, () => {})([smsReceipt({ phone: entry.recipient, ids: [id] })]),
      ]
    })
    const shuffled = works.map((work) => ({ work, at: random() })).toSorted((a, b) => a.at - b.at)
    await Promise.all(shuffled.map(({ work }) => work()))
    const { rows } = await pool.query('select status, reason from sms_fallbacks where message_id = any ($1)', [[...idOf.keys()]])
    assert.deepEqual(rows, Array(AT_ONCE).fill({ status: 'DELIVERED', reason: 'RCS_FAILED' }))
  }
  assert.equal(await countKept(), 0)
})

test('from a network whose receipts come before the answers, twice, and with ids in hexadecimal: every SMS ends as the phone had it', async () => {
  const database = await createTestDatabase()
  const simulator = await startSimulator()
  const env = { HERALD_DATABASE_URL: database.url, ...NO_LIMITS }
  const service = await startTestService(env, { findCarriers: async () => simulator.settings })
  const caller = callerAt(service.url, await createSender(database.pool))
  const always = { rate: 1 }
  const faults = { receiptBeforeAnswer: { rate: 0.5 }, receiptDuplicated: always, hexInReceipt: always }
  await simulator.ask('faults', { seed, smpp: faults }, 'PUT')
  const expected = new Map<string, string>()
  const contents = ['Short.', LONG_TEXT]
  for (let n = 10; n < 22; n++) {
    const ending = n % 4 === 3 ? '08' : '02'
    const smsFallback = { planParams: { sender: 'MyShop' }, smsMessagesPlan: [{ content: contents[n % 2], multipart: true }] }
    const messageId = await caller.accepted({ recipient: `+4860070${n}${ending}`, smsFallback })
    expected.set(messageId, ending === '08' ? 'FAILED' : 'DELIVERED')
  }
  for (const [messageId, status] of expected) {
    await until(`${messageId} is ${status}`, async () => (await caller.read(messageId)).body.smsFallback.status === status)
  }
  const counts = await simulator.ask('counts')
  assert.equal(counts['sms-part'], 6 * 1 + 6 * 3)
  assert.doesNotMatch(service.log(), /"level":"error"/)
})
