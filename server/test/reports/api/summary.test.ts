import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { expireDue } from '../../../src/delivery/expiry.ts'
import { recordAction } from '../../../src/replies/actions.ts'
import { foldReports } from '../../../src/reports/counters.ts'
import { createReceiver, receipt } from '../../delivery/support.ts'
import { type PastMessage, writeCampaign, writeMessages } from './past.ts'
import { assertDescribed, at, newCaller, pool } from './shared.ts'
import { phone } from './support.ts'

const NONE = {
  ...{ recipients: 0, accepted: 0, sent: 0, delivered: 0, read: 0, failed: 0, expired: 0, clicked: 0, replied: 0, optedOut: 0 },
  ...{ deliveryRate: null, readRate: null, clickRate: null },
  smsFallback: { sent: 0, delivered: 0, failed: 0, skipped: 0 },
}
const EVER = { from: null, to: null }

/** One message for every way that a message and its SMS can go, all accepted on the 1st and sent on the 2nd. */
const EVERY_WAY: PastMessage[] = [
  { acceptedAt: at(1) },
  { acceptedAt: at(1), sentAt: at(2) },
  { acceptedAt: at(1), sentAt: at(2), deliveredAt: at(3) },
  { acceptedAt: at(1), sentAt: at(2), deliveredAt: at(3), readAt: at(4) },
  { acceptedAt: at(1), sentAt: at(2), deliveredAt: at(3), readAt: at(4), actions: [{ kind: 'clicked' as const, at: at(5) }] },
  { acceptedAt: at(1), failedAt: at(2) },
  { acceptedAt: at(1), sentAt: at(2), failedAt: at(3) },
  { acceptedAt: at(1), expiredAt: at(3) },
  { acceptedAt: at(1), sentAt: at(2), expiredAt: at(3) },
  { acceptedAt: at(1), failedAt: at(2), sms: {} },
  { acceptedAt: at(1), failedAt: at(2), sms: { sentAt: at(3) } },
  { acceptedAt: at(1), failedAt: at(2), sms: { sentAt: at(3), deliveredAt: at(4) } },
  { acceptedAt: at(1), failedAt: at(2), sms: { sentAt: at(3), failedAt: at(4), reason: 'UNDELIVERABLE' } },
  { acceptedAt: at(1), failedAt: at(2), sms: { failedAt: at(3), reason: 'REJECTED' } },
  { acceptedAt: at(1), sentAt: at(2), expiredAt: at(3), sms: { skippedAt: at(3), reason: 'EXPIRED' } },
].map((message, n) => ({ ...message, recipient: phone(n) }))

const EVERY_WAY_COUNTED = {
  ...{ recipients: 15, accepted: 15, sent: 7, delivered: 3, read: 2, failed: 7, expired: 3, clicked: 1, replied: 0, optedOut: 0 },
  ...{ deliveryRate: 0.4286, readRate: 0.6667, clickRate: 0.3333 },
  smsFallback: { sent: 3, delivered: 1, failed: 2, skipped: 1 },
}

