import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import type { SendResult } from '../../../src/carriers/carrier.ts'
import { expireDue } from '../../../src/delivery/expiry.ts'
import { ensurePace } from '../../../src/delivery/rate.ts'
import { recordResults } from '../../../src/delivery/results.ts'
import { recordSmsResults, type SmsEntryResult } from '../../../src/delivery/sms/results.ts'
import { recordOptOut } from '../../../src/replies/opt-outs.ts'
import { createTestDatabase } from '../../support/database.ts'
import { cuttableDatabase } from '../../support/proxy.ts'
import { until } from '../../support/until.ts'
import { CARRIER, createReceiver, createSender, receipt } from '../support.ts'
import {
  acceptMessages,
  claimMessages,
  countQueued,
  createSmsCarrier,
  fateOf,
  LONG_TEXT,
  nextPhone,
  passPauses,
  passTime,
  readSms,
  recordSent,
  refusedMessage,
  SMS_CARRIER,
  startSmsWorker,
  taken,
  takeOne,
  takeSms,
} from './support.ts'

const { url, hotPool: pool } = await createTestDatabase()
await ensurePace(pool, CARRIER)
await ensurePace(pool, SMS_CARRIER)
const sender = await createSender(pool)
const take = createReceiver(pool)

beforeEach(async () => {
  await pool.query('delete from sms_queue')
})

async function untilSettled(wake: () => void): Promise<void> {
  await until('all are settled', async () => {
    wake()
    return (await countQueued(pool)) === 0
  })
}

describe('what the network answers to a submit', () => {
  test('refused: FAILED with its reason and its words, and not tried again', async (t) => {
    const messageId = await refusedMessage(pool, sender)
    const carrier = createSmsCarrier({ onSubmit: () => ({ is: 'failed', reason: 'INVALID_RECIPIENT', detail: '0x0b no such number' }) })
    await untilSettled(startSmsWorker(t, url, carrier).wake)
    const { fallback, events } = await readSms(pool, messageId)
    assert.deepEqual([fallback.status, fallback.reason, carrier.seen.length], ['FAILED', 'INVALID_RECIPIENT', 1])
    assert.match(fallback.detail, /The network said: 0x0b no such number$/)
    assert.deepEqual(
      events.map(({ kind }) => kind),
      ['sms-scheduled', 'sms-failed'],
    )
  })

  test('not now: tried again until it is taken, once', async (t) => {
    const messageId = await refusedMessage(pool, sender)
    const answers: SendResult[] = [
      { is: 'retry', afterMs: 0, detail: '0x14' },
      { is: 'not-tried', afterMs: 1 },
      { is: 'retry', afterMs: 0, detail: '0x58' },
    ]
    const carrier = createSmsCarrier({ onSubmit: (part, id) => answers.shift() ?? taken(part, id) })
    const { wake } = startSmsWorker(t, url, carrier)
    await until('it is settled', async () => {
      await passPauses(pool)
      wake()
      return (await readSms(pool, messageId)).queue === null
    })
    assert.deepEqual([await fateOf(pool, messageId), carrier.seen.length], [['SENT', 'RCS_FAILED'], 4])
  })

  test('part 1 of 3 taken and then not now: parts 2 and 3 follow, even to somebody who has opted out since, and the text is whole', async (t) => {
    const phone = nextPhone()
    const messageId = await refusedMessage(pool, sender, { recipients: [phone], content: LONG_TEXT })
    const carrier = createSmsCarrier({
      onSubmit: (part, id) =>
        part.concatenation?.number === 2 && carrier.seen.length === 2 ? { is: 'retry', afterMs: 60_000, detail: '' } : taken(part, id),
    })
    const { wake } = startSmsWorker(t, url, carrier)
    await until('part 1 is written down', async () => (await readSms(pool, messageId)).queue?.segments_sent === 1)
    assert.deepEqual(await fateOf(pool, messageId), ['SCHEDULED', 'RCS_FAILED'])
    await recordOptOut(pool, { accountId: sender.accountId, agentId: sender.agentId, phone, optedOut: true, source: 'word' })
    await passPauses(pool)
    await untilSettled(wake)
    assert.deepEqual(
      carrier.seen.map(({ concatenation }) => concatenation?.number),
      [1, 2, 2, 3],
    )
    const [first, , second, third] = carrier.seen
    assert.equal([first, second, third].map((part) => part?.text).join(''), LONG_TEXT)
    assert.deepEqual(new Set(carrier.seen.map(({ concatenation }) => concatenation?.reference)).size, 1)
    const { fallback, parts } = await readSms(pool, messageId)
    assert.deepEqual([fallback.status, fallback.segments, parts.map(({ segment }) => segment)], ['SENT', 3, [1, 2, 3]])
  })

  test('nothing, for part 1 or for a later one: FAILED, OUTCOME_UNKNOWN, and never submitted again', async (t) => {
    const unanswered = new Map<string, number>()
    const carrier = createSmsCarrier({
      onSubmit: (part, id) =>
        unanswered.get(part.recipient) === (part.concatenation?.number ?? 1)
          ? { is: 'unknown', afterMs: 0, detail: 'cut' }
          : taken(part, id),
    })
    const ids: string[] = []
    for (const number of [1, 2, 3]) {
      const phone = nextPhone()
      unanswered.set(phone, number)
      ids.push(await refusedMessage(pool, sender, { recipients: [phone], content: LONG_TEXT }))
    }
    await untilSettled(startSmsWorker(t, url, carrier).wake)
    for (const id of ids) assert.deepEqual(await fateOf(pool, id), ['FAILED', 'OUTCOME_UNKNOWN'])
    assert.deepEqual(
      [...unanswered.keys()].map((phone) => carrier.to(phone).length),
      [1, 2, 3],
    )
    assert.deepEqual([await takeSms(pool), carrier.seen.length], [[], 6])
  })
})

