import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { resumeAccount, suspendAccount } from '../../src/accounts/accounts.ts'
import { findCampaign } from '../../src/campaigns/campaigns.ts'
import { fanOut } from '../../src/delivery/campaigns/fan-out.ts'
import { startDue } from '../../src/delivery/campaigns/lifecycle.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { acceptedCampaign, fillGroup, makeAll, phones, recipientsOf } from '../campaigns/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { erased } from '../support/erased.ts'
import { moveExpiry } from '../support/expiring.ts'
import { until } from '../support/until.ts'
import { acceptMessages, refusedMessages, smsStatusOf } from './sms/support.ts'
import { claimDueSms, createSmsCarrier, startSmsWorker } from './sms/worker.ts'
import {
  claimMessage,
  createReceiver,
  createSender,
  queueMessage,
  queueMessages,
  receipt,
  type Sender,
  sentMessage,
  statusOf,
} from './support.ts'
import { claimNow, createCarrier, startWorker } from './worker.ts'

// Nothing of a suspended account is sent; everything else goes on.

const { url, hotPool: pool } = await createTestDatabase({ uncounted: 'expiries are moved by hand' })
const suspend = ({ accountId }: Sender) => suspendAccount(pool, accountId)
const resume = ({ accountId }: Sender) => resumeAccount(pool, accountId)

/** The claimed messages of a sender. */
async function claimedOf({ accountId }: Sender, free = 1_000): Promise<string[]> {
  const { entries } = await claimNow(pool, { free })
  return entries.filter((entry) => entry.accountId === accountId).map(({ messageId }) => messageId)
}

describe('messages of a suspended account', () => {
  test('are not claimed, are not in the way of others, and are claimed after the account is resumed', async () => {
    const [suspended, other] = [await createSender(pool), await createSender(pool)]
    const ids = await queueMessages(pool, suspended, { count: 5, dueInMs: -1_000 })
    const further = await queueMessage(pool, other)
    await suspend(suspended)
    const { entries, mayBeMore } = await claimNow(pool, { free: 1 })
    assert.deepEqual([entries.map(({ messageId }) => messageId), mayBeMore], [[further], false])
    await resume(suspended)
    assert.deepEqual(new Set(await claimedOf(suspended)), new Set(ids))
  })

  test('expire, and are revoked if the network may have them', async () => {
    const sender = await createSender(pool)
    const [sent, waiting] = [await sentMessage(pool, sender), await queueMessage(pool, sender)]
    await suspend(sender)
    await moveExpiry(pool, [sent, waiting])
    await expireDue(pool)
    assert.deepEqual([await statusOf(pool, sent), await statusOf(pool, waiting)], ['EXPIRED', 'EXPIRED'])
    assert.deepEqual(await claimedOf(sender), [sent], 'the revocation')
  })

  test('whose call was in progress keep its result, and their receipts count', async () => {
    const sender = await createSender(pool)
    const sent = await sentMessage(pool, sender)
    const { messageId } = await claimMessage(pool, sender)
    await suspend(sender)
    await createReceiver(pool)([receipt({ messageId: sent }), receipt({ messageId })])
    assert.deepEqual([await statusOf(pool, sent), await statusOf(pool, messageId)], ['DELIVERED', 'DELIVERED'])
  })

  test('wait while a worker runs, and go out within seconds of the resumption', async (t) => {
    const [suspended, other] = [await createSender(pool), await createSender(pool)]
    await suspend(suspended)
    const ids = await queueMessages(pool, suspended, { count: 3, dueInMs: -1_000 })
    const carrier = createCarrier()
    const worker = startWorker(t, url, carrier)
    for (let round = 0; round < 3; round += 1) {
      const messageId = await queueMessage(pool, other)
      worker.wake()
      await until('the other account is served', async () => (await statusOf(pool, messageId)) === 'SENT')
    }
    const sentIds = () => carrier.seen.map(({ messageId }) => messageId).filter((id) => ids.includes(id))
    assert.deepEqual(sentIds(), [])
    await resume(suspended)
    await until('they are sent', () => sentIds().length === 3)
    assert.deepEqual(new Set(sentIds()), new Set(ids))
  })
})

