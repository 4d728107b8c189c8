import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { moveCampaign } from '../../src/campaigns/campaigns.ts'
import { retryCampaign } from '../../src/campaigns/retry.ts'
import { completeDone, startDue } from '../../src/delivery/campaigns/lifecycle.ts'
import { withdrawCancelled } from '../../src/delivery/campaigns/withdraw.ts'
import { ensureRate } from '../../src/delivery/rate.ts'
import { recordResults } from '../../src/delivery/results.ts'
import { foldReports } from '../../src/reports/counters.ts'
import { makeAll, phone, startCampaignService } from '../campaigns/support.ts'
import { claimMessages } from '../delivery/sms/support.ts'
import { createReceiver, receipt } from '../delivery/support.ts'
import { CARRIER, claimNow } from '../delivery/worker.ts'
import { createTestDatabase } from '../support/database.ts'
import { smsFallback } from '../support/messages.ts'
import { assertError } from '../support/service.ts'

const database = await createTestDatabase()
const { pool } = database
const { newCaller } = await startCampaignService(database)
await ensureRate(pool, CARRIER)

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const NONE = { ACCEPTED: 0, SENDING: 0, SENT: 0, DELIVERED: 0, READ: 0, FAILED: 0, EXPIRED: 0 }
const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString()

/** Claims all queued messages and records them as sent or failed, by recipient. */
async function handOver(isTaken: (recipient: string) => boolean = () => true): Promise<void> {
  const claimed = await claimMessages(pool)
  const ids = claimed.map(({ messageId }) => messageId)
  const { rows } = await pool.query<{ id: string; recipient: string }>('select id, recipient from messages where id = any ($1)', [ids])
  const recipients = new Map(rows.map(({ id, recipient }) => [id, recipient]))
  await recordResults(
    pool,
    claimed.map(({ messageId, lease }) =>
      isTaken(recipients.get(messageId) as string)
        ? { messageId, lease, is: 'sent' }
        : { messageId, lease, is: 'failed', reason: 'NOT_REACHABLE', detail: '' },
    ),
  )
}

/** A campaign to two recipients that was just accepted, and its body. */
async function fresh(fields: Record<string, unknown> = {}) {
  const caller = await newCaller()
  const campaignId = await caller.created(fields)
  const { status, body } = await caller.readCampaign(campaignId)
  assert.equal(status, 200)
  return { ...caller, campaignId, body, read: async () => (await caller.readCampaign(campaignId)).body }
}

