import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { findCampaign, moveCampaign } from '../../src/campaigns/campaigns.ts'
import { planCancel } from '../../src/campaigns/cancel.ts'
import { countRetried, planRetry, retryCampaign } from '../../src/campaigns/retry.ts'
import { fanOut } from '../../src/delivery/campaigns/fan-out.ts'
import { withdrawCancelled } from '../../src/delivery/campaigns/withdraw.ts'
import { PRIORITIES } from '../../src/messages/states.ts'
import { createSender } from '../delivery/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { acceptedCampaign, fillGroup, makeAll, phones, recipientsOf } from './support.ts'

// Who gets a message of a repetition, and what an operator is told of it and of a cancellation before it happens.

const { hotPool: pool } = await createTestDatabase({ uncounted: 'messages are failed by hand' })

async function campaignTo(people: string[]): Promise<string> {
  const sender = await createSender(pool)
  await fillGroup(pool, sender.accountId, 1, people)
  await pool.query('update groups set members = $2 where account_id = $1', [sender.accountId, people.length])
  return await acceptedCampaign(pool, sender)
}

/** Lets waiting messages fail by writing to the database, as if the network had refused them. */
async function fail(campaignId: string, recipients: string[]): Promise<void> {
  await pool.query(
    `with failed as (
       update messages set status = 'FAILED', failed_at = accepted_at, failure_reason = 'NOT_REACHABLE', failure_description = 'No RCS.'
       where campaign_id = $1 and recipient = any ($2) returning id, account_id, failed_at
     ), done as (
       delete from queue where message_id in (select id from failed)
     )
     insert into report_deltas (account_id, campaign_id, hour, failed, unsent)
     select account_id, $1, date_trunc('hour', failed_at, 'UTC'), count(*), count(*) from failed group by 1, 3`,
    [campaignId, recipients],
  )
}

async function arriveLate(campaignId: string, recipient: string): Promise<void> {
  await pool.query(
    `insert into message_events (message_id, account_id, kind, occurred_at)
     select id, account_id, 'delivered-late', now() from messages where campaign_id = $1 and recipient = $2`,
    [campaignId, recipient],
  )
}

/** Five messages: two failed at the network, of which one arrived all the same; three were withdrawn by the cancellation, one of which arrived. */
async function cancelledCampaign(): Promise<{ campaignId: string; people: string[] }> {
  const people = phones(0, 5)
  const campaignId = await campaignTo(people)
  await makeAll(pool)
  await fail(campaignId, people.slice(0, 2))
  await moveCampaign(pool, campaignId, 'CANCELLED')
  while ((await withdrawCancelled(pool)).mayBeMore);
  await withdrawCancelled(pool)
  await arriveLate(campaignId, people[1] as string)
  await arriveLate(campaignId, people[4] as string)
  return { campaignId, people }
}

describe('a repetition of a cancelled campaign', () => {
  test('leaves out the recipients whose message was withdrawn', async () => {
    const { campaignId, people } = await cancelledCampaign()
    const { messages, withdrawn } = await planRetry(pool, campaignId, {})
    const { campaignId: repeated } = await retryCampaign(pool, campaignId)
    await makeAll(pool)
    assert.deepEqual(await recipientsOf(pool, repeated), people.slice(0, 1))
    assert.deepEqual([messages, withdrawn], [1, 2])
  })

  test('includes them where the operator asked for that, whichever node makes its messages', async () => {
    const { campaignId, people } = await cancelledCampaign()
    const { messages } = await planRetry(pool, campaignId, { includeCancelled: true })
    const { campaignId: repeated } = await retryCampaign(pool, campaignId, { includeCancelled: true })
    await makeAll(pool)
    assert.deepEqual(await recipientsOf(pool, repeated), [people[0], people[2], people[3]])
    assert.equal(messages, 3)
  })

  test('is refused while messages are being withdrawn', async () => {
    const campaignId = await campaignTo(phones(0, 2))
    await makeAll(pool)
    await moveCampaign(pool, campaignId, 'CANCELLED')
    const message = `Messages of the campaign ${campaignId} are still being withdrawn; try again in a moment.`
    await assert.rejects(planRetry(pool, campaignId, {}), { message })
    await assert.rejects(retryCampaign(pool, campaignId), { message })
    while ((await withdrawCancelled(pool)).mayBeMore);
  })

  test('is refused where all were withdrawn, with the option that would send to them', async () => {
    const campaignId = await campaignTo(phones(0, 2))
    await makeAll(pool)
    await moveCampaign(pool, campaignId, 'CANCELLED')
    while ((await withdrawCancelled(pool)).mayBeMore);
    await withdrawCancelled(pool)
    const message = `The campaign ${campaignId} has no failures except 2 messages withdrawn when it was cancelled; --include-cancelled sends them.`
    await assert.rejects(planRetry(pool, campaignId, {}), { message })
    assert.equal((await planRetry(pool, campaignId, { includeCancelled: true })).messages, 2)
  })

  test('is refused where no message failed', async () => {
    const campaignId = await campaignTo(phones(0, 2))
    await makeAll(pool)
    await pool.query(`update campaigns set status = 'COMPLETED', completed_at = now() where id = $1`, [campaignId])
    const message = `The campaign ${campaignId} has no failed message to send again.`
    for (const includeCancelled of [true, false]) await assert.rejects(planRetry(pool, campaignId, { includeCancelled }), { message })
  })
})