describe('SMS of a suspended account', () => {
  test('wait, are not in the way of others, and are sent after the account is resumed', async () => {
    const [suspended, other] = [await createSender(pool), await createSender(pool)]
    const waiting = await refusedMessages(pool, suspended, { count: 3 })
    await suspend(suspended)
    const [further] = await refusedMessages(pool, other)
    assert.deepEqual(
      (await claimDueSms(pool, { free: 1 })).map(({ messageId, decision }) => [messageId, decision]),
      [[further, 'go']],
    )
    assert.deepEqual(await claimDueSms(pool), [])
    await resume(suspended)
    assert.deepEqual(new Set((await claimDueSms(pool)).map(({ messageId }) => messageId)), new Set(waiting))
  })

  test('expire without being submitted', async (t) => {
    const sender = await createSender(pool)
    const [expired, waiting] = (await refusedMessages(pool, sender, { count: 2 })) as [string, string]
    await suspend(sender)
    await pool.query('update sms_queue set expires_at = now() where message_id = $1', [expired])
    const carrier = createSmsCarrier()
    startSmsWorker(t, url, carrier)
    await until('it has expired', async () => (await smsStatusOf(pool, expired))[0] === 'FAILED')
    assert.deepEqual([await smsStatusOf(pool, waiting), carrier.seen], [['SCHEDULED', 'RCS_FAILED'], []])
  })

  test('are scheduled if their message expires meanwhile', async () => {
    const sender = await createSender(pool)
    const [messageId] = (await acceptMessages(pool, sender, { afterExpiry: { delay: 0 } })) as [string]
    await suspend(sender)
    await moveExpiry(pool, [messageId])
    await expireDue(pool)
    assert.deepEqual(await smsStatusOf(pool, messageId), ['SCHEDULED', 'RCS_EXPIRED'])
    assert.deepEqual(await claimDueSms(pool), [])
  })
})

describe('campaigns of a suspended account', () => {
  async function sender(): Promise<Sender> {
    const made = await createSender(pool)
    await fillGroup(pool, made.accountId, 1, phones(0, 3))
    return made
  }

  test('do not start, and start after the account is resumed', async () => {
    const suspended = await sender()
    const campaignId = await acceptedCampaign(pool, suspended)
    await suspend(suspended)
    await makeAll(pool)
    assert.equal((await findCampaign(pool, campaignId)).status, 'SCHEDULED')
    await resume(suspended)
    await makeAll(pool)
    assert.deepEqual(await recipientsOf(pool, campaignId), phones(0, 3))
  })

  test('that run make no messages, send none, and go on where they stopped', async () => {
    const [suspended, other] = [await sender(), await sender()]
    const [made, unmade] = [await acceptedCampaign(pool, suspended), await acceptedCampaign(pool, suspended)]
    await startDue(pool)
    // One chunk for the campaign with the lower id.
    assert.equal((await fanOut(pool, erased)).created, 3)
    await suspend(suspended)
    const further = await acceptedCampaign(pool, other)
    await makeAll(pool)
    assert.deepEqual([await recipientsOf(pool, unmade), await recipientsOf(pool, further)], [[], phones(0, 3)])
    assert.deepEqual(await claimedOf(suspended), [])
    assert.deepEqual([(await findCampaign(pool, made)).status, (await findCampaign(pool, unmade)).status], ['RUNNING', 'RUNNING'])
    await resume(suspended)
    await makeAll(pool)
    assert.deepEqual(await recipientsOf(pool, unmade), phones(0, 3))
    assert.equal((await claimedOf(suspended)).length, 6)
  })
})
