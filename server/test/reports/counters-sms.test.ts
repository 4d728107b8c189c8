import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import { createHotPool } from '../../src/db/pool.ts'
import { createEventTaker } from '../../src/delivery/receipts.ts'
import { recordSmsResults, type SmsResult } from '../../src/delivery/sms/results.ts'
import { recordOptOut } from '../../src/replies/opt-outs.ts'
import { nextPhone, recordSent, SMS_CARRIER, smsReceipt } from '../delivery/sms/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { type Made, type Making, SORTS, startCounting } from './counting.ts'

// What becomes of the SMS that a message falls back to is counted once, for the message that it is of, and of the recipient's own alone. When
// the file ends, all counters are held against the rows once more.

const { url, hotPool: pool } = await createTestDatabase()
const otherNode = createHotPool({ connectionString: url }, () => {})
after(() => otherNode.end())
const { make, handOver, refuse, report, expire, takeSmsOf, endSms, sendSms, reportSms, counted } = await startCounting(pool)

beforeEach(async () => {
  await pool.query('delete from sms_queue')
})

for (const sort of SORTS) {
  // Of a test message nothing is counted, whatever becomes of its SMS.
  const expected = ({ campaignId }: Made, counts: Record<string, number>) =>
    sort === 'test' ? {} : { [campaignId]: { accepted: 1, ...counts } }
  const of = { own: 'that an account sends by itself', campaign: 'of a campaign', test: 'that is a test' }[sort]

  /** One that the RCS network has refused, so that its SMS is due. */
  async function fallen(sms: Making['sms'] = {}): Promise<Made> {
    const made = await make(sort, { sms })
    await refuse(made)
    return made
  }

  describe(`of the SMS of a message ${of} is counted${sort === 'test' ? ' nothing' : ''}:`, () => {
    test('that it was sent and delivered, however often that is told, to however many nodes', async () => {
      const made = await fallen()
      assert.deepEqual(await counted(made.sender), expected(made, { failed: 1 }))
      const entry = await takeSmsOf(made)
      const id = `twice ${made.messageId}`
      await recordSent(pool, entry, [id])
      await recordSent(pool, entry, [id])
      assert.deepEqual(await counted(made.sender), expected(made, { failed: 1, sms_sent: 1 }))
      const receipts = [smsReceipt({ phone: made.phone, ids: [id] }), smsReceipt({ phone: made.phone, ids: [id] })]
      await Promise.all([pool, otherNode].map((node) => createEventTaker(node, () => {})(receipts)))
      await reportSms(made, id)
      await reportSms(made, id, 'sms-failed')
      assert.deepEqual(await counted(made.sender), expected(made, { failed: 1, sms_sent: 1, sms_delivered: 1 }))
    })

    test('that it was delivered, where the receipt is quicker than the answer to its submit', async () => {
      const made = await fallen()
      const entry = await takeSmsOf(made)
      const id = `quick ${made.messageId}`
      await reportSms(made, id)
      await recordSent(pool, entry, [id])
      assert.deepEqual(await counted(made.sender), expected(made, { failed: 1, sms_sent: 1, sms_delivered: 1 }))
    })

    test('that it failed on its way, and not that it was delivered after that', async () => {
      const made = await fallen()
      const id = await sendSms(made)
      await reportSms(made, id, 'sms-failed')
      await reportSms(made, id)
      assert.deepEqual(await counted(made.sender), expected(made, { failed: 1, sms_sent: 1, sms_failed: 1 }))
    })

    test('that it failed at once, and not that it was sent; trying again counts nothing', async () => {
      const made = await fallen()
      await endSms(made, { is: 'retry', afterMs: 0, detail: '' })
      await endSms(made, { is: 'not-tried', afterMs: 0 })
      await endSms(made, { is: 'failed', reason: 'REJECTED', detail: '' })
      assert.deepEqual(await counted(made.sender), expected(made, { failed: 1, sms_failed: 1 }))
    })

    test('that a rule held it back', async () => {
      const made = await fallen()
      await recordOptOut(pool, { ...made.sender, phone: made.phone, optedOut: true, source: 'operator' })
      const { judgement, copy, lease } = await takeSmsOf(made)
      assert.equal(judgement, 'OPTED_OUT')
      const result: SmsResult = { messageId: made.messageId, copy, lease, parts: [], is: 'skipped', reason: judgement }
      await recordSmsResults(pool, SMS_CARRIER, [result])
      await recordSmsResults(otherNode, SMS_CARRIER, [result])
      assert.deepEqual(await counted(made.sender), expected(made, { failed: 1, sms_skipped: 1 }))
    })

    test('nothing, where it was not needed', async () => {
      const made = await fallen()
      await endSms(made, { is: 'not-needed' })
      const delivered = await make(sort, { sms: {} })
      await handOver(delivered)
      await report(delivered, 'delivered')
      assert.deepEqual(await counted(made.sender), expected(made, { failed: 1 }))
      assert.deepEqual(await counted(delivered.sender), expected(delivered, { sent: 1, delivered: 1 }))
    })

    test('that it was skipped when the message expired, and not where it is sent after that', async () => {
      const skipped = await make(sort, { sms: {} })
      await expire(skipped)
      assert.deepEqual(await counted(skipped.sender), expected(skipped, { expired: 1, sms_skipped: 1 }))
      const sent = await make(sort, { sms: { afterExpiry: { delay: 0 } } })
      await expire(sent)
      await sendSms(sent)
      assert.deepEqual(await counted(sent.sender), expected(sent, { expired: 1, sms_sent: 1 }))
    })

    test('no copy for a test number, whatever becomes of it', async () => {
      const copies = [nextPhone(), nextPhone(), nextPhone()]
      const made = await fallen({ planParams: { useTestNumbers: true, testNumbers: copies } })
      await sendSms(made)
      const once = expected(made, { failed: 1, sms_sent: 1 })
      assert.deepEqual(await counted(made.sender), once)
      await reportSms({ phone: copies[0] as string }, await sendSms(made, 1))
      await reportSms({ phone: copies[1] as string }, await sendSms(made, 2), 'sms-failed')
      const { copy, lease } = await takeSmsOf(made, 3)
      const refused: SmsResult = { messageId: made.messageId, copy, lease, parts: [], is: 'failed', reason: 'REJECTED', detail: '' }
      await recordSmsResults(pool, SMS_CARRIER, [refused])
      assert.deepEqual(await counted(made.sender), once)
    })
  })
}
