import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type PastAction, type PastMessage, reachedBy, writeCampaign } from './past.ts'
import { ascending, at, campaignOf, keysOf, pool } from './shared.ts'
import { phone } from './support.ts'

describe('recipients/{eventType}', () => {
  const actions = (['clicked', 'tapped', 'wrote', 'clicked', 'opted-out', 'opted-in', 'opted-out'] as const).map((kind, n) => ({
    kind,
    at: at(6 + n),
  }))
  const EVERYTHING: PastMessage[] = [
    { recipient: phone(3), acceptedAt: at(1), sentAt: at(2), deliveredAt: at(3), readAt: at(4), actions },
    { recipient: phone(1), acceptedAt: at(1), failedAt: at(2), reason: 'NOT_REACHABLE', sms: { sentAt: at(3), deliveredAt: at(5) } },
    {
      recipient: phone(4),
      acceptedAt: at(1),
      sentAt: at(2),
      failedAt: at(4),
      reason: 'REJECTED',
      sms: { sentAt: at(5), failedAt: at(6), reason: 'UNDELIVERABLE' },
    },
    { recipient: phone(2), acceptedAt: at(2), sentAt: at(3), expiredAt: at(9), sms: { skippedAt: at(9), reason: 'EXPIRED' } },
    { recipient: phone(5), acceptedAt: at(2), sentAt: at(3), deliveredAt: at(3), actions: [{ kind: 'shared-location', at: at(4) }] },
    { recipient: phone(6), acceptedAt: at(2), failedAt: at(2), reason: 'OPTED_OUT', sms: { failedAt: at(3), reason: 'REJECTED' } },
    { recipient: phone(0), acceptedAt: at(2), expiredAt: at(9), sms: { sentAt: at(10), deliveredAt: at(11) } },
  ]
  const TYPES: [eventType: string, recipients: number[]][] = [
    ['accepted', [3, 1, 4, 2, 5, 6, 0]],
    ['sent', [3, 4, 2, 5]],
    ['delivered', [3, 5]],
    ['read', [3]],
    ['failed', [1, 6, 4]],
    ['expired', [2, 0]],
    ['clicked', [3]],
    ['replied', [5, 3]],
    ['opted-out', [3]],
    ['sms-sent', [1, 4, 0]],
    ['sms-delivered', [1, 0]],
    ['sms-failed', [6, 4]],
  ]

  test('lists the messages of each event once, with the fields of the contract', async () => {
    const { report, list, written, ...caller } = await campaignOf(EVERYTHING)
    await writeCampaign(pool, caller, EVERYTHING)
    await campaignOf(EVERYTHING)
    for (const [eventType, recipients] of TYPES) {
      const expected = recipients.map((n) => {
        const message = written.find(({ recipient }) => recipient === phone(n))
        assert.ok(message)
        const event = reachedBy(message).find(({ kind }) => kind === eventType)
        assert.ok(event, eventType)
        return { messageId: message.messageId, recipient: message.recipient, occurredAt: event.at, reason: event.reason }
      })
      assert.deepEqual(await report(list(`recipients/${eventType}`, 'sort=occurredAt')), { items: expected, nextCursor: null }, eventType)
      assert.deepEqual((await report(list(`recipients/${eventType}`))).items, expected.toReversed(), `${eventType}, newest first`)
      const byNumber = expected.toSorted((a, b) => (a.recipient < b.recipient ? -1 : 1))
      assert.deepEqual((await report(list(`recipients/${eventType}`, 'sort=recipient'))).items, byNumber, eventType)
      assert.deepEqual((await report(list(`recipients/${eventType}`, 'sort=-recipient'))).items, byNumber.toReversed(), eventType)
    }
  })

  test('has the reason of a failure and of an SMS, and no other reason', async () => {
    const { report, list } = await campaignOf(EVERYTHING)
    for (const [eventType, reasons] of [
      ['failed', ['NOT_REACHABLE', 'OPTED_OUT', 'REJECTED']],
      ['sms-failed', ['REJECTED', 'UNDELIVERABLE']],
      ['sms-sent', ['RCS_FAILED', 'RCS_FAILED', 'RCS_EXPIRED']],
      ['sms-delivered', ['RCS_FAILED', 'RCS_EXPIRED']],
      ['expired', [null, null]],
      ['opted-out', [null]],
    ] as const) {
      assert.deepEqual(keysOf((await report(list(`recipients/${eventType}`, 'sort=occurredAt'))).items, 'reason'), reasons, eventType)
    }
  })
})

