import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import type { Entry } from '../../../src/delivery/claim.ts'
import { recordOptOut } from '../../../src/replies/opt-outs.ts'
import { createTestDatabase } from '../../support/database.ts'
import { cuttableDatabase } from '../../support/proxy.ts'
import { until } from '../../support/until.ts'
import { createReceiver, createSender, kinds, receipt } from '../support.ts'
import { claimNow, record } from '../worker.ts'
import { countQueued, expiredMessage, LONG_TEXT, nextPhone, passPauses, passTime, readSms, refusedMessage, smsStatusOf } from './support.ts'
import {
  acceptSegment,
  claimDueSms,
  claimSmsOf,
  createSmsCarrier,
  recordSent,
  recordSms,
  type SubmitResult,
  startSmsWorker,
} from './worker.ts'

const { url, hotPool: pool } = await createTestDatabase()
const sender = await createSender(pool)
const receive = createReceiver(pool)

beforeEach(async () => {
  await pool.query('delete from sms_queue')
})

async function untilEnded(wake: () => void): Promise<void> {
  await until('all SMS have ended', async () => {
    await passPauses(pool)
    wake()
    return (await countQueued(pool)) === 0
  })
}

describe('an SMS', () => {
  test('that the network refuses is FAILED with its reason and text, and not submitted again', async (t) => {
    const messageId = await refusedMessage(pool, sender)
    const carrier = createSmsCarrier({ onSubmit: () => ({ is: 'failed', reason: 'INVALID_RECIPIENT', detail: '0x0b no such number' }) })
    await untilEnded(startSmsWorker(t, url, carrier).wake)
    const { fallback, events } = await readSms(pool, messageId)
    assert.deepEqual([fallback.status, fallback.reason, carrier.seen.length], ['FAILED', 'INVALID_RECIPIENT', 1])
    assert.match(fallback.detail, /The network said: 0x0b no such number$/)
    assert.deepEqual(kinds(events), ['sms-scheduled', 'sms-checked', 'sms-failed'])
  })

  test('that the network can’t accept now is submitted again until it is accepted', async (t) => {
    const messageId = await refusedMessage(pool, sender)
    const responses: ReturnType<typeof acceptSegment>[] = [
      { is: 'retry', afterMs: 0, detail: '0x14' },
      { is: 'not-tried', afterMs: 1 },
      { is: 'retry', afterMs: 0, detail: '0x58' },
    ]
    const carrier = createSmsCarrier({ onSubmit: (segment, id) => responses.shift() ?? acceptSegment(segment, id) })
    await untilEnded(startSmsWorker(t, url, carrier).wake)
    assert.deepEqual([await smsStatusOf(pool, messageId), carrier.seen.length], [['SENT', 'RCS_FAILED'], 4])
  })

  test('of which the network has segment 1 of 3 is completed later, even if the recipient has opted out since', async (t) => {
    const phone = nextPhone()
    const messageId = await refusedMessage(pool, sender, { recipients: [phone], content: LONG_TEXT })
    const carrier = createSmsCarrier({
      onSubmit: (segment, id) => (carrier.seen.length === 2 ? { is: 'retry', afterMs: 600_000, detail: '' } : acceptSegment(segment, id)),
    })
    const { wake } = startSmsWorker(t, url, carrier)
    await until('segment 1 is recorded', async () => (await readSms(pool, messageId)).queue?.segments_sent === 1)
    assert.deepEqual(await smsStatusOf(pool, messageId), ['SCHEDULED', 'RCS_FAILED'])
    await recordOptOut(pool, { accountId: sender.accountId, agentId: sender.agentId, phone, optedOut: true, source: 'word' })
    await untilEnded(wake)
    const [first, , second, third] = carrier.seen
    assert.equal(carrier.seen.map(({ concatenation }) => concatenation?.number).join(), '1,2,2,3')
    assert.equal([first, second, third].map((segment) => segment?.text).join(''), LONG_TEXT)
    assert.equal(new Set(carrier.seen.map(({ concatenation }) => concatenation?.reference)).size, 1)
    const { fallback, segments } = await readSms(pool, messageId)
    assert.deepEqual([fallback.status, fallback.segments, segments.map(({ segment }) => segment)], ['SENT', 3, [1, 2, 3]])
  })

  test('without a response to any segment is FAILED with OUTCOME_UNKNOWN, and never submitted again', async (t) => {
    const lost = new Map([1, 2, 3].map((number) => [nextPhone(), number]))
    const carrier = createSmsCarrier({
      onSubmit: (segment, id) =>
        lost.get(segment.recipient) === segment.concatenation?.number
          ? { is: 'unknown', afterMs: 0, detail: 'cut' }
          : acceptSegment(segment, id),
    })
    const ids: string[] = []
    for (const phone of lost.keys()) ids.push(await refusedMessage(pool, sender, { recipients: [phone], content: LONG_TEXT }))
    await untilEnded(startSmsWorker(t, url, carrier).wake)
    for (const id of ids) assert.deepEqual(await smsStatusOf(pool, id), ['FAILED', 'OUTCOME_UNKNOWN'])
    for (const [phone, number] of lost) assert.equal(carrier.to(phone).length, number)
    assert.deepEqual([await claimDueSms(pool), carrier.seen.length], [[], 6])
  })

  test('whose network responds while the database is away is submitted once, and recorded when the database is back', async (t) => {
    const database = await cuttableDatabase(url)
    const messageId = await refusedMessage(pool, sender, { content: LONG_TEXT })
    let isCut = false
    const carrier = createSmsCarrier({
      onSubmit: async (segment, id) => {
        if (segment.concatenation?.number === 3) {
          await database.cut()
          isCut = true
        }
        return acceptSegment(segment, id)
      },
    })
    const { wake } = startSmsWorker(t, database.url, carrier)
    await until('the database is away', () => isCut)
    assert.deepEqual(await smsStatusOf(pool, messageId), ['SCHEDULED', 'RCS_FAILED'])
    await database.restore()
    await untilEnded(wake)
    const { fallback, segments } = await readSms(pool, messageId)
    assert.deepEqual([fallback.status, segments.length, carrier.seen.length], ['SENT', 3, 3])
  })

  test('whose worker stops between two segments is completed by another worker', async (t) => {
    const messageId = await refusedMessage(pool, sender, { content: LONG_TEXT })
    let stopping: Promise<void> | undefined
    const first = createSmsCarrier({
      onSubmit: (segment, id) => {
        stopping ??= worker.stop()
        return acceptSegment(segment, id)
      },
    })
    const worker = startSmsWorker(t, url, first)
    await until('it stops', () => stopping !== undefined)
    await stopping
    const { queue } = await readSms(pool, messageId)
    assert.deepEqual([queue.lease, queue.submitted_under, queue.segments_sent], [null, null, 1])
    const second = createSmsCarrier()
    await untilEnded(startSmsWorker(t, url, second).wake)
    assert.equal([...first.seen, ...second.seen].map(({ text }) => text).join(''), LONG_TEXT)
    assert.deepEqual(await smsStatusOf(pool, messageId), ['SENT', 'RCS_FAILED'])
  })
})