describe('a summary', () => {
  test('has exactly the fields of the contract: of an account and a campaign without messages, all are there and none is above zero', async () => {
    const caller = await newCaller()
    assert.deepEqual(await caller.report('/messages/summary'), { ...EVER, ...NONE })
    const { campaignId } = await writeCampaign(pool, caller, [])
    assert.deepEqual(await caller.report(`/campaigns/${campaignId}/summary`), { campaignId, ...EVER, ...NONE })
    const named = await caller.report(`/campaigns/${campaignId.toUpperCase()}/summary?from=2026-10-01&to=2026-10-31`)
    assert.deepEqual(named, { campaignId, from: '2026-10-01', to: '2026-10-31', ...NONE })
  })

  test('counts messages that ever came to a state, whatever became of them; a campaign’s and what the account sends itself apart', async () => {
    const caller = await newCaller()
    const { campaignId } = await writeCampaign(pool, caller, EVERY_WAY)
    await writeMessages(pool, caller, EVERY_WAY.slice(0, 5))
    assert.deepEqual(await caller.report(`/campaigns/${campaignId}/summary`), { campaignId, ...EVER, ...EVERY_WAY_COUNTED })
    const transactional = {
      ...{ ...NONE, recipients: 5, accepted: 5, sent: 4, delivered: 3, read: 2, clicked: 1 },
      ...{ deliveryRate: 0.75, readRate: 0.6667, clickRate: 0.3333 },
    }
    assert.deepEqual(await caller.report('/messages/summary'), { ...EVER, ...transactional })
  })

  test('is the same before and after counters are folded', async () => {
    const caller = await newCaller()
    const { campaignId } = await writeCampaign(pool, caller, EVERY_WAY)
    const before = await caller.report(`/campaigns/${campaignId}/summary?to=2026-10-03`)
    await foldReports(pool)
    assert.deepEqual(await caller.report(`/campaigns/${campaignId}/summary?to=2026-10-03`), before)
    assert.deepEqual([before.accepted, before.sent, before.delivered, before.read], [15, 7, 3, 0])
  })

  test('says nothing of other accounts, other campaigns and test messages', async () => {
    const [caller, stranger] = [await newCaller(), await newCaller()]
    const { campaignId } = await writeCampaign(pool, caller, EVERY_WAY.slice(0, 1))
    await writeCampaign(pool, caller, EVERY_WAY)
    await writeCampaign(pool, stranger, EVERY_WAY)
    await writeMessages(pool, stranger, EVERY_WAY)
    await writeMessages(
      pool,
      caller,
      EVERY_WAY.map((message) => ({ ...message, test: true })),
    )
    const one = { ...NONE, recipients: 1, accepted: 1 }
    assert.deepEqual(await caller.report(`/campaigns/${campaignId}/summary`), { campaignId, ...EVER, ...one })
    assert.deepEqual(await caller.report('/messages/summary'), { ...EVER, ...NONE })
  })

  test('however often a recipient acts, a message was clicked, answered and unsubscribed from once, when that was written down first', async () => {
    const caller = await newCaller()
    const deeds = [
      ['clicked', 2],
      ['tapped', 3],
      ['clicked', 1],
      ['wrote', 4],
      ['shared-location', 4],
      ['sent-file', 5],
      ['opted-out', 5],
      ['opted-in', 6],
      ['opted-out', 7],
    ] as const
    const actions = deeds.map(([kind, day]) => ({ kind, at: at(day) }))
    await writeMessages(pool, caller, [
      { recipient: phone(1), acceptedAt: at(1, '00:00:00.000'), actions },
      { recipient: phone(2), acceptedAt: at(1), actions: [{ kind: 'opted-in', at: at(2) }] },
    ])
    const counted = async (range: string) => {
      const { clicked, replied, optedOut } = await caller.report(`/messages/summary${range}`)
      return [clicked, replied, optedOut]
    }
    assert.deepEqual(await counted(''), [1, 1, 1])
    assert.deepEqual(await counted('?to=2026-10-01'), [0, 0, 0])
    assert.deepEqual(await counted('?from=2026-10-02&to=2026-10-02'), [1, 0, 0])
    assert.deepEqual(await counted('?from=2026-10-03&to=2026-10-03'), [0, 1, 0])
    assert.deepEqual(await counted('?from=2026-10-04&to=2026-10-05'), [0, 0, 1])
    assert.deepEqual(await counted('?from=2026-10-06'), [0, 0, 0])
  })
})

describe('a summary of some days', () => {
  test('counts what happened on them, both included, by the time of each event in UTC, to the millisecond', async () => {
    const caller = await newCaller()
    const times = [at(1, '23:59:59.999'), at(2, '00:00:00.000'), at(2, '23:59:59.999'), at(3, '00:00:00.000')]
    const messages = times.map((time, n) => ({ recipient: phone(n), acceptedAt: at(1, '08:00:00.000'), sentAt: time, deliveredAt: time }))
    const { campaignId } = await writeCampaign(pool, caller, messages)
    await writeMessages(pool, caller, messages)
    for (const [range, accepted, sent] of [
      ['', 4, 4],
      ['?from=2026-10-01', 4, 4],
      ['?from=2026-10-02', 0, 3],
      ['?from=2026-10-03', 0, 1],
      ['?from=2026-10-04', 0, 0],
      ['?to=2026-09-30', 0, 0],
      ['?to=2026-10-01', 4, 1],
      ['?to=2026-10-02', 4, 3],
      ['?from=2026-10-02&to=2026-10-02', 0, 2],
      ['?from=2026-10-02&to=2026-10-03', 0, 3],
      ['?from=0100-01-01&to=9999-12-31', 4, 4],
    ] as const) {
      for (const path of [`/campaigns/${campaignId}/summary`, '/messages/summary']) {
        const { recipients, accepted: a, sent: s, delivered: d, from, to } = await caller.report(`${path}${range}`)
        assert.deepEqual([recipients, a, s, d], [accepted, accepted, sent, sent], range)
        const given = new URLSearchParams(range)
        assert.deepEqual([from, to], [given.get('from'), given.get('to')])
      }
    }
  })

  test('has rates of four places from 0 to 1, and null where there is nothing that it could be a rate of', async () => {
    const caller = await newCaller()
    const messages = Array.from({ length: 7 }, (_, n) => ({
      recipient: phone(n),
      acceptedAt: at(1),
      sentAt: n < 6 ? at(1) : at(2),
      ...(n < 3 && { deliveredAt: at(2) }),
      ...(n < 2 && { readAt: at(3) }),
      actions: n < 5 ? [{ kind: 'clicked' as const, at: at(4) }] : [],
    }))
    await writeMessages(pool, caller, messages)
    const rates = async (range: string) => {
      const { deliveryRate, readRate, clickRate } = await caller.report(`/messages/summary${range}`)
      return [deliveryRate, readRate, clickRate]
    }
    assert.deepEqual(await rates(''), [0.4286, 0.6667, 1], 'more were clicked than delivered, by SMS say')
    assert.deepEqual(await rates('?to=2026-10-01'), [0, null, null], 'six sent')
    assert.deepEqual(await rates('?from=2026-10-02&to=2026-10-02'), [1, 0, 0], 'three delivered, of which two were sent the day before')
    assert.deepEqual(await rates('?from=2026-10-03&to=2026-10-03'), [null, null, null], 'read, but none delivered')
  })

  test('has a recipient for each message that was accepted on them', async () => {
    const caller = await newCaller()
    const messages = [1, 1, 2].map((day, n) => ({ recipient: phone(n), acceptedAt: at(day), sentAt: at(3) }))
    const { campaignId } = await writeCampaign(pool, caller, messages)
    for (const [range, recipients] of [
      ['', 3],
      ['?from=2026-10-02', 1],
      ['?to=2026-10-01', 2],
      ['?from=2026-10-03', 0],
    ] as const) {
      const body = await caller.report(`/campaigns/${campaignId}/summary${range}`)
      assert.deepEqual([body.recipients, body.accepted], [recipients, recipients])
    }
  })
})