test('the count before a repetition equals what the fan-out makes, over several chunks', async () => {
  const people = phones(0, 11_000)
  const campaignId = await campaignTo(people)
  await makeAll(pool)
  const failed = people.filter((_, index) => index % 7 === 0)
  await fail(campaignId, failed)
  await arriveLate(campaignId, failed[0] as string)
  await pool.query(`update campaigns set status = 'COMPLETED', completed_at = now() where id = $1`, [campaignId])
  const { messages } = await countRetried(pool, campaignId, {})
  const { campaignId: repeated } = await retryCampaign(pool, campaignId)
  await makeAll(pool)
  assert.equal((await findCampaign(pool, repeated)).recipients, messages)
  assert.equal(messages, failed.length - 1)
})

describe('the count before a cancellation', () => {
  test('has the messages that wait, and the members that have none yet', async () => {
    const campaignId = await campaignTo(phones(0, 1_500))
    const { campaign, ...scheduled } = (await planCancel(pool, campaignId)) ?? {}
    assert.deepEqual([campaign?.campaignId, scheduled], [campaignId, { waiting: 0, waitingSms: 0, unmade: 1_500 }])
    await pool.query(`update campaigns set status = 'RUNNING', started_at = now(), group_generations = '{0}' where id = $1`, [campaignId])
    await fanOut(pool)
    const running = await planCancel(pool, campaignId)
    assert.deepEqual([running?.waiting, running?.unmade], [1_000, 500])
    await makeAll(pool)
    const made = await planCancel(pool, campaignId)
    assert.deepEqual([made?.waiting, made?.unmade], [1_500, 0])
  })

  test('has the messages that a repetition has not made yet', async () => {
    const { campaignId } = await cancelledCampaign()
    const { campaignId: repeated } = await retryCampaign(pool, campaignId, { includeCancelled: true })
    assert.equal((await planCancel(pool, repeated))?.unmade, 3)
    await makeAll(pool)
    const { waiting, unmade } = (await planCancel(pool, repeated)) ?? {}
    assert.deepEqual([waiting, unmade], [3, 0])
  })

  test('has the SMS that wait', async () => {
    const campaignId = await campaignTo(phones(0, 1))
    const { rows } = await pool.query<{ accountId: number }>('select account_id as "accountId" from campaigns where id = $1', [campaignId])
    await pool.query(
      `insert into sms_queue (message_id, copy, account_id, recipient, priority, campaign_id, planned_at, due_at, expires_at, segments)
       select uuid_v7(), 0, $2, '+48700000000', ${PRIORITIES.campaign}, $1, at, at, at, 1 from (select now() + interval '1 hour' as at) as later`,
      [campaignId, rows[0]?.accountId],
    )
    assert.equal((await planCancel(pool, campaignId))?.waitingSms, 1)
    await pool.query('delete from sms_queue')
  })

  test('is none for a campaign that is over', async () => {
    const { campaignId } = await cancelledCampaign()
    assert.equal(await planCancel(pool, campaignId), undefined)
  })
})
