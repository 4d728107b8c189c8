import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { findCampaign, moveCampaign } from '../../src/campaigns/campaigns.ts'
import { planCancel } from '../../src/campaigns/cancel.ts'
import { countRetried, planRetry, retryCampaign } from '../../src/campaigns/retry.ts'
import { fanOut } from '../../src/delivery/campaigns/fan-out.ts'
import { withdrawCancelled } from '../../src/delivery/campaigns/withdraw.ts'
import { PRIORITIES } from '../../src/messages/states.ts'
import { Refusal } from '../../src/refusal.ts'
import { createSender } from '../delivery/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { erased } from '../support/erased.ts'
import { acceptedCampaign, fillGroup, makeAll, phones, recipientsOf } from './support.ts'

// The recipients of a retry, and the counts that an operator sees before a retry or a cancellation.

const { hotPool: pool } = await createTestDatabase({ uncounted: 'messages are failed by hand' })

async function campaignTo(people: string[]): Promise<string> {
  const sender = await createSender(pool)
  await fillGroup(pool, sender.accountId, 1, people)
  await pool.query('update groups set members = $2 where account_id = $1', [sender.accountId, people.length])
  return await acceptedCampaign(pool, sender)
}

/** Fails waiting messages by hand, as if the network had refused them. */
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

async function arriveLate(campaignId: string, recipient: string, kind = 'delivered-late'): Promise<void> {
  await pool.query(
    `insert into message_events (message_id, account_id, kind, occurred_at)
     select id, account_id, $3, now() from messages where campaign_id = $1 and recipient = $2`,
    [campaignId, recipient, kind],
  )
}

async function complete(campaignId: string): Promise<void> {
  await pool.query(`update campaigns set status = 'COMPLETED', completed_at = now() where id = $1`, [campaignId])
}

/** The last call finds nothing left. */
async function withdrawAll(): Promise<void> {
  while ((await withdrawCancelled(pool)).mayBeMore);
  await withdrawCancelled(pool)
}

/** Two of five messages failed, and three were withdrawn by the cancellation. One of each arrived later nevertheless. */
async function cancelledCampaign(): Promise<{ campaignId: string; people: string[] }> {
  const people = phones(0, 5)
  const campaignId = await campaignTo(people)
  await makeAll(pool)
  await fail(campaignId, people.slice(0, 2))
  await moveCampaign(pool, campaignId, 'CANCELLED')
  await withdrawAll()
  await arriveLate(campaignId, people[1] as string)
  await arriveLate(campaignId, people[4] as string, 'read-late')
  return { campaignId, people }
}

describe('a retry of a cancelled campaign', () => {
  test('leaves out recipients whose message was withdrawn', async () => {
    const { campaignId, people } = await cancelledCampaign()
    const { messages, withdrawn } = await planRetry(pool, campaignId, {})
    const { campaignId: retried } = await retryCampaign(pool, campaignId)
    await makeAll(pool)
    assert.deepEqual(await recipientsOf(pool, retried), people.slice(0, 1))
    assert.deepEqual([messages, withdrawn], [1, 2])
  })

  test('includes them when the operator asks for it', async () => {
    const { campaignId, people } = await cancelledCampaign()
    const { messages } = await planRetry(pool, campaignId, { includeCancelled: true })
    const { campaignId: retried } = await retryCampaign(pool, campaignId, { includeCancelled: true })
    await makeAll(pool)
    assert.deepEqual(await recipientsOf(pool, retried), [people[0], people[2], people[3]])
    assert.equal(messages, 3)
  })

  test('is rejected while messages are being withdrawn', async () => {
    const campaignId = await campaignTo(phones(0, 2))
    await makeAll(pool)
    await moveCampaign(pool, campaignId, 'CANCELLED')
    const message = `Messages of the campaign ${campaignId} are still being withdrawn; try again in a moment.`
    await assert.rejects(planRetry(pool, campaignId, {}), { message })
    await assert.rejects(retryCampaign(pool, campaignId), { message })
    await withdrawAll()
  })

  test('is rejected when all messages were withdrawn, with the option that sends them', async () => {
    const campaignId = await campaignTo(phones(0, 2))
    await makeAll(pool)
    await moveCampaign(pool, campaignId, 'CANCELLED')
    await withdrawAll()
    const message = `The campaign ${campaignId} has no failures except 2 messages withdrawn when it was cancelled; --include-cancelled sends them.`
    await assert.rejects(planRetry(pool, campaignId, {}), (error) => {
      assert.ok(error instanceof Refusal && error.message === message, String(error))
      const reason = message.replace('--include-cancelled', 'includeCancelled')
      assert.deepEqual([error.asApiError.code, error.asApiError.details], ['RCS_REFUSED', [{ path: '', reason }]])
      return true
    })
    assert.equal((await planRetry(pool, campaignId, { includeCancelled: true })).messages, 2)
  })

  test('is rejected when no message failed', async () => {
    const campaignId = await campaignTo(phones(0, 2))
    await makeAll(pool)
    await complete(campaignId)
    const message = `The campaign ${campaignId} has no failed message to send again.`
    for (const includeCancelled of [true, false]) await assert.rejects(planRetry(pool, campaignId, { includeCancelled }), { message })
  })
})

