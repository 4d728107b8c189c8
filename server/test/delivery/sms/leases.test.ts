import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, test } from 'node:test'
import { Registry } from 'prom-client'
import { createDeliveryMetrics } from '../../../src/delivery/metrics.ts'
import type { SmsEntry } from '../../../src/delivery/sms/claim.ts'
import { createSubmitter } from '../../../src/delivery/sms/submit.ts'
import { LATEST_BEGIN_MS } from '../../../src/delivery/worker.ts'
import { recordOptOut } from '../../../src/replies/opt-outs.ts'
import { createTestDatabase } from '../../support/database.ts'
import { joinGroup } from '../../support/groups.ts'
import { createReceiver, createSender, receipt } from '../support.ts'
import { logger } from '../worker.ts'
import { expiredMessage, LONG_TEXT, nextPhone, passTime, refusedMessage } from './support.ts'
import { claimDueSms, claimSmsOf, createSmsCarrier, PUBLIC_URL, recordSent, recordSms } from './worker.ts'

const { hotPool: pool } = await createTestDatabase({ uncounted: 'messages get a campaign by hand' })
const sender = await createSender(pool)

beforeEach(async () => {
  await pool.query('delete from sms_queue')
})

describe('a worker that was suspended', () => {
  const carrier = createSmsCarrier()
  const links = { key: Buffer.alloc(32), publicUrl: PUBLIC_URL }
  const metrics = createDeliveryMetrics(new Registry())
  const submit = createSubmitter({ pool, carrier, links, metrics, logger, stopping: new AbortController().signal })

  test('after it claimed an SMS releases it without a submit', async () => {
    const entry = await claimSmsOf(pool, await refusedMessage(pool, sender))
    const now = performance.now()
    assert.deepEqual(await submit(entry, now - LATEST_BEGIN_MS - 1, now + 60_000), { is: 'not-tried', afterMs: 0, submittedSegments: [] })
    assert.equal(carrier.seen.length, 0)
  })

  test('between two segments submits no segment that could outlast its lease, and reports the segments that the network has', async () => {
    const entry = await claimSmsOf(pool, await refusedMessage(pool, sender, { content: LONG_TEXT }))
    const now = performance.now()
    const { submittedSegments, ...result } = await submit(entry, now, now + carrier.longestCallMs - 1)
    assert.deepEqual(
      [result, submittedSegments.map(({ segment }) => segment), carrier.seen.length],
      [{ is: 'not-tried', afterMs: 0 }, [1], 1],
    )
  })
})

for (const [delay, isDue] of [
  [0, true],
  [3_600, false],
] as const) {
  test(`a revocation that the network reports makes the SMS due ${isDue ? 'at once' : 'no earlier'} with a delay of ${delay} s`, async () => {
    const phone = nextPhone()
    const messageId = await expiredMessage(pool, sender, { recipients: [phone], afterExpiry: { delay } })
    assert.deepEqual(await claimDueSms(pool), [], 'it waits for the revocation')
    await createReceiver(pool)([receipt({ messageId, phone, kind: 'expired' })])
    const { rows } = await pool.query('select due_at <= greatest(planned_at, now()) as "isPlanned" from sms_queue where message_id = $1', [
      messageId,
    ])
    assert.deepEqual([rows, (await claimDueSms(pool)).length], [[{ isPlanned: true }], isDue ? 1 : 0])
  })
}

test('a segment of an SMS counts for the quarantine, and can be replied to', async () => {
  const phone = nextPhone()
  const messageId = await refusedMessage(pool, sender, { recipients: [phone], content: LONG_TEXT })
  await recordSms(pool, await claimSmsOf(pool, messageId), { is: 'failed', reason: 'REJECTED', detail: '' }, [randomUUID()])
  const { rows } = await pool.query('select message_id, is_copy from sms_contacts where recipient = $1', [phone])
  assert.deepEqual(rows, [{ message_id: messageId, is_copy: false }])
})

describe('the next claim after a failed one, which the database may have committed,', () => {
  test('returns its SMS: none of them was submitted', async () => {
    const messageId = await refusedMessage(pool, sender)
    const { lease, attempts } = await claimSmsOf(pool, messageId)
    assert.deepEqual(await claimDueSms(pool), [], 'it is leased')
    const again = (await claimDueSms(pool, { abandoned: [lease] })).find((entry) => entry.messageId === messageId)
    assert.deepEqual([again?.decision, again?.attempts], ['go', attempts])
  })

  test('does not return an SMS that another worker may have submitted before', async () => {
    const messageId = await refusedMessage(pool, sender)
    await claimSmsOf(pool, messageId)
    await passTime(pool)
    const { lease, decision } = await claimSmsOf(pool, messageId)
    assert.equal(decision, 'lost')
    assert.deepEqual(await claimDueSms(pool, { abandoned: [lease] }), [])
    await passTime(pool)
    assert.equal((await claimSmsOf(pool, messageId)).decision, 'lost')
  })
})

test('a copy goes to every test number that has not opted out, whatever its groups say, and its recipient can opt out', async () => {
  const [out, other] = [nextPhone(), nextPhone()]
  const { accountId, agentId } = sender
  await recordOptOut(pool, { accountId, agentId, phone: out, optedOut: true, source: 'operator' })
  await joinGroup(pool, accountId, other, { controlGroup: true, active: false })
  const planParams = { testNumbers: [out, other], useTestNumbers: true, controlGroup: true }
  const messageId = await refusedMessage(pool, sender, { planParams })
  await recordSent(pool, await claimSmsOf(pool, messageId), ['1'])
  const copies = (await claimDueSms(pool)).filter((entry) => entry.messageId === messageId)
  const decisions = Object.fromEntries(copies.map(({ recipient, decision }) => [recipient, decision]))
  assert.deepEqual(decisions, { [out]: 'OPTED_OUT', [other]: 'go' })
  await recordSent(pool, copies.find(({ decision }) => decision === 'go') as SmsEntry, ['2'])
  const { rows } = await pool.query('select recipient, is_copy from sms_contacts where message_id = $1 and is_copy', [messageId])
  assert.deepEqual(rows, [{ recipient: other, is_copy: true }])
})

test('a test number gets one copy of a campaign, and none once the campaign is cancelled', async () => {
  const [number, campaignId] = [nextPhone(), randomUUID()]
  for (let message = 0; message < 3; message += 1) {
    const messageId = await refusedMessage(pool, sender, { planParams: { testNumbers: [number], useTestNumbers: true } })
    await pool.query('update messages set campaign_id = $2 where id = $1', [messageId, campaignId])
    await recordSent(pool, await claimSmsOf(pool, messageId), ['1'])
  }
  const { rows } = await pool.query('select recipient, campaign_id from sms_queue where copy > 0')
  assert.deepEqual(rows, [{ recipient: number, campaign_id: campaignId }])
  await pool.query(
    `insert into campaigns (id, account_id, agent_id, name, group_numbers, basic, content_id, status, scheduled_at, cancelled_at)
     values ($1, $2, $3, 'X', '{}', false, 1, 'CANCELLED', now(), now())`,
    [campaignId, sender.accountId, sender.agentId],
  )
  await pool.query('update sms_queue set lease = null, submitted_under = null, due_at = now()')
  const copies = await claimDueSms(pool)
  assert.deepEqual([copies.length, copies[0]?.decision], [1, 'CANCELLED'])
})
