import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { findAccount, setCampaignWindow } from '../../src/accounts/accounts.ts'
import { moveCampaign } from '../../src/campaigns/campaigns.ts'
import { retryCampaign } from '../../src/campaigns/retry.ts'
import { completeDone } from '../../src/delivery/campaigns/lifecycle.ts'
import { withdrawCancelled } from '../../src/delivery/campaigns/withdraw.ts'
import { acceptedCampaign, assertCountersEqualRows, fillGroup, makeAll, statusCountsOf } from '../campaigns/support.ts'
import { createSender, type Sender } from '../delivery/support.ts'
import { claimNow, makeDue, record } from '../delivery/worker.ts'
import { createTestDatabase } from '../support/database.ts'
import { closedWindow, openingOf, openWindow } from './support.ts'

const { hotPool: pool } = await createTestDatabase()

const POLE = '+48500100200'
const JAPANESE = '+819012345678'
const AMERICAN = '+14155552671'

/** A sender with a group of these numbers. */
async function senderTo(...phones: string[]): Promise<Sender> {
  const sender = await createSender(pool)
  await fillGroup(pool, sender.accountId, 1, phones)
  return sender
}

async function claimOf({ agentId }: Sender) {
  return (await claimNow(pool)).entries.filter((entry) => entry.agentId === agentId)
}

/** When the messages of a campaign are due, and the places of their windows. */
async function dueOf(campaignId: string) {
  const { rows } = await pool.query<{ recipient: string; dueAt: Date; place: string }>(
    `select m.recipient, q.due_at as "dueAt", split_part(q.delivery_window, ' ', 4) as place
     from messages m join queue q on q.message_id = m.id where m.campaign_id = $1 order by m.recipient`,
    [campaignId],
  )
  return rows
}

describe('a campaign with a delivery window', () => {
  test('queues each message for the opening in the zone of its recipient', async () => {
    const member = '+48500100201'
    const sender = await senderTo(POLE, member, JAPANESE, AMERICAN)
    await pool.query(`update group_members set time_zone = 'Pacific/Honolulu' where phone = $1`, [member])
    const window = closedWindow('recipient')
    const campaignId = await acceptedCampaign(pool, sender, { deliveryWindow: window })
    assert.deepEqual(await makeAll(pool), [4])
    const due = new Map((await dueOf(campaignId)).map(({ recipient, dueAt, place }) => [recipient, { dueAt, place }]))
    assert.deepEqual(due.get(member), { dueAt: openingOf(window, -10), place: 'Pacific/Honolulu' })
    // Japan has no summer time.
    assert.deepEqual(due.get(JAPANESE), { dueAt: openingOf(window, 9), place: 'country:JP' })
    assert.equal(due.get(POLE)?.place, 'country:PL')
    assert.equal(due.get(AMERICAN)?.place, 'country:US')
    await assertCountersEqualRows(pool, campaignId)
  })

  test('sends nothing while it is closed, completes only then, and counts what was postponed as ACCEPTED', async () => {
    const sender = await senderTo(POLE, JAPANESE)
    const campaignId = await acceptedCampaign(pool, sender, { deliveryWindow: closedWindow() })
    await makeAll(pool)
    assert.deepEqual(await claimOf(sender), [])
    // As if the clock had been set back.
    const waiting = (await pool.query<{ id: string }>('select id from messages where campaign_id = $1', [campaignId])).rows
    await makeDue(
      pool,
      waiting.map(({ id }) => id),
    )
    assert.deepEqual(await claimOf(sender), [])
    await assertCountersEqualRows(pool, campaignId)
    await completeDone(pool)
    assert.deepEqual(await statusCountsOf(pool, campaignId), { ACCEPTED: 2 })
    await pool.query(`update queue set delivery_window = '00:00-24:00 1234567 UTC', due_at = now() where campaign_id = $1`, [campaignId])
    for (const entry of await claimOf(sender)) await record(pool, entry, { is: 'sent' })
    assert.deepEqual(await statusCountsOf(pool, campaignId), { SENT: 2 })
    await assertCountersEqualRows(pool, campaignId)
  })

  test('has its chunks in order, and reaches every member of several groups once', async () => {
    const members = Array.from({ length: 1_500 }, (_, n) => `+4850020${String(n).padStart(4, '0')}`)
    const sender = await senderTo(...members)
    await fillGroup(pool, sender.accountId, 2, members.slice(700, 900))
    await pool.query(`update group_members set time_zone = 'Europe/Warsaw' where account_id = $1 and group_number = 2`, [sender.accountId])
    const campaignId = await acceptedCampaign(pool, sender, { segmentIds: [1, 2], deliveryWindow: closedWindow('recipient') })
    assert.deepEqual(await makeAll(pool), [1_000, 500])
    const due = await dueOf(campaignId)
    assert.deepEqual(
      due.map(({ recipient }) => recipient),
      members,
    )
    assert.equal(due.filter(({ place }) => place === 'Europe/Warsaw').length, 200)
  })

  test('can be cancelled while its messages wait', async () => {
    const sender = await senderTo(POLE)
    const campaignId = await acceptedCampaign(pool, sender, { deliveryWindow: closedWindow() })
    await makeAll(pool)
    await moveCampaign(pool, campaignId, 'CANCELLED')
    await withdrawCancelled(pool)
    assert.deepEqual(await statusCountsOf(pool, campaignId), { 'FAILED CAMPAIGN_CANCELLED': 1 })
  })

  test('keeps its window when it is retried', async () => {
    const sender = await senderTo(POLE, JAPANESE)
    const campaignId = await acceptedCampaign(pool, sender, { deliveryWindow: openWindow() })
    await makeAll(pool)
    for (const entry of await claimOf(sender)) await record(pool, entry, { is: 'failed', reason: 'REJECTED', detail: '' })
    await completeDone(pool)
    // As if the day were over.
    const window = closedWindow()
    const text = `${window.from}-${window.to} 1234567 UTC`
    await pool.query('update campaigns set delivery_window = $2 where id = $1', [campaignId, text])
    await pool.query('update messages set delivery_window = $2 where campaign_id = $1', [campaignId, text])
    const retry = await retryCampaign(pool, campaignId)
    assert.deepEqual(retry.deliveryWindow, { ...window, days: ['MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT', 'SUN'] })
    assert.deepEqual(await makeAll(pool), [2])
    for (const { dueAt } of await dueOf(retry.campaignId)) assert.deepEqual(dueAt, openingOf(window))
  })
})

describe('the window of an account', () => {
  test('applies to campaigns that have none, from their acceptance on, and to no single message', async () => {
    const sender = await senderTo(POLE)
    const window = closedWindow()
    const before = await acceptedCampaign(pool, sender)
    await setCampaignWindow(pool, sender.accountId, window)
    assert.deepEqual((await findAccount(pool, sender.accountId)).campaignWindow?.from, window.from)
    const after = await acceptedCampaign(pool, sender)
    const own = await acceptedCampaign(pool, sender, { deliveryWindow: { from: '00:00', to: '24:00', timeZone: 'UTC' } })
    await setCampaignWindow(pool, sender.accountId, undefined)
    await makeAll(pool)
    const opensAt = openingOf(window).getTime()
    const isWaiting = async (id: string) => (await dueOf(id)).map(({ dueAt }) => dueAt.getTime() === opensAt)
    assert.deepEqual([await isWaiting(before), await isWaiting(after), await isWaiting(own)], [[false], [true], [false]])
    assert.equal('campaignWindow' in (await findAccount(pool, sender.accountId)), false)
  })
})
