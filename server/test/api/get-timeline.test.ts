import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { SkipReason } from '../../src/delivery/failures.ts'
import { recordOptOut } from '../../src/replies/opt-outs.ts'
import { addEndpoint } from '../../src/webhooks/endpoints.ts'
import { acceptMessages, expiredMessage, LONG_TEXT, nextPhone, refusedMessage } from '../delivery/sms/support.ts'
import { claimSmsOf, recordSent, recordSms } from '../delivery/sms/worker.ts'
import { createReceiver, receipt } from '../delivery/support.ts'
import { claimNow, makeDue, record } from '../delivery/worker.ts'
import { createTestDatabase } from '../support/database.ts'
import { joinGroup } from '../support/groups.ts'
import { keyring } from '../support/keyring.ts'
import { routeUntilDone } from '../support/log.ts'
import { type MessageCaller, newKey, startMessageService } from '../support/messages.ts'
import { assertError } from '../support/service.ts'
import { until } from '../support/until.ts'
import { isDone, startSink, startWorker } from '../webhooks/support.ts'

const database = await createTestDatabase({ uncounted: 'messages get their fallbacks by hand' })
const { hotPool: pool } = database
const { newCaller } = await startMessageService(database)
const receive = createReceiver(pool)

type Item = { occurredAt: string; step: string; reason: string | null; description: string; data: any }

async function timelineOf({ ask }: MessageCaller, messageId: string): Promise<Item[]> {
  const { status, body } = await ask('GET', `/messages/${messageId}/timeline`)
  assert.deepEqual([status, body.messageId, Object.keys(body)], [200, messageId, ['messageId', 'items']])
  const times = body.items.map(({ occurredAt }: Item) => occurredAt)
  assert.deepEqual(times, times.toSorted())
  return body.items
}

const stepsOf = (items: Item[]) => items.map(({ step }) => step)
const find = (items: Item[], step: string) => items.find((item) => item.step === step) as Item

/** Claims a message, together with everything else that is due. */
async function claimOf(messageId: string) {
  const { entries } = await claimNow(pool, { free: 1_000 })
  return entries.find((entry) => entry.messageId === messageId) as (typeof entries)[number]
}