describe('a summary goes along', () => {
  test('receipts, expiries and what recipients do are in it as soon as they are committed, each once', async () => {
    const caller = await newCaller()
    const { accountId, agentId } = caller
    const acceptedAt = new Date(Date.now() - 3_600_000).toISOString()
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    const { campaignId, messages } = await writeCampaign(
      pool,
      caller,
      [1, 2, 3].map((n) => ({ recipient: phone(n), acceptedAt, sentAt: acceptedAt, expiresAt })),
    )
    const [first, second, third] = messages.map(({ messageId }) => messageId) as [string, string, string]
    const take = createReceiver(pool)
    const counts = async () => {
      const { sent, delivered, read, expired, clicked } = await caller.report(`/campaigns/${campaignId}/summary`)
      return [sent, delivered, read, expired, clicked]
    }
    assert.deepEqual(await counts(), [3, 0, 0, 0, 0])
    for (let round = 0; round < 2; round += 1) {
      await take([receipt({ messageId: first, phone: phone(1) })])
      assert.deepEqual(await counts(), [3, 1, round, 0, 0])
      await take([receipt({ messageId: first, phone: phone(1), kind: 'read' })])
      assert.deepEqual(await counts(), [3, 1, 1, 0, 0])
    }
    await take([receipt({ messageId: second, phone: phone(2), kind: 'read' })])
    assert.deepEqual(await counts(), [3, 2, 2, 0, 0], 'what was read was delivered')
    await pool.query(
      `with due as (update messages set expires_at = now() where id = $1 returning id, expires_at) insert into expiries select * from due`,
      [third],
    )
    await expireDue(pool)
    await take([receipt({ messageId: third, phone: phone(3) })])
    assert.deepEqual(await counts(), [3, 2, 2, 1, 0], 'what expired stays sent, and is not delivered any more')
    for (let round = 0; round < 2; round += 1) {
      const click = { accountId, agentId, recipient: phone(1), messageId: first, kind: 'clicked', channel: 'rcs' } as const
      await recordAction(pool, { ...click, occurredAt: new Date(), url: 'https://example.com/' })
      assert.deepEqual(await counts(), [3, 2, 2, 1, 1])
      await foldReports(pool)
      assert.deepEqual(await counts(), [3, 2, 2, 1, 1])
    }
  })
})

describe('the document describes a summary', () => {
  test('as it is: with each of its fields, and no other', async () => {
    const caller = await newCaller()
    for (const path of ['/messages/summary', `/campaigns/${(await writeCampaign(pool, caller, EVERY_WAY)).campaignId}/summary`]) {
      const body = await caller.report(path)
      const others = Object.keys(body).map((name) => Object.fromEntries(Object.entries(body).filter(([each]) => each !== name)))
      const { skipped, ...fallback } = body.smsFallback
      others.push({ ...body, more: 1 }, { ...body, smsFallback: fallback }, { ...body, smsFallback: { ...body.smsFallback, more: 1 } })
      others.push(
        { ...body, sent: null },
        { ...body, sent: '1' },
        { ...body, sent: -1 },
        { ...body, deliveryRate: 1.5 },
        { ...body, from: 5 },
      )
      for (const other of others) assert.throws(() => assertDescribed(path, other), JSON.stringify(other))
    }
    assert.throws(() => assertDescribed('/messages/summary', { campaignId: randomUUID(), ...EVER, ...NONE }))
  })
})