describe('a retry', () => {
  test('reaches exactly the failed recipients over several chunks, with the same content, though they left the group', async () => {
    const people = phones(0, 11_000)
    const campaignId = await campaignTo(people)
    await makeAll(pool)
    const failed = people.filter((_, index) => index % 7 === 0)
    await fail(campaignId, failed)
    await arriveLate(campaignId, failed[0] as string)
    await complete(campaignId)
    await pool.query('delete from group_members')
    const { messages, isMore } = await countRetried(pool, campaignId, {})
    const first = await countRetried(pool, campaignId, {}, { withinMs: 0 })
    assert.ok(!isMore && first.isMore && first.messages > 0 && first.messages < messages, 'a count ends after its time')
    const { campaignId: retried } = await retryCampaign(pool, campaignId)
    assert.equal((await planCancel(pool, retried, 0))?.notCreated, people.length)
    assert.ok((await makeAll(pool)).length > 1)
    assert.deepEqual(await recipientsOf(pool, retried), failed.slice(1))
    assert.equal(messages, failed.length - 1)
    const contents = 'select distinct content_id from messages where campaign_id = any ($1)'
    assert.equal((await pool.query(contents, [[campaignId, retried]])).rowCount, 1)
  })

  test('is created once by concurrent calls, and names the first to later calls', async () => {
    const campaignId = await campaignTo(phones(0, 3))
    await makeAll(pool)
    await fail(campaignId, phones(1, 1))
    await complete(campaignId)
    const calls = await Promise.allSettled([1, 2, 3].map(() => retryCampaign(pool, campaignId)))
    const [created, ...others] = calls.filter(({ status }) => status === 'fulfilled') as PromiseFulfilledResult<{ campaignId: string }>[]
    assert.equal(others.length, 0)
    const message = `The campaign ${campaignId} was already retried by ${created?.value.campaignId}; retry that one.`
    await assert.rejects(retryCampaign(pool, campaignId), { message })
  })

  test('reaches nobody when no message failed', async () => {
    const campaignId = await campaignTo(phones(0, 3))
    await makeAll(pool)
    await complete(campaignId)
    const { campaignId: retried } = await retryCampaign(pool, campaignId)
    assert.deepEqual(await makeAll(pool), [0])
    assert.equal((await findCampaign(pool, retried)).recipients, 0)
  })

  test('with withdrawn messages reaches all their recipients, or is rejected until they are withdrawn', async () => {
    const campaignId = await campaignTo(phones(0, 1_500))
    await makeAll(pool)
    await moveCampaign(pool, campaignId, 'CANCELLED')
    const early = await retryCampaign(pool, campaignId, { includeCancelled: true }).catch(() => undefined)
    await makeAll(pool)
    await withdrawAll()
    const { campaignId: retried } = early ?? (await retryCampaign(pool, campaignId, { includeCancelled: true }))
    await makeAll(pool)
    assert.equal((await recipientsOf(pool, retried)).length, 1_500)
  })

  test('is rejected while the campaign is scheduled or running', async () => {
    const campaignId = await campaignTo(phones(0, 3))
    for (const status of ['SCHEDULED', 'RUNNING']) {
      const message = `The campaign ${campaignId} is ${status}; retry it once it is COMPLETED or CANCELLED.`
      await assert.rejects(retryCampaign(pool, campaignId), { message })
      await makeAll(pool)
    }
  })
})

describe('the count before a cancellation', () => {
  test('includes waiting messages, and members without a message yet', async () => {
    const campaignId = await campaignTo(phones(0, 1_500))
    const { campaign, ...scheduled } = (await planCancel(pool, campaignId)) ?? {}
    assert.deepEqual([campaign?.campaignId, scheduled], [campaignId, { waiting: 0, waitingSms: 0, notCreated: 1_500 }])
    await pool.query(`update campaigns set status = 'RUNNING', started_at = now(), group_generations = '{0}' where id = $1`, [campaignId])
    await fanOut(pool, erased)
    const running = await planCancel(pool, campaignId)
    assert.deepEqual([running?.waiting, running?.notCreated], [1_000, 500])
    await makeAll(pool)
    const made = await planCancel(pool, campaignId)
    assert.deepEqual([made?.waiting, made?.notCreated], [1_500, 0])
  })

  test('includes messages that a retry has not created yet', async () => {
    const { campaignId } = await cancelledCampaign()
    const { campaignId: retried } = await retryCampaign(pool, campaignId, { includeCancelled: true })
    assert.equal((await planCancel(pool, retried))?.notCreated, 3)
    await makeAll(pool)
    const { waiting, notCreated } = (await planCancel(pool, retried)) ?? {}
    assert.deepEqual([waiting, notCreated], [3, 0])
  })

  test('includes waiting SMS', async () => {
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

  test('is undefined for a campaign that has ended', async () => {
    const { campaignId } = await cancelledCampaign()
    assert.equal(await planCancel(pool, campaignId), undefined)
  })
})
