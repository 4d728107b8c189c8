import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, test } from 'node:test'
import { Registry } from 'prom-client'
import { expireDue } from '../../../src/delivery/expiry.ts'
import { createDeliveryMetrics } from '../../../src/delivery/metrics.ts'
import { ensurePace } from '../../../src/delivery/rate.ts'
import { recordResults } from '../../../src/delivery/results.ts'
import type { SmsEntry } from '../../../src/delivery/sms/claim.ts'
import { recordSmsResults } from '../../../src/delivery/sms/results.ts'
import { createSubmitter } from '../../../src/delivery/sms/submit.ts'
import { LATEST_BEGIN_MS } from '../../../src/delivery/worker.ts'
import { recordOptOut } from '../../../src/replies/opt-outs.ts'
import { createTestDatabase } from '../../support/database.ts'
import { CARRIER, createReceiver, createSender, logger, receipt } from '../support.ts'
import {
  acceptMessages,
  claimMessages,
  createSmsCarrier,
  LONG_TEXT,
  nextPhone,
  passTime,
  recordSent,
  refusedMessage,
  SMS_CARRIER,
  takeOne,
  takeSms,
} from './support.ts'

const { hotPool: pool } = await createTestDatabase({ uncounted: 'messages get a campaign by hand' })
await ensurePace(pool, CARRIER)
await ensurePace(pool, SMS_CARRIER)
const sender = await createSender(pool)
const take = createReceiver(pool)

beforeEach(async () => {
  await pool.query('delete from sms_queue')
})

describe('a worker that stood still', () => {
  function submitterOf(onSubmit?: () => void) {
    const carrier = createSmsCarrier({
      onSubmit: () => {
        onSubmit?.()
        return { is: 'sent', carrierMessageId: randomUUID() }
      },
    })
    const links = { key: Buffer.alloc(32), publicUrl: 'http://127.0.0.1' }
    const metrics = createDeliveryMetrics(new Registry())
    return { carrier, submit: createSubmitter({ pool, carrier, links, metrics, logger, stopping: new AbortController().signal }) }
  }

  test('longer than a moment since it claimed an SMS submits none of it, and gives it back', async () => {
    const { carrier, submit } = submitterOf()
    const entry = await takeOne(pool, await refusedMessage(pool, sender))
    const now = performance.now()
    assert.deepEqual(await submit(entry, now - LATEST_BEGIN_MS - 1, now + 60_000), { is: 'not-tried', afterMs: 0, parts: [] })
    assert.equal(carrier.seen.length, 0)
  })

  test('between two parts begins none that could outlast its lease; what the network has is remembered', async () => {
    const { carrier, submit } = submitterOf()
    const entry = await takeOne(pool, await refusedMessage(pool, sender, { content: LONG_TEXT }))
    const now = performance.now()
    const { parts, ...verdict } = await submit(entry, now, now + carrier.longestCallMs - 1)
    assert.deepEqual([verdict, parts.map(({ part }) => part), carrier.seen.length], [{ is: 'not-tried', afterMs: 0 }, [1], 1])
  })
})

test('the network’s word that a message is revoked sends no SMS before its time', async () => {
  const phone = nextPhone()
  const [messageId] = (await acceptMessages(pool, sender, { recipients: [phone], afterExpiry: { delay: 3_600 } })) as [string]
  const { lease } = (await claimMessages(pool)).find((entry) => entry.messageId === messageId) as { lease: string }
  await recordResults(pool, [{ messageId, lease, is: 'sent' }])
  await pool.query(`update messages set expires_at = now() - interval '1 second' where id = $1`, [messageId])
  await pool.query(`update expiries set expires_at = now() - interval '1 second' where message_id = $1`, [messageId])
  await expireDue(pool)
  await take([receipt({ messageId, phone, kind: 'expired' })])
  assert.deepEqual(await takeSms(pool), [])
  const { rows } = await pool.query('select due_at = planned_at as "isPlanned" from sms_queue where message_id = $1', [messageId])
  assert.deepEqual(rows, [{ isPlanned: true }])
})