describe('GET /campaigns/{id}', () => {
  test('omits the fields of steps that have not happened and of values that were not given', async () => {
    const scheduledAt = inHours(1)
    const { body, agentId, campaignId } = await fresh({ scheduledAt })
    const { createdAt } = body
    assert.match(createdAt, TIME)
    const expected = {
      campaignId,
      name: 'Spring sale',
      agentId,
      segmentIds: [1],
      status: 'SCHEDULED',
      basic: false,
      createdAt,
      scheduledAt,
    }
    assert.deepEqual(body, { ...expected, recipients: 0, counts: NONE })
  })

  test('shows the time of acceptance as the schedule of a campaign without one', async () => {
    const { body, campaignId } = await fresh()
    assert.equal(body.scheduledAt, body.createdAt)
    await moveCampaign(pool, campaignId, 'CANCELLED')
  })

  test('returns what was given: times in UTC, groups in order, without the SMS', async () => {
    const start = inHours(2)
    const local = new Date(Date.parse(start) + 3_600_000).toISOString().replace('Z', '+01:00')
    const { body } = await fresh({
      clientReferenceId: 'spring-2027',
      name: 'Zażółć 😀',
      scheduledAt: local,
      expiresAt: inHours(20).replace('Z', '+00:00'),
      basic: true,
      smsFallback: smsFallback(),
    })
    const { clientReferenceId, name, scheduledAt, basic } = body
    assert.deepEqual([clientReferenceId, name, scheduledAt, basic], ['spring-2027', 'Zażółć 😀', start, true])
    assert.match(body.expiresAt, TIME)
    const names = ['campaignId', 'clientReferenceId', 'name', 'agentId', 'segmentIds', 'status', 'basic', 'createdAt', 'scheduledAt']
    assert.deepEqual(new Set(Object.keys(body)), new Set([...names, 'expiresAt', 'recipients', 'counts']))
  })

  test('shows status, times and counts from RUNNING over PAUSED to COMPLETED', async () => {
    const { campaignId, body, read, accountId } = await fresh()
    await startDue(pool)
    const { startedAt } = await read()
    assert.ok(startedAt >= body.scheduledAt)
    const running = { ...body, status: 'RUNNING', startedAt }
    assert.deepEqual(await read(), running)

    await makeAll(pool)
    const made = { ...running, recipients: 2, counts: { ...NONE, ACCEPTED: 2 } }
    assert.deepEqual(await read(), made)
    await moveCampaign(pool, campaignId, 'PAUSED')
    assert.deepEqual(await read(), { ...made, status: 'PAUSED' })
    await moveCampaign(pool, campaignId, 'RUNNING')
    assert.deepEqual(await read(), made)

    await handOver((recipient) => recipient === phone(0))
    assert.deepEqual(await read(), { ...made, counts: { ...NONE, SENT: 1, FAILED: 1 } })
    await completeDone(pool)
    const { completedAt } = await read()
    assert.ok(completedAt >= startedAt)
    const completed = { ...made, status: 'COMPLETED', completedAt }
    assert.deepEqual(await read(), { ...completed, counts: { ...NONE, SENT: 1, FAILED: 1 } })

    const { rows } = await pool.query(`select id from messages where account_id = $1 and status = 'SENT'`, [accountId])
    await createReceiver(pool)([receipt({ messageId: rows[0].id, kind: 'read', phone: phone(0) })])
    assert.deepEqual(await read(), { ...completed, counts: { ...NONE, READ: 1, FAILED: 1 } })
    await foldReports(pool)
    assert.deepEqual(await read(), { ...completed, counts: { ...NONE, READ: 1, FAILED: 1 } })
  })

  test('counts a message as SENDING from its first claim on, also while it waits for a retry, and never twice', async () => {
    const { campaignId, read } = await fresh()
    await makeAll(pool)
    const counts = async () => Object.fromEntries(Object.entries<number>((await read()).counts).filter(([, count]) => count > 0))
    assert.deepEqual(await counts(), { ACCEPTED: 2 })
    const [first] = (await claimNow(pool, { free: 1 })).entries
    assert.deepEqual(await counts(), { ACCEPTED: 1, SENDING: 1 })
    await recordResults(pool, [
      { messageId: first?.messageId as string, lease: first?.lease as string, is: 'retry', detail: '', afterMs: 0 },
    ])
    assert.deepEqual(await counts(), { ACCEPTED: 1, SENDING: 1 })
    await foldReports(pool)
    await claimMessages(pool)
    assert.deepEqual(await counts(), { SENDING: 2 })
    await moveCampaign(pool, campaignId, 'CANCELLED')
    await pool.query(`update queue set leased_until = now() where campaign_id = $1`, [campaignId])
    await withdrawCancelled(pool)
    assert.deepEqual(await counts(), { FAILED: 2 })
  })

  test('shows when a campaign was cancelled, and its withdrawn messages as FAILED', async () => {
    const early = await fresh({ scheduledAt: inHours(1) })
    await moveCampaign(pool, early.campaignId, 'CANCELLED')
    const { cancelledAt } = await early.read()
    assert.ok(cancelledAt >= early.body.createdAt)
    assert.deepEqual(await early.read(), { ...early.body, status: 'CANCELLED', cancelledAt })

    const late = await fresh()
    await makeAll(pool)
    const made = await late.read()
    await moveCampaign(pool, late.campaignId, 'CANCELLED')
    await withdrawCancelled(pool)
    const ended = await late.read()
    assert.deepEqual(ended, { ...made, status: 'CANCELLED', cancelledAt: ended.cancelledAt, counts: { ...NONE, FAILED: 2 } })
  })

  test('shows which campaign a retry repeats, without groups, and which one repeats it', async () => {
    const { campaignId, body, readCampaign } = await fresh({ clientReferenceId: 'spring', expiresAt: inHours(3) })
    await makeAll(pool)
    await handOver(() => false)
    await completeDone(pool)
    const { campaignId: repeated } = await retryCampaign(pool, campaignId)
    const again = (await readCampaign(repeated)).body
    const { createdAt, scheduledAt, expiresAt } = again
    assert.deepEqual(again, {
      ...body,
      campaignId: repeated,
      segmentIds: [],
      retryOf: campaignId,
      createdAt,
      scheduledAt,
      expiresAt,
    })
    assert.equal((await readCampaign(campaignId)).body.retriedBy, repeated)
    await moveCampaign(pool, repeated, 'CANCELLED')
  })

  test('returns the id that its messages have, with its reference and an expiry after 48 hours', async () => {
    const { campaignId, accountId, agentId, ask } = await fresh({ clientReferenceId: 'spring-2027' })
    await makeAll(pool)
    const { rows } = await pool.query<{ id: string }>('select id from messages where account_id = $1 order by recipient', [accountId])
    const { body } = await ask('GET', `/messages/${rows[0]?.id}`)
    const { messageId, acceptedAt, expiresAt } = body
    assert.deepEqual(body, {
      messageId,
      clientReferenceId: 'spring-2027',
      campaignId,
      agentId,
      recipient: phone(0),
      status: 'ACCEPTED',
      basic: false,
      test: false,
      acceptedAt,
      expiresAt,
    })
    assert.equal(Date.parse(expiresAt) - Date.parse(acceptedAt), 48 * 3_600_000)
  })

  test('responds with the same 404 to a campaign of another account, an unknown and an invalid id', async () => {
    const { campaignId } = await fresh({ scheduledAt: inHours(1) })
    const { readCampaign } = await newCaller()
    for (const id of [campaignId, randomUUID(), campaignId.slice(1), `${campaignId}0`, '1', 'ą', "1' or 1=1"]) {
      assertError(await readCampaign(id), 404, 'RCS_CAMPAIGN_NOT_FOUND', [['/id', 'names no campaign of this account']], id)
    }
  })
})
