import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type PastAction, type PastMessage, reachedBy, writeCampaign } from './past.ts'
import { ascending, assertDescribed, at, campaignOf, keysOf, pool } from './shared.ts'
import { phone } from './support.ts'

const without = (item: object, name: string) => Object.fromEntries(Object.entries(item).filter(([each]) => each !== name))

describe('recipients/{eventType}', () => {
  const deeds = (['clicked', 'tapped', 'wrote', 'clicked', 'opted-out', 'opted-in', 'opted-out'] as const).map((kind, n) => ({
    kind,
    at: at(6 + n),
  }))
  const EVERYTHING: PastMessage[] = [
    { recipient: phone(3), acceptedAt: at(1), sentAt: at(2), deliveredAt: at(3), readAt: at(4), actions: deeds },
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

  test('lists who had which event, once each, with the fields of the contract and nothing of others', async () => {
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
      assert.deepEqual((await report(list(`recipients/${eventType}`))).items, expected.toReversed(), `${eventType}, the newest first`)
      const byNumber = expected.toSorted((a, b) => (a.recipient < b.recipient ? -1 : 1))
      assert.deepEqual((await report(list(`recipients/${eventType}`, 'sort=recipient'))).items, byNumber, eventType)
      assert.deepEqual((await report(list(`recipients/${eventType}`, 'sort=-recipient'))).items, byNumber.toReversed(), eventType)
    }
  })

  test('says why a message or an SMS failed, why an SMS was sent, and has no reason of anything else', async () => {
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

  test('is described by the document as it is: with each of its fields, and no other', async () => {
    const { report, list } = await campaignOf(EVERYTHING)
    const path = list('recipients/failed')
    const { items, nextCursor } = await report(path)
    const [item] = items
    assert.deepEqual(Object.keys(item), ['messageId', 'recipient', 'occurredAt', 'reason'])
    for (const other of [...Object.keys(item).map((name) => without(item, name)), { ...item, more: 1 }, { ...item, recipient: null }]) {
      assert.throws(() => assertDescribed(path, { items: [other], nextCursor }), JSON.stringify(other))
    }
    assert.throws(() => assertDescribed(path, { items }))
    assert.throws(() => assertDescribed(path, { items, nextCursor, total: 1 }))
  })

  for (const [eventType, field] of [
    ['accepted', 'acceptedAt'],
    ['delivered', 'deliveredAt'],
  ] as const) {
    test(`${eventType} of some days are those that it happened to on them, both included, to the millisecond`, async () => {
      const times = [at(1, '23:59:59.999'), at(2, '00:00:00.000'), at(2, '23:59:59.999'), at(3, '00:00:00.000')]
      const messages = times.map((time, n) => {
        const acceptedAt = eventType === 'accepted' ? time : at(1, '08:00:00.000')
        return { recipient: phone(7 - n), acceptedAt, sentAt: acceptedAt, deliveredAt: time }
      })
      assert.ok(messages.every((message, n) => message[field] === times[n]))
      const { walk, list } = await campaignOf(messages)
      for (const [range, found] of [
        ['from=2026-10-02', [1, 2, 3]],
        ['from=2026-10-04', []],
        ['to=2026-10-01', [0]],
        ['from=2026-10-02&to=2026-10-02', [1, 2]],
        ['from=0100-01-01&to=9999-12-31', [0, 1, 2, 3]],
      ] as const) {
        const expected = found.map((n) => phone(7 - n))
        const items = async (sort: string) => {
          return keysOf(await walk(list(`recipients/${eventType}`, `${range}&sort=${sort}`), 2), 'recipient')
        }
        assert.deepEqual(await items('occurredAt'), expected, range)
        assert.deepEqual(await items('-recipient'), ascending(expected).toReversed(), range)
      }
    })
  }
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

  test('lists every single action with the fields of the contract, the newest first, and nothing of others', async () => {
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
    const path = list('action-details')
    for (const item of items) {
      for (const other of [...Object.keys(item).map((name) => without(item, name)), { ...item, more: 1 }]) {
        assert.throws(() => assertDescribed(path, { items: [other], nextCursor: null }), JSON.stringify(other))
      }
    }
  })

  test('sorts by time, recipient and action, either way; what is equal keeps one order, and the other way round is the reverse', async () => {
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