test('who had the beginning of an SMS has had one: it counts for the quarantine, and they can answer it', async () => {
  const phone = nextPhone()
  const { messageId, copy, lease } = await takeOne(pool, await refusedMessage(pool, sender, { recipients: [phone], content: LONG_TEXT }))
  const parts = [{ part: 1, carrierMessageId: randomUUID() }]
  await recordSmsResults(pool, SMS_CARRIER, [{ messageId, copy, lease, parts, is: 'failed', reason: 'REJECTED', detail: '' }])
  const { rows } = await pool.query('select message_id, is_copy from sms_contacts where recipient = $1', [phone])
  assert.deepEqual(rows, [{ message_id: messageId, is_copy: false }])
})

describe('a claim that failed, though the database may have committed it,', () => {
  test('gives back what it took: nothing of it was submitted', async () => {
    const messageId = await refusedMessage(pool, sender)
    const { lease, attempts } = await takeOne(pool, messageId)
    assert.deepEqual(await takeSms(pool), [], 'it is held')
    const again = (await takeSms(pool, { abandoned: [lease] })).find((entry) => entry.messageId === messageId)
    assert.deepEqual([again?.judgement, again?.attempts], ['go', attempts])
  })

  test('does not free what another had been submitting before: that is lost', async () => {
    const messageId = await refusedMessage(pool, sender)
    await takeOne(pool, messageId)
    await passTime(pool)
    const { lease, judgement } = await takeOne(pool, messageId)
    assert.equal(judgement, 'lost')
    await takeSms(pool, { abandoned: [lease] })
    await passTime(pool)
    assert.equal((await takeOne(pool, messageId)).judgement, 'lost')
  })
})

test('a copy goes to no test number that has opted out, and who has one can opt out', async () => {
  const [out, other] = [nextPhone(), nextPhone()]
  const { accountId, agentId } = sender
  await recordOptOut(pool, { accountId, agentId, phone: out, optedOut: true, source: 'operator' })
  const messageId = await refusedMessage(pool, sender, { planParams: { testNumbers: [out, other], useTestNumbers: true } })
  await recordSent(pool, await takeOne(pool, messageId), ['1'])
  const copies = (await takeSms(pool)).filter((entry) => entry.messageId === messageId)
  assert.deepEqual(
    new Map(copies.map(({ recipient, judgement }) => [recipient, judgement])),
    new Map([
      [out, 'OPTED_OUT'],
      [other, 'go'],
    ]),
  )
  await recordSent(pool, copies.find(({ judgement }) => judgement === 'go') as SmsEntry, ['2'])
  const { rows } = await pool.query('select recipient, is_copy from sms_contacts where message_id = $1 and is_copy', [messageId])
  assert.deepEqual(rows, [{ recipient: other, is_copy: true }])
})

test('of a campaign a test number gets one copy, however many of its messages fall back, and none once it is cancelled', async () => {
  const [number = '', campaignId = ''] = [nextPhone(), randomUUID()]
  const planParams = { testNumbers: [number], useTestNumbers: true }
  for (let message = 0; message < 3; message += 1) {
    const messageId = await refusedMessage(pool, sender, { planParams })
    await pool.query('update messages set campaign_id = $2 where id = $1', [messageId, campaignId])
    await recordSent(pool, await takeOne(pool, messageId), ['1'])
  }
  const { rows } = await pool.query('select recipient, campaign_id from sms_queue where copy > 0')
  assert.deepEqual(rows, [{ recipient: number, campaign_id: campaignId }])
  await pool.query(
    `insert into campaigns (id, account_id, agent_id, name, group_numbers, basic, content_id, status, scheduled_at, cancelled_at)
     values ($1, $2, $3, 'X', '{}', false, 1, 'CANCELLED', now(), now())`,
    [campaignId, sender.accountId, sender.agentId],
  )
  await pool.query('update sms_queue set lease = null, submitted_under = null, due_at = now()')
  assert.deepEqual(
    (await takeSms(pool)).map(({ judgement }) => judgement),
    ['CANCELLED'],
  )
})