test('an SMS is encoded by its mode and its characters', async (t) => {
  const texts: [mode: string | undefined, content: string, encoding: string, diacriticalSigns?: boolean][] = [
    [undefined, 'Crème brûlée? No: è, é, €', 'UCS2'],
    [undefined, 'Zażółć gęślą jaźń', 'GSM7', false],
    ['AUTO', 'è, é, € and {brackets}', 'GSM7'],
    ['AUTO', 'ж', 'UCS2'],
    ['GSM7', 'Hello', 'GSM7'],
    ['UNICODE', 'Hello', 'UCS2'],
  ]
  const phones = texts.map(nextPhone)
  for (const [index, [mode, content, , diacriticalSigns = true]] of texts.entries()) {
    const recipients = phones.slice(index, index + 1)
    await refusedMessage(pool, sender, {
      recipients,
      content,
      variant: { diacriticalSigns },
      planParams: mode === undefined ? {} : { mode },
    })
  }
  const carrier = createSmsCarrier()
  await untilEnded(startSmsWorker(t, url, carrier).wake)
  const encodings = phones.map((phone) => carrier.to(phone)[0]?.encoding)
  assert.deepEqual(
    encodings,
    texts.map(([, , encoding]) => encoding),
  )
})

describe('after a worker crashed, its SMS', () => {
  test('is FAILED with OUTCOME_UNKNOWN when its lease ends; a later result of the worker changes nothing', async (t) => {
    const messageId = await refusedMessage(pool, sender)
    const held = await claimSmsOf(pool, messageId)
    const carrier = createSmsCarrier()
    const { wake } = startSmsWorker(t, url, carrier)
    await passTime(pool)
    await untilEnded(wake)
    const after = await readSms(pool, messageId)
    assert.deepEqual([after.fallback.status, after.fallback.reason, carrier.seen.length], ['FAILED', 'OUTCOME_UNKNOWN', 0])
    assert.equal(await recordSent(pool, held, ['77']), false)
    assert.deepEqual(await readSms(pool, messageId), after)
  })

  test('stays lost if the workers that find it crash too', async () => {
    const messageId = await refusedMessage(pool, sender)
    assert.equal((await claimSmsOf(pool, messageId)).decision, 'go')
    for (let crash = 1; crash <= 3; crash++) {
      await passTime(pool)
      assert.equal((await claimSmsOf(pool, messageId)).decision, 'lost', `after crash ${crash}`)
    }
  })

  test('is not completed by another worker, even if an earlier attempt recorded a segment', async () => {
    const messageId = await refusedMessage(pool, sender, { content: LONG_TEXT })
    await recordSms(pool, await claimSmsOf(pool, messageId), { is: 'retry', afterMs: 0, detail: '' }, ['known-1'])
    assert.equal((await claimSmsOf(pool, messageId)).decision, 'go')
    await passTime(pool)
    assert.equal((await claimSmsOf(pool, messageId)).decision, 'lost')
  })

  test('can still be recorded by the worker after its lease, until another worker claims it', async () => {
    const messageId = await refusedMessage(pool, sender)
    const held = await claimSmsOf(pool, messageId)
    await passTime(pool)
    assert.equal(await recordSent(pool, held, ['78']), true)
    assert.deepEqual(await smsStatusOf(pool, messageId), ['SENT', 'RCS_FAILED'])
  })
})

