import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { failInactive } from '../../src/delivery/fail.ts'
import { createAcceptor, type Submission } from '../../src/messages/accept.ts'
import { claimNow, createCarrier, record, sent, startWorker } from '../delivery/worker.ts'
import { createTestDatabase } from '../support/database.ts'
import { countRows, type MessageCaller, NOTHING, newKey, smsFallback, startMessageService } from '../support/messages.ts'
import { assertError, type ErrorDetails } from '../support/service.ts'
import { TEXT } from '../support/templates.ts'
import { until } from '../support/until.ts'

const database = await createTestDatabase()
const { hotPool: pool, url } = database
const { newCaller } = await startMessageService(database)

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()

/** Claims what is due of this caller. */
async function claimOf({ agentId }: MessageCaller) {
  return (await claimNow(pool)).entries.filter((entry) => entry.agentId === agentId)
}

/** Moves the time of a scheduled message to now, as if it had come. */
async function makeItsTime(messageId: string): Promise<void> {
  await pool.query('update messages set scheduled_at = now() where id = $1', [messageId])
  await pool.query('update queue set due_at = now() where message_id = $1', [messageId])
}

describe('a message with sendAt', () => {
  test('is ACCEPTED and waits until then, and expires 48 hours after it', async () => {
    const caller = await newCaller()
    const sendAt = inMs(10 * DAY_MS)
    const messageId = await caller.accepted({ sendAt })
    const { body } = await caller.read(messageId)
    const expiresAt = new Date(Date.parse(sendAt) + 48 * HOUR_MS).toISOString()
    assert.deepEqual([body.status, body.scheduledAt, body.expiresAt], ['ACCEPTED', sendAt, expiresAt])
    assert.deepEqual(await claimOf(caller), [])
    const { rows } = await pool.query(
      'select q.due_at, q.expires_at, e.expires_at as own from queue q join expiries e using (message_id) where message_id = $1',
      [messageId],
    )
    assert.deepEqual(rows, [{ due_at: new Date(sendAt), expires_at: new Date(expiresAt), own: new Date(expiresAt) }])
    await makeItsTime(messageId)
    const [entry] = await claimOf(caller)
    assert.equal(entry?.messageId, messageId)
    assert.equal((await caller.read(messageId)).body.status, 'SENDING')
    assert.equal(entry !== undefined && (await record(pool, entry, { is: 'sent' })), true)
  })

  test('shows its time in the list, the timeline and the export', async () => {
    const caller = await newCaller()
    const sendAt = inMs(HOUR_MS)
    const messageId = await caller.accepted({ sendAt })
    const [listed] = (await caller.ask('GET', '/messages')).body.items
    assert.equal(listed.scheduledAt, sendAt)
    const [accepted] = (await caller.ask('GET', `/messages/${messageId}/timeline`)).body.items
    assert.deepEqual([accepted.step, accepted.data], ['accepted', { scheduledAt: sendAt }])
    const { body: csv } = await caller.ask('GET', '/messages/export')
    const [names, values] = (csv as string).split('\r\n').map((line) => line.split(','))
    assert.equal(values?.[names?.indexOf('scheduledAt') ?? -1], sendAt)
  })

  test('expires at its own expiresAt, up to 15 days after sendAt', async () => {
    const caller = await newCaller()
    const [sendAt, expiresAt] = [inMs(15 * DAY_MS - MINUTE_MS), inMs(30 * DAY_MS - 2 * MINUTE_MS)]
    const { body } = await caller.read(await caller.accepted({ sendAt, expiresAt }))
    assert.deepEqual([body.scheduledAt, body.expiresAt], [sendAt, expiresAt])
  })

  test('leaves by a worker right after that time, and not before it', async (t) => {
    const caller = await newCaller()
    const carrier = createCarrier({ onSend: sent })
    startWorker(t, url, carrier)
    const messageIds = await Promise.all([1_500, 2_000].map((ms) => caller.accepted({ sendAt: inMs(ms) })))
    await until('both are sent', () => messageIds.every((id) => carrier.seen.some(({ messageId }) => messageId === id)))
    await until('their results are stored', async () => {
      const { rows } = await pool.query<{ lateMs: number }>(
        `select (extract(epoch from sent_at - scheduled_at) * 1000)::float8 as "lateMs" from messages where id = any ($1) and sent_at is not null`,
        [messageIds],
      )
      for (const { lateMs } of rows) {
        assert.ok(lateMs >= 0, `${lateMs} ms after its time`)
        t.diagnostic(`sent ${Math.round(lateMs)} ms after its time`)
      }
      return rows.length === 2
    })
  })

  test('is not sent at once by the process that accepts it', async () => {
    const { accountId, agentId } = await newCaller()
    let reservations = 0
    const accept = createAcceptor(
      pool,
      () => {},
      () => {
        reservations += 1
        return undefined
      },
    )
    const message = { inline: TEXT } as Submission['message']
    const submission = { accountId, agentId, recipients: ['+48500100200'], test: false, message }
    const idempotency = () => ({ key: randomUUID(), hash: Buffer.alloc(32) })
    await accept({ ...submission, sendAt: inMs(HOUR_MS), idempotency: idempotency() })
    assert.equal(reservations, 0)
    await accept({ ...submission, idempotency: idempotency() })
    assert.equal(reservations, 1)
  })

  test('is sent at once if the time is up to a minute ago', async () => {
    const caller = await newCaller()
    const messageId = await caller.accepted({ sendAt: inMs(-30_000) })
    assert.deepEqual(
      (await claimOf(caller)).map((entry) => entry.messageId),
      [messageId],
    )
  })

  test('can be cancelled until it is sent, and its SMS is skipped', async () => {
    const caller = await newCaller()
    const messageId = await caller.accepted({ sendAt: inMs(HOUR_MS), smsFallback: smsFallback() })
    const { status, body } = await caller.ask('POST', `/messages/${messageId}/cancel`)
    assert.deepEqual([status, body.failure?.reason, body.smsFallback.status], [200, 'CANCELLED', 'SKIPPED'])
    await makeItsTime(messageId)
    assert.deepEqual(await claimOf(caller), [])
  })

  test('sends no SMS before that time, even if it fails earlier', async () => {
    const caller = await newCaller()
    const sendAt = inMs(HOUR_MS)
    const messageId = await caller.accepted({ sendAt, smsFallback: smsFallback({ delay: 60 }) })
    await caller.ask('PATCH', `/agents/${caller.agentId}`, { active: false })
    await failInactive(pool)
    const { body } = await caller.read(messageId)
    assert.deepEqual(
      [body.failure?.reason, body.smsFallback],
      ['AGENT_INACTIVE', { status: 'SCHEDULED', reason: 'RCS_FAILED', dueAt: sendAt, segments: 1 }],
    )
  })

  test('is the same message for a retry with the same key, and a conflict with another time', async () => {
    const caller = await newCaller()
    const key = newKey()
    const body = caller.request({ sendAt: inMs(HOUR_MS) })
    const first = await caller.send(key, body)
    const second = await caller.send(key, body)
    assert.deepEqual([second.status, second.body, second.headers.get('idempotent-replayed')], [202, first.body, 'true'])
    assert.equal((await caller.send(key, { ...body, sendAt: inMs(2 * HOUR_MS) })).status, 409)
  })
})