describe('GET /messages/{messageId}/timeline', () => {
  test('shows every step of a message with the network’s response', async () => {
    const caller = await newCaller()
    const messageId = await caller.accepted()
    await record(pool, await claimOf(messageId), { is: 'retry', afterMs: 0, detail: '503 UNAVAILABLE Try later.' })
    await makeDue(pool, [messageId])
    await record(pool, await claimOf(messageId), { is: 'sent' })
    await receive([receipt({ messageId, kind: 'delivered' })])
    await receive([receipt({ messageId, kind: 'read' })])
    const { acceptedAt, sentAt, deliveredAt, readAt } = (await caller.read(messageId)).body
    const [accepted, failed, ...others] = await timelineOf(caller, messageId)
    const plain = { reason: null, data: {} }
    assert.deepEqual(accepted, { occurredAt: acceptedAt, step: 'accepted', description: 'Herald stored the message.', ...plain })
    assert.deepEqual([failed?.step, failed?.data], ['attempt-failed', { attempt: 1, response: '503 UNAVAILABLE Try later.' }])
    assert.deepEqual(others, [
      { occurredAt: sentAt, step: 'sent', description: 'The network accepted the message.', ...plain },
      { occurredAt: deliveredAt, step: 'delivered', description: 'The phone received the message.', ...plain },
      { occurredAt: readAt, step: 'read', description: 'The recipient read the message.', ...plain },
    ])
  })

  test('shows why an SMS was sent, with every rule, and its segments and encoding', async () => {
    const caller = await newCaller()
    const messageId = await refusedMessage(pool, caller, { content: LONG_TEXT })
    await recordSms(pool, await claimSmsOf(pool, messageId), { is: 'retry', afterMs: 0, detail: 'ESME_RTHROTTLED' })
    await recordSent(pool, await claimSmsOf(pool, messageId), ['1', '2', '3'])
    const items = await timelineOf(caller, messageId)
    const sms = { segments: 3, encoding: 'GSM7', sender: 'MyShop' }
    assert.deepEqual(stepsOf(items), [
      ...['accepted', 'failed', 'sms-scheduled', 'sms-checked', 'sms-attempt-failed', 'sms-checked', 'sms-sent'],
    ])
    assert.equal(find(items, 'failed').reason, 'NOT_REACHABLE')
    assert.deepEqual(find(items, 'failed').data, { response: '404' })
    const { dueAt, ...scheduled } = find(items, 'sms-scheduled').data
    assert.deepEqual([scheduled, find(items, 'sms-scheduled').reason], [sms, 'RCS_FAILED'])
    const { description, data } = find(items, 'sms-checked')
    assert.equal(description, 'Every rule for the SMS passed.')
    assert.deepEqual(data.rules, [
      { rule: 'window', result: 'passed', dueAt: data.rules[0].dueAt },
      { rule: 'block', result: 'passed' },
      { rule: 'optOut', result: 'passed' },
      { rule: 'campaign', result: 'not-required' },
      { rule: 'controlGroup', result: 'not-required' },
      { rule: 'status', result: 'passed' },
      { rule: 'consents', result: 'not-required', required: [], given: [] },
      { rule: 'quarantine', result: 'not-required', hours: 24 },
    ])
    assert.equal(data.rules[0].dueAt, dueAt)
    assert.deepEqual(find(items, 'sms-attempt-failed').data, { response: 'ESME_RTHROTTLED' })
    assert.deepEqual(find(items, 'sms-sent').data, sms)
  })

  const SKIPPED: [
    reason: SkipReason,
    rule: string,
    planParams: object,
    before: (caller: MessageCaller, phone: string) => Promise<unknown>,
  ][] = [
    [
      'BLOCKED',
      'block',
      {},
      ({ accountId, agentId }, phone) => recordOptOut(pool, { accountId, agentId, phone, optedOut: true, block: true, source: 'api' }),
    ],
    [
      'OPTED_OUT',
      'optOut',
      {},
      ({ accountId, agentId }, phone) => recordOptOut(pool, { accountId, agentId, phone, optedOut: true, source: 'operator' }),
    ],
    [
      'CONTROL_GROUP',
      'controlGroup',
      { controlGroup: true },
      ({ accountId }, phone) => joinGroup(pool, accountId, phone, { controlGroup: true }),
    ],
    ['INACTIVE', 'status', {}, ({ accountId }, phone) => joinGroup(pool, accountId, phone, { active: false })],
    ['CONSENT', 'consents', { consentIDS: [7, 9] }, ({ accountId }, phone) => joinGroup(pool, accountId, phone, { consents: [9] })],
    [
      'QUARANTINE',
      'quarantine',
      { quarantine: true },
      async (caller, phone) => {
        const messageId = await refusedMessage(pool, caller, { recipients: [phone] })
        await recordSent(pool, await claimSmsOf(pool, messageId), [newKey()])
      },
    ],
  ]
  for (const [reason, rule, planParams, before] of SKIPPED) {
    test(`shows that the rule ${rule} held the SMS back, and the results of all other rules`, async () => {
      const caller = await newCaller()
      const phone = nextPhone()
      await before(caller, phone)
      const messageId = await refusedMessage(pool, caller, { recipients: [phone], planParams: planParams as Record<string, unknown> })
      const entry = await claimSmsOf(pool, messageId)
      assert.ok(entry.decision === reason && (await recordSms(pool, entry, { is: 'skipped', reason })))
      const items = await timelineOf(caller, messageId)
      assert.deepEqual(stepsOf(items).slice(-2), ['sms-checked', 'sms-skipped'])
      const { rules } = find(items, 'sms-checked').data
      assert.deepEqual([find(items, 'sms-checked').reason, find(items, 'sms-skipped').reason, rules.length], [reason, reason, 8])
      const failed = rules.filter(({ result }: { result: string }) => result === 'failed')
      assert.deepEqual(
        failed.map((one: { rule: string }) => one.rule),
        // A blocked recipient is opted out, too.
        rule === 'block' ? ['block', 'optOut'] : [rule],
      )
      if (rule === 'consents') assert.deepEqual([failed[0].required, failed[0].given], [[7, 9], [9]])
      if (rule === 'quarantine') assert.ok(failed[0].hours === 24 && Date.parse(failed[0].lastSmsAt) > 0)
    })
  }

  test('shows that the SMS is not needed, and since when', async () => {
    const caller = await newCaller()
    const [messageId = ''] = await acceptMessages(pool, caller)
    await record(pool, await claimOf(messageId), { is: 'sent' })
    const { rows } = await pool.query<{ phone: string }>('select recipient as phone from messages where id = $1', [messageId])
    await receive([receipt({ messageId, phone: rows[0]?.phone as string })])
    const items = await timelineOf(caller, messageId)
    assert.deepEqual(stepsOf(items), ['accepted', 'sent', 'delivered', 'sms-not-needed'])
    assert.deepEqual([items[3]?.reason, items[3]?.occurredAt], ['RCS_DELIVERED', items[2]?.occurredAt])
  })

  test('shows that a delivery before the expiry was reported after it', async () => {
    const caller = await newCaller()
    const phone = nextPhone()
    const messageId = await expiredMessage(pool, caller, { recipients: [phone] })
    await receive([receipt({ messageId, phone, agoMs: 3_600_000 })])
    const late = find(await timelineOf(caller, messageId), 'delivered-late')
    const { expiresAt, status } = (await caller.read(messageId)).body
    assert.equal(status, 'EXPIRED')
    assert.ok(late.occurredAt < expiresAt && late.data.reportedAt >= expiresAt)
    assert.match(late.description, /before the message expired, but the network reported it afterwards/)
  })

  test('says of a failed message with a late receipt that its status stays, and since when the SMS is not needed', async () => {
    const caller = await newCaller()
    const phone = nextPhone()
    const messageId = await refusedMessage(pool, caller, { recipients: [phone] })
    await pool.query(`update messages set expires_at = now() - interval '1 second' where id = $1`, [messageId])
    await receive([receipt({ messageId, phone, agoMs: 3_600_000 })])
    const { status, smsFallback } = (await caller.read(messageId)).body
    assert.deepEqual([status, smsFallback.status], ['FAILED', 'NOT_NEEDED'])
    const items = await timelineOf(caller, messageId)
    const [late, needless] = [find(items, 'delivered-late'), find(items, 'sms-not-needed')]
    assert.equal(late.description, 'The network reported the delivery after the message had its final status, which stays.')
    assert.deepEqual([needless.reason, needless.occurredAt], ['RCS_DELIVERED', late.occurredAt])
  })

  test('shows the calls of webhook endpoints for its events', async (t) => {
    const caller = await newCaller()
    const sink = await startSink()
    const { endpointId } = await addEndpoint(pool, { accountId: caller.accountId, url: sink.url }, keyring)
    const messageId = await caller.accepted()
    await record(pool, await claimOf(messageId), { is: 'sent' })
    await routeUntilDone(pool)
    startWorker(t, database.url)
    await until('its event is posted', () => isDone(pool, endpointId))
    const items = await timelineOf(caller, messageId)
    const { description, data } = find(items, 'webhook-attempt')
    const { eventId, durationMs, ...others } = data
    assert.equal(description, `Endpoint ${endpointId} was called for message.sent: status 204.`)
    assert.deepEqual(others, { type: 'message.sent', endpointId, attempt: 1, status: 204 })
    assert.deepEqual([eventId, typeof durationMs], [sink.arrived[0]?.event.eventId, 'number'])
  })

  test('responds 404 to an unknown message and to that of another account', async () => {
    const [caller, other] = [await newCaller(), await newCaller()]
    for (const id of [await other.accepted(), newKey(), 'x']) {
      assertError(await caller.ask('GET', `/messages/${id}/timeline`), 404, 'RCS_MESSAGE_NOT_FOUND')
    }
  })
})