describe('a worker that does not come back', () => {
  test('leaves an SMS that is FAILED, OUTCOME_UNKNOWN once its lease has ended, and is never submitted again', async (t) => {
    const messageId = await refusedMessage(pool, sender)
    const held = await takeOne(pool, messageId)
    const carrier = createSmsCarrier()
    const { wake } = startSmsWorker(t, url, carrier)
    await passTime(pool)
    await untilSettled(wake)
    const after = await readSms(pool, messageId)
    assert.deepEqual([after.fallback.status, after.fallback.reason, carrier.seen.length], ['FAILED', 'OUTCOME_UNKNOWN', 0])
    // It comes back after all, and says that the network has it.
    assert.equal(await recordSent(pool, held, ['77']), false)
    assert.deepEqual(await readSms(pool, messageId), after)
  })

  test('and another that finds that out and does not come back either: nobody submits it again', async () => {
    const messageId = await refusedMessage(pool, sender)
    assert.equal((await takeOne(pool, messageId)).judgement, 'go')
    for (let crash = 1; crash <= 3; crash++) {
      await passTime(pool)
      assert.equal((await takeOne(pool, messageId)).judgement, 'lost', `after crash ${crash}`)
    }
  })

  test('leaves the parts that are known: the rest is not submitted by somebody else', async () => {
    const messageId = await refusedMessage(pool, sender, { content: LONG_TEXT })
    const { copy, lease } = await takeOne(pool, messageId)
    const parts = [{ part: 1, carrierMessageId: 'known-1' }]
    await recordSmsResults(pool, SMS_CARRIER, [{ messageId, copy, lease, is: 'retry', afterMs: 0, detail: '', parts }])
    assert.equal((await takeOne(pool, messageId)).judgement, 'go')
    await passTime(pool)
    assert.equal((await takeOne(pool, messageId)).judgement, 'lost')
  })

  test('has the right to write for as long as nobody else took the SMS up, however late it is', async () => {
    const messageId = await refusedMessage(pool, sender)
    const held = await takeOne(pool, messageId)
    await passTime(pool)
    assert.equal(await recordSent(pool, held, ['78']), true)
    assert.deepEqual(await fateOf(pool, messageId), ['SENT', 'RCS_FAILED'])
  })
})

test('a result under a lease that is lost changes nothing, whatever it is', async () => {
  const verdicts: SmsEntryResult[] = [
    { is: 'sent', segments: 1 },
    { is: 'failed', reason: 'REJECTED', detail: '' },
    { is: 'skipped', reason: 'CONSENT' },
    { is: 'not-needed' },
    { is: 'gone' },
    { is: 'retry', afterMs: 0, detail: '' },
    { is: 'not-tried', afterMs: 0 },
  ]
  for (const verdict of verdicts) {
    const messageId = await refusedMessage(pool, sender)
    const { copy, lease } = await takeOne(pool, messageId)
    await passTime(pool)
    const { lease: newer } = await takeOne(pool, messageId)
    const before = await readSms(pool, messageId)
    const result = { messageId, copy, parts: [{ part: 1, carrierMessageId: 'late' }], ...verdict }
    assert.deepEqual(await recordSmsResults(pool, SMS_CARRIER, [{ ...result, lease }]), [false])
    assert.deepEqual(await readSms(pool, messageId), before)
    assert.deepEqual(await recordSmsResults(pool, SMS_CARRIER, [{ ...result, lease: newer }]), [true])
    assert.notDeepEqual(await readSms(pool, messageId), before)
  }
})