describe('POST /messages rejects', () => {
  const later = (ms: number) => ({ sendAt: inMs(HOUR_MS), expiresAt: inMs(HOUR_MS + ms) })
  const zoned = 'must be a time with its zone, such as 2026-01-31T08:00:00Z or 2026-01-31T09:00:00+01:00'
  const sms = '/smsFallback/planParams/sendTime'
  const invalid: [what: string, fields: object, code: string, details: ErrorDetails][] = [
    ['a sendAt without a zone', { sendAt: '2027-01-31T08:00:00' }, 'RCS_INVALID_REQUEST', [['/sendAt', zoned]]],
    [
      'a sendAt in the past',
      { sendAt: inMs(-10 * MINUTE_MS) },
      'RCS_INVALID_REQUEST',
      [['/sendAt', 'must not be more than a minute in the past']],
    ],
    [
      'a sendAt after 15 days',
      { sendAt: inMs(15 * DAY_MS + HOUR_MS) },
      'RCS_INVALID_REQUEST',
      [['/sendAt', 'must be at most 15 days ahead']],
    ],
    ['a sendAt in a far year', { sendAt: '9999-12-31T23:59:59Z' }, 'RCS_INVALID_REQUEST', [['/sendAt', 'must be at most 15 days ahead']]],
    ['an expiresAt before sendAt', later(-1_000), 'RCS_INVALID_REQUEST', [['/expiresAt', 'must be later than sendAt']]],
    [
      'an expiresAt at sendAt',
      { sendAt: '2027-01-31T08:00:00Z', expiresAt: '2027-01-31T09:00:00+01:00' },
      'RCS_INVALID_REQUEST',
      [['/expiresAt', 'must be later than sendAt']],
    ],
    [
      'an expiresAt 15 days after sendAt',
      later(15 * DAY_MS + 1_000),
      'RCS_INVALID_REQUEST',
      [['/expiresAt', 'must be at most 15 days after sendAt']],
    ],
    [
      'an SMS before sendAt',
      { sendAt: inMs(HOUR_MS), smsFallback: smsFallback({ sendTime: inMs(MINUTE_MS) }) },
      'RCS_INVALID_SMS_FALLBACK',
      [[sms, 'must be later than sendAt']],
    ],
  ]
  for (const [what, fields, code, details] of invalid) {
    test(what, async () => {
      const { accountId, request, send } = await newCaller()
      assertError(await send(newKey(), request(fields as Record<string, unknown>)), 400, code, details)
      assert.deepEqual(await countRows(pool, accountId), NOTHING)
    })
  }

  test('sendAt in a test message and in a campaign', async () => {
    const { sendTest, request, ask } = await newCaller()
    const { recipient, ...body } = request({ sendAt: inMs(HOUR_MS) })
    const unknown: ErrorDetails = [['/sendAt', 'is not known here; is it misspelt?']]
    assertError(await sendTest({ ...body, recipients: [recipient] }), 400, 'RCS_INVALID_REQUEST', unknown)
    const campaign = { ...body, name: 'Sale', segmentIds: [1] }
    assertError(await ask('POST', '/campaigns', campaign, { 'Idempotency-Key': newKey() }), 400, 'RCS_INVALID_REQUEST', unknown)
  })
})
