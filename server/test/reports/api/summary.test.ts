import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { expireDue } from '../../../src/delivery/expiry.ts'
import { recordAction } from '../../../src/replies/actions.ts'
import { foldReports } from '../../../src/reports/counters.ts'
import { createReceiver, receipt } from '../../delivery/support.ts'
import { type PastMessage, writeCampaign, writeMessages } from './past.ts'
import { at, newCaller, pool } from './shared.ts'
import { phone } from './support.ts'

const NONE = {
  ...{ recipients: 0, accepted: 0, sent: 0, delivered: 0, read: 0, failed: 0, expired: 0, clicked: 0, replied: 0, optedOut: 0 },
  ...{ deliveryRate: null, readRate: null, clickRate: null },
  smsFallback: { sent: 0, delivered: 0, failed: 0, skipped: 0 },
}
const EVER = { from: null, to: null }

/** A message for each combination of states of a message and its SMS, accepted on the 1st and sent on the 2nd. */
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
  test('has the fields of the contract, all zero, for an account and a campaign without messages', async () => {
    const caller = await newCaller()
    assert.deepEqual(await caller.report('/messages/summary'), { ...EVER, ...NONE })
    const { campaignId } = await writeCampaign(pool, caller, [])
    assert.deepEqual(await caller.report(`/campaigns/${campaignId}/summary`), { campaignId, ...EVER, ...NONE })
    const named = await caller.report(`/campaigns/${campaignId.toUpperCase()}/summary?from=2026-10-01&to=2026-10-31`)
    assert.deepEqual(named, { campaignId, from: '2026-10-01', to: '2026-10-31', ...NONE })
  })

  test('counts each state that a message has reached, for a campaign and for single messages separately', async () => {
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

  test('has rates from 0 to 1 with four places, and null for a rate of nothing', async () => {
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
    assert.deepEqual(await rates(''), [0.4286, 0.6667, 1], 'more were clicked than delivered, such as by SMS')
    assert.deepEqual(await rates('?to=2026-10-01'), [0, null, null], 'six sent')
    assert.deepEqual(await rates('?from=2026-10-02&to=2026-10-02'), [1, 0, 0], 'three delivered, of which two were sent the day before')
    assert.deepEqual(await rates('?from=2026-10-03&to=2026-10-03'), [null, null, null], 'read, but none delivered')
  })

  test('includes each receipt, expiry and action once as soon as it is committed', async () => {
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
    const receive = createReceiver(pool)
    const counts = async () => {
      const { sent, delivered, read, expired, clicked } = await caller.report(`/campaigns/${campaignId}/summary`)
      return [sent, delivered, read, expired, clicked]
    }
    assert.deepEqual(await counts(), [3, 0, 0, 0, 0])
    for (let round = 0; round < 2; round += 1) {
      await receive([receipt({ messageId: first, phone: phone(1) })])
      assert.deepEqual(await counts(), [3, 1, round, 0, 0])
      await receive([receipt({ messageId: first, phone: phone(1), kind: 'read' })])
      assert.deepEqual(await counts(), [3, 1, 1, 0, 0])
    }
    await receive([receipt({ messageId: second, phone: phone(2), kind: 'read' })])
    assert.deepEqual(await counts(), [3, 2, 2, 0, 0], 'a read message was delivered')
    await pool.query(
      `with due as (update messages set expires_at = now() where id = $1 returning id, expires_at) insert into expiries select * from due`,
      [third],
    )
    await expireDue(pool)
    await receive([receipt({ messageId: third, phone: phone(3) })])
    assert.deepEqual(await counts(), [3, 2, 2, 1, 0], 'an expired message stays sent, and is no longer delivered')
    for (let round = 0; round < 2; round += 1) {
      const click = { accountId, agentId, recipient: phone(1), messageId: first, kind: 'clicked', channel: 'rcs' } as const
      await recordAction(pool, { ...click, occurredAt: new Date(), url: 'https://example.com/' })
      assert.deepEqual(await counts(), [3, 2, 2, 1, 1])
      await foldReports(pool)
      assert.deepEqual(await counts(), [3, 2, 2, 1, 1])
    }
  })
})