test('of two that write the same result at once, one counts, and there is one of each: part, copy, step of the timeline', async () => {
  const planParams = { testNumbers: ['+48600999001', '+48600999002'], useTestNumbers: true }
  for (let round = 0; round < 10; round++) {
    const messageId = await refusedMessage(pool, sender, { planParams })
    const held = await takeOne(pool, messageId)
    const counted = await Promise.all([recordSent(pool, held, [`twice-${round}`]), recordSent(pool, held, [`twice-${round}`])])
    assert.deepEqual(counted.toSorted(), [false, true])
    const { parts, events } = await readSms(pool, messageId)
    const copies = await pool.query('select from sms_queue where message_id = $1 and copy > 0', [messageId])
    assert.deepEqual([parts.length, copies.rowCount, events.map(({ kind }) => kind)], [1, 2, ['sms-scheduled', 'sms-sent']])
  }
})

describe('word about the revocation, while the SMS after an expiry is being submitted,', () => {
  async function expiredAndHeld() {
    const phone = nextPhone()
    const [messageId] = (await acceptMessages(pool, sender, { recipients: [phone], afterExpiry: { delay: 0 } })) as [string]
    const { lease } = (await claimMessages(pool)).find((entry) => entry.messageId === messageId) as { lease: string }
    await recordResults(pool, [{ messageId, lease, is: 'sent' }])
    for (const table of ['messages', 'expiries']) {
      const id = table === 'messages' ? 'id' : 'message_id'
      await pool.query(`update ${table} set expires_at = now() - interval '1 second' where ${id} = $1`, [messageId])
    }
    await expireDue(pool)
    assert.deepEqual(await takeSms(pool), [], 'it waits for the outcome of the revocation')
    await passTime(pool)
    return { messageId, phone, held: await takeOne(pool, messageId) }
  }

  test('from the network, does not end the lease: the SMS that it took is SENT', async () => {
    const { messageId, phone, held } = await expiredAndHeld()
    const { queue } = await readSms(pool, messageId)
    await take([receipt({ messageId, phone, kind: 'expired' })])
    assert.deepEqual((await readSms(pool, messageId)).queue, queue)
    assert.deepEqual(await takeSms(pool), [])
    assert.equal(await recordSent(pool, held, ['79']), true)
    assert.deepEqual(await fateOf(pool, messageId), ['SENT', 'RCS_EXPIRED'])
  })

  test('from the answer to DELETE, does not end the lease either', async () => {
    const { messageId, held } = await expiredAndHeld()
    const { queue } = await readSms(pool, messageId)
    const { lease } = (await claimMessages(pool)).find((entry) => entry.messageId === messageId) as { lease: string }
    await recordResults(pool, [{ messageId, lease, is: 'revoke-asked', detail: '' }])
    assert.deepEqual((await readSms(pool, messageId)).queue, queue)
    assert.equal(await recordSent(pool, held, ['80']), true)
    assert.deepEqual(await fateOf(pool, messageId), ['SENT', 'RCS_EXPIRED'])
  })
})

test('a database that is away while the network answers: the result is written when it is back, and the SMS is submitted once', async (t) => {
  const database = await cuttableDatabase(url)
  const messageId = await refusedMessage(pool, sender, { content: LONG_TEXT })
  let isCut = false
  const carrier = createSmsCarrier({
    onSubmit: async (part, id) => {
      if (part.concatenation?.number === 3) {
        await database.cut()
        isCut = true
      }
      return taken(part, id)
    },
  })
  const { wake } = startSmsWorker(t, database.url, carrier)
  await until('the database is away', () => isCut)
  assert.deepEqual(await fateOf(pool, messageId), ['SCHEDULED', 'RCS_FAILED'])
  await database.mend()
  await untilSettled(wake)
  const { fallback, parts } = await readSms(pool, messageId)
  assert.deepEqual([fallback.status, parts.length, carrier.seen.length], ['SENT', 3, 3])
})

test('a worker that is told to stop between two parts leaves the rest to another, and the text is whole', async (t) => {
  const messageId = await refusedMessage(pool, sender, { content: LONG_TEXT })
  let stopping: Promise<void> | undefined
  const first = createSmsCarrier({
    onSubmit: (part, id) => {
      stopping ??= worker.stop()
      return taken(part, id)
    },
  })
  const worker = startSmsWorker(t, url, first)
  await until('it stops', () => stopping !== undefined)
  await stopping
  const { queue } = await readSms(pool, messageId)
  assert.deepEqual([queue.lease, queue.submitted_under, queue.segments_sent], [null, null, 1])
  const second = createSmsCarrier()
  await untilSettled(startSmsWorker(t, url, second).wake)
  assert.equal([...first.seen, ...second.seen].map(({ text }) => text).join(''), LONG_TEXT)
  assert.deepEqual(await fateOf(pool, messageId), ['SENT', 'RCS_FAILED'])
})
