import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { Registry } from 'prom-client'
import { createDeliveryMetrics } from '../../src/delivery/metrics.ts'
import { createSubmitter } from '../../src/delivery/sms/submit.ts'
import { countQueued, readSms, refusedMessage } from '../delivery/sms/support.ts'
import { claimDueSms, createSmsCarrier, recordSms, startSmsWorker } from '../delivery/sms/worker.ts'
import { createSender, type Sender } from '../delivery/support.ts'
import { logger } from '../delivery/worker.ts'
import { createTestDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { closedWindow, openingOf, openWindow } from './support.ts'

const { url, hotPool: pool } = await createTestDatabase({ uncounted: 'messages are removed by hand' })
const HOUR_MS = 3_600_000
let sender: Sender

beforeEach(async () => {
  await pool.query('delete from sms_queue')
  sender = await createSender(pool)
})

const textOf = ({ from, to }: { from: string; to: string }, days = '1234567') => `${from}-${to} ${days} UTC`

/** A message whose RCS failed, so that its SMS is due, with this window. */
async function refusedWithin(window: string, planParams = {}): Promise<string> {
  const messageId = await refusedMessage(pool, sender, { planParams })
  await pool.query('update messages set delivery_window = $2 where id = $1', [messageId, window])
  return messageId
}

describe('the SMS of a message with a delivery window', () => {
  test('waits until the window opens, and callers see when', async () => {
    const window = closedWindow()
    const messageId = await refusedWithin(textOf(window))
    assert.deepEqual(await claimDueSms(pool), [])
    const { fallback, queue } = await readSms(pool, messageId)
    assert.deepEqual(
      [fallback.status, new Date(fallback.due_at), new Date(queue.due_at)],
      ['SCHEDULED', openingOf(window), openingOf(window)],
    )
    assert.deepEqual([queue.attempts, queue.lease, queue.submitted_under], [0, null, null])
  })

  test('goes out while the window is open', async () => {
    const messageId = await refusedWithin(textOf(openWindow()))
    const [entry] = await claimDueSms(pool)
    assert.deepEqual([entry?.messageId, entry?.decision], [messageId, 'go'])
  })

  test('is not late at an opening a week later, and lives for 48 hours from then on', async () => {
    const window = openWindow()
    const today = new Date().getUTCDay() === 0 ? 7 : new Date().getUTCDay()
    const yesterday = today === 1 ? 7 : today - 1
    const messageId = await refusedWithin(textOf({ from: window.to, to: '24:00' }, String(yesterday)))
    assert.deepEqual(await claimDueSms(pool), [])
    const { due_at: dueAt, expires_at: expiresAt } = (await readSms(pool, messageId)).queue
    assert.ok(Date.parse(dueAt) > Date.now() + 4 * 24 * HOUR_MS, dueAt)
    assert.equal(Date.parse(expiresAt), Date.parse(dueAt) + 48 * HOUR_MS)
  })

  test('gains no further time by a retry that falls outside the window', async () => {
    const messageId = await refusedWithin(textOf(openWindow()))
    const [entry] = await claimDueSms(pool)
    assert.ok(entry !== undefined && (await recordSms(pool, entry, { is: 'retry', afterMs: 0, detail: 'busy' })))
    const before = (await readSms(pool, messageId)).queue.expires_at
    await pool.query('update messages set delivery_window = $2 where id = $1', [messageId, textOf(closedWindow())])
    assert.deepEqual(await claimDueSms(pool), [])
    const { queue } = await readSms(pool, messageId)
    assert.deepEqual([queue.expires_at, queue.attempts], [before, 1])
    assert.ok(Date.parse(queue.due_at) > Date.now() + HOUR_MS)
  })

  test('is not submitted if the window closes between the claim and the call', async () => {
    const messageId = await refusedWithin(textOf(openWindow()))
    const [entry] = await claimDueSms(pool)
    assert.ok(entry?.messageId === messageId)
    const carrier = createSmsCarrier()
    const options = {
      pool,
      carrier,
      links: { key: Buffer.alloc(32), publicUrl: '' },
      metrics: createDeliveryMetrics(new Registry()),
      logger,
    }
    const submit = createSubmitter({ ...options, stopping: new AbortController().signal })
    const submitAt = (nowMs: number) => submit({ ...entry, nowMs }, performance.now(), performance.now() + HOUR_MS)
    assert.equal((await submitAt(entry.nowMs + 2 * HOUR_MS)).is, 'not-tried')
    assert.equal(carrier.seen.length, 0)
    assert.equal((await submitAt(entry.nowMs)).is, 'sent')
  })

  test('is skipped at once if a rule says so, also while the window is closed', async () => {
    const messageId = await refusedWithin(textOf(closedWindow()), { consentIDS: [7] })
    const [entry] = await claimDueSms(pool)
    assert.deepEqual([entry?.messageId, entry?.decision], [messageId, 'CONSENT'])
  })

  test('does not delay the SMS of other messages', async (t) => {
    for (let n = 0; n < 25; n += 1) await refusedWithin(textOf(closedWindow()))
    const open = await refusedMessage(pool, sender)
    const carrier = createSmsCarrier({ concurrency: 2 })
    startSmsWorker(t, url, carrier)
    await until('the other SMS is sent', async () => (await readSms(pool, open)).fallback.status === 'SENT')
    await until('all others are postponed', async () => {
      return (await pool.query('select from sms_queue where due_at <= now()')).rowCount === 0
    })
    assert.deepEqual([carrier.seen.length, await countQueued(pool)], [1, 25])
  })
})