describe('action-details', () => {
  const ACTIONS: PastAction[] = [
    { kind: 'tapped', at: at(5), buttonId: 'yes', text: 'Yes', payload: 'order 7: yes' },
    { kind: 'clicked', at: at(6), buttonId: 'web', text: 'Web', url: 'https://example.com/?a=1&b=2' },
    { kind: 'wrote', at: at(7), text: '=1+1 Zażółć\n"😀"' },
    { kind: 'shared-location', at: at(8) },
    { kind: 'sent-file', at: at(9), text: 'f.png', payload: 'image/png', url: 'https://example.com/f.png' },
    { kind: 'opted-out', at: at(10), text: 'STOP' },
    { kind: 'opted-in', at: at(11), text: 'START' },
    { kind: 'clicked', at: at(12), url: 'https://example.com/again' },
  ]

  test('lists each action with the fields of the contract, newest first', async () => {
    const message = { recipient: phone(1), acceptedAt: at(1), sentAt: at(1), actions: ACTIONS }
    const { report, list, written, ...caller } = await campaignOf([message])
    await writeCampaign(pool, caller, [message])
    await campaignOf([message])
    const nothing = { buttonId: null, text: null, payload: null, url: null }
    const expected = ACTIONS.map(({ kind, at: occurredAt, ...more }) => {
      return { messageId: written[0]?.messageId, recipient: phone(1), action: kind, ...nothing, ...more, occurredAt }
    })
    assert.deepEqual(await report(list('action-details', 'sort=occurredAt')), { items: expected, nextCursor: null })
    const { items } = await report(list('action-details'))
    assert.deepEqual(items, expected.toReversed())
  })

  test('sorts by time, recipient and action, and the descending order is the exact reverse', async () => {
    const kinds = ['wrote', 'clicked', 'tapped', 'opted-out'] as const
    const messages = Array.from({ length: 3 }, (_, n) => ({
      recipient: phone((n * 2) % 3),
      acceptedAt: at(1),
      actions: Array.from({ length: 4 }, (_, k) => ({
        kind: kinds[(n + k) % 4] ?? 'wrote',
        at: at(2 + ((n + 2 * k) % 3)),
        text: `${n} ${k}`,
      })),
    }))
    const { walk, list } = await campaignOf(messages)
    for (const field of ['occurredAt', 'recipient', 'action']) {
      const items = await walk(list('action-details', `sort=${field}`))
      assert.equal(new Set(keysOf(items, 'text')).size, 12)
      const keys = keysOf(items, field) as string[]
      assert.deepEqual(keys, ascending(keys))
      assert.deepEqual(await walk(list('action-details', `sort=-${field}`)), items.toReversed(), field)
      assert.deepEqual(await walk(list('action-details', `sort=${field}`), field === 'action' ? 1 : 7), items, field)
      assert.deepEqual(await walk(list('action-details', `sort=-${field}`), 2), items.toReversed(), `-${field} by 2`)
      for (const [range, days] of [
        ['from=2026-10-03', [3, 4]],
        ['to=2026-10-03', [2, 3]],
        ['from=2026-10-05', []],
      ] as const) {
        const expected = items.filter(({ occurredAt }) => days.some((day) => occurredAt === at(day)))
        assert.deepEqual(await walk(list('action-details', `sort=-${field}&${range}`), 5), expected.toReversed(), `-${field} ${range}`)
      }
    }
  })
})