for (const result of [
  { is: 'sent', segments: 1 },
  { is: 'failed', reason: 'REJECTED', detail: '' },
  { is: 'skipped', reason: 'CONSENT' },
  { is: 'not-needed' },
  { is: 'gone' },
  { is: 'retry', afterMs: 0, detail: '' },
  { is: 'not-tried', afterMs: 0 },
] as SubmitResult[]) {
  test(`the result ${result.is} changes nothing after another worker has claimed the SMS`, async () => {
    const messageId = await refusedMessage(pool, sender)
    const stale = await claimSmsOf(pool, messageId)
    await passTime(pool)
    const newer = await claimSmsOf(pool, messageId)
    const before = await readSms(pool, messageId)
    assert.equal(await recordSms(pool, stale, result, ['late']), false)
    assert.deepEqual(await readSms(pool, messageId), before)
    assert.equal(await recordSms(pool, newer, result, ['late']), true)
    assert.notDeepEqual(await readSms(pool, messageId), before)
  })
}

test('a result that is recorded twice at once counts once, with one row for each segment, copy and step', async () => {
  const planParams = { testNumbers: ['+48600999001', '+48600999002'], useTestNumbers: true }
  for (let round = 0; round < 10; round++) {
    const messageId = await refusedMessage(pool, sender, { planParams })
    const held = await claimSmsOf(pool, messageId)
    const recorded = await Promise.all([recordSent(pool, held, [`twice-${round}`]), recordSent(pool, held, [`twice-${round}`])])
    assert.deepEqual(recorded.filter(Boolean).length, 1)
    const { segments, events } = await readSms(pool, messageId)
    const copies = await pool.query('select from sms_queue where message_id = $1 and copy > 0', [messageId])
    assert.deepEqual([segments.length, copies.rowCount, kinds(events)], [1, 2, ['sms-scheduled', 'sms-checked', 'sms-sent']])
  }
})

for (const by of ['a receipt of the network', 'the response to DELETE'] as const) {
  test(`${by} about the revocation does not end the lease of the SMS after the expiry`, async () => {
    const phone = nextPhone()
    const messageId = await expiredMessage(pool, sender, { recipients: [phone], afterExpiry: { delay: 0 } })
    assert.deepEqual(await claimDueSms(pool), [], 'it waits for the result of the revocation')
    await passTime(pool)
    const held = await claimSmsOf(pool, messageId)
    const { queue } = await readSms(pool, messageId)
    if (by === 'a receipt of the network') await receive([receipt({ messageId, phone, kind: 'expired' })])
    else {
      const revoking = (await claimNow(pool)).entries.find((entry) => entry.messageId === messageId) as Entry
      await record(pool, revoking, { is: 'revoke-asked', detail: '' })
    }
    assert.deepEqual((await readSms(pool, messageId)).queue, queue)
    assert.deepEqual(await claimDueSms(pool), [])
    assert.equal(await recordSent(pool, held, ['79']), true)
    assert.deepEqual(await smsStatusOf(pool, messageId), ['SENT', 'RCS_EXPIRED'])
  })
}
