import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { Registry } from 'prom-client'
import { changeAgent } from '../../src/agents/agents.ts'
import { findCampaign, moveCampaign } from '../../src/campaigns/campaigns.ts'
import type { CarrierEvent, RcsMessage, SendResult } from '../../src/carriers/carrier.ts'
import { completeDone } from '../../src/delivery/campaigns/lifecycle.ts'
import { startDelivery } from '../../src/delivery/delivery.ts'
import { createDeliveryMetrics } from '../../src/delivery/metrics.ts'
import { QUEUE_CHANNEL } from '../../src/messages/announce.ts'
import { changeOptOut } from '../../src/replies/opt-outs.ts'
import { createSmsCarrier } from '../delivery/sms/worker.ts'
import { createReceiver, createSender, queueMessage, receipt, type Sender, statusOf } from '../delivery/support.ts'
import { CARRIER, createCarrier, logger, sent } from '../delivery/worker.ts'
import { createTestDatabase } from '../support/database.ts'
import { erased } from '../support/erased.ts'
import { moveExpiry } from '../support/expiring.ts'
import { watchStalls } from '../support/stalls.ts'
import { until } from '../support/until.ts'
import { acceptedCampaign, assertCountersEqualRows, fillGroup, phones, smsStatusCountsOf, statusCountsOf } from './support.ts'

// Campaigns from acceptance to end, with the whole delivery running. Each test has its own agent, whose carrier responds as the test wants.

const { hotPool: pool } = await createTestDatabase()
const seed = randomInt(2 ** 31)

type Network = (message: RcsMessage) => Promise<SendResult> | SendResult
const networks = new Map<string, Network>()
const carrier = createCarrier({ concurrency: 40, onSend: (message) => (networks.get(message.agentId) ?? sent)(message) })
const sms = createSmsCarrier()
const delivery = startDelivery({
  pool,
  hotPool: pool,
  carriers: { rcs: new Map([[CARRIER, carrier]]), sms, close: async () => {} },
  logger,
  metrics: createDeliveryMetrics(new Registry()),
  links: { key: Buffer.alloc(32), publicUrl: 'http://localhost' },
  erased,
  announce: () => {},
})
after(() => delivery.stop())

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
const HOUR_MS = 3_600_000
const refused: SendResult = { is: 'failed', reason: 'NOT_REACHABLE', detail: '' }

/** Each test has its own range of numbers, so that it counts only its own SMS. */
let ranges = 0
async function createAudience(count: number, network: Network = sent): Promise<Sender & { people: string[] }> {
  const sender = await createSender(pool)
  networks.set(sender.agentId, network)
  ranges += 1
  const people = phones(ranges * 10_000, count)
  await fillGroup(pool, sender.accountId, 1, people)
  return { ...sender, people }
}

/** The sends of this agent, in order. */
function sentBy({ agentId }: Sender): { messageId: string; at: number }[] {
  return carrier.seen.filter((seen) => seen.agentId === agentId && seen.task === 'send')
}

async function ended(campaignId: string, status = 'COMPLETED') {
  return await until(`it is ${status} and no message waits`, async () => {
    const campaign = await findCampaign(pool, campaignId)
    return campaign.status === status && campaign.counts.ACCEPTED === 0 ? campaign : undefined
  })
}

/** Waits until the workers have claimed several times: three messages of another account are sent, one after the other. */
async function claimsPass(): Promise<void> {
  const other = await createSender(pool)
  for (let round = 0; round < 3; round += 1) {
    const messageId = await queueMessage(pool, other)
    await pool.query('select pg_notify($1, $2)', [QUEUE_CHANNEL, 'messages'])
    await until('it is sent', async () => (await statusOf(pool, messageId)) === 'SENT')
  }
}

async function noneLeased({ accountId }: Sender): Promise<void> {
  await until('no message is leased', async () => {
    return (await pool.query('select from queue where account_id = $1 and lease is not null', [accountId])).rowCount === 0
  })
}

/** Runs `act` during the n-th send of the sender, which waits for it. */
async function atThe(n: number, { agentId }: Sender, act: () => Promise<unknown>): Promise<void> {
  const network = networks.get(agentId) as Network
  let count = 0
  await new Promise<void>((resolve, reject) => {
    networks.set(agentId, async (message) => {
      count += 1
      if (count === n) await act().then(() => resolve(), reject)
      return await network(message)
    })
  })
}

const receive = createReceiver(pool)

/** Takes events one by one, eight at a time: each waiting event needs a connection, and a request for one has a time limit. */
async function receiveConcurrently(events: CarrierEvent[]): Promise<void> {
  const waiting = events.values()
  const receiveAll = async () => {
    for (const event of waiting) await receive([event])
  }
  await Promise.all(Array.from({ length: 8 }, receiveAll))
}

/** A carrier that takes 20 ms for each send. */
async function slowly(message: RcsMessage): Promise<SendResult> {
  await new Promise((resolve) => setTimeout(resolve, 20))
  return sent(message)
}

async function assertEverybodyOnce(audience: Sender & { people: string[] }, campaignId: string): Promise<void> {
  const ids = sentBy(audience).map(({ messageId }) => messageId)
  const { rows } = await pool.query<{ recipient: string }>(
    'select recipient from messages where id = any ($1) and campaign_id = $2 order by recipient',
    [ids, campaignId],
  )
  assert.equal(ids.length, audience.people.length)
  assert.deepEqual(
    rows.map(({ recipient }) => recipient),
    audience.people,
  )
}

describe(`a campaign (seed ${seed})`, { concurrency: true }, () => {
  test('starts within two seconds of its time, and never before', async () => {
    const stalls = watchStalls(pool)
    const audience = await createAudience(10)
    const scheduledAt = inMs(1_500)
    const campaignId = await acceptedCampaign(pool, audience, { scheduledAt })
    const { startedAt } = await ended(campaignId)
    const lateMs = (startedAt as Date).getTime() - Date.parse(scheduledAt)
    const stalledMs = await stalls.end()
    assert.ok(lateMs >= 0 && lateMs < 2_000 + 2 * stalledMs, `${lateMs} ms late, on a machine that stalls for ${stalledMs} ms`)
    const firstAt = performance.timeOrigin + Math.min(...sentBy(audience).map(({ at }) => at))
    // Both clocks are of this machine, but that of the process may differ by a few milliseconds since it started.
    assert.ok(firstAt > Date.parse(scheduledAt) - 50, 'no message is sent before')
    await assertEverybodyOnce(audience, campaignId)
  })

  test('starts late when no worker ran at its time', async () => {
    const audience = await createAudience(10)
    const campaignId = await acceptedCampaign(pool, audience, { scheduledAt: inMs(HOUR_MS) })
    await pool.query(`update campaigns set scheduled_at = now() - interval '3 days' where id = $1`, [campaignId])
    const { startedAt } = await ended(campaignId)
    assert.ok(Date.now() - (startedAt as Date).getTime() < 60_000)
    await assertEverybodyOnce(audience, campaignId)
  })

  for (const [what, afterExpiry, expected] of [
    ['and skips their SMS', undefined, { 'SKIPPED EXPIRED': 5 }],
    ['and sends the SMS that were requested after an expiry', { delay: 0 }, { 'SENT RCS_EXPIRED': 5 }],
  ] as const) {
    test(`completes with all messages EXPIRED when it expires before a late start, ${what}`, async () => {
      const audience = await createAudience(5)
      const times = { scheduledAt: inMs(HOUR_MS), expiresAt: inMs(2 * HOUR_MS) }
      const campaignId = await acceptedCampaign(pool, audience, { ...times, sms: afterExpiry ? { afterExpiry } : {} })
      await pool.query(
        `update campaigns set scheduled_at = now() - interval '2 hours', expires_at = now() - interval '1 hour' where id = $1`,
        [campaignId],
      )
      await ended(campaignId)
      assert.deepEqual(await statusCountsOf(pool, campaignId), { EXPIRED: 5 })
      await until('their SMS have their outcome', async () => {
        return (await pool.query('select from sms_queue where account_id = $1', [audience.accountId])).rowCount === 0
      })
      assert.deepEqual(await smsStatusCountsOf(pool, campaignId), expected)
      assert.equal(sms.seen.filter(({ recipient }) => audience.people.includes(recipient)).length, afterExpiry ? 5 : 0)
      await assertCountersEqualRows(pool, campaignId)
      assert.deepEqual(
        carrier.seen.filter(({ agentId }) => agentId === audience.agentId),
        [],
        'neither sent nor revoked',
      )
    })
  }

  test('sends nothing from a pause at a random moment until it is resumed, and then reaches everybody once', async () => {
    const audience = await createAudience(300, slowly)
    const campaignId = await acceptedCampaign(pool, audience)
    await atThe(1 + (seed % 150), audience, () => moveCampaign(pool, campaignId, 'PAUSED'))
    await noneLeased(audience)
    const { length } = sentBy(audience)
    assert.ok(length < 300, 'it was paused before the end')
    await claimsPass()
    assert.equal(sentBy(audience).length, length)
    assert.equal((await findCampaign(pool, campaignId)).status, 'PAUSED')
    await moveCampaign(pool, campaignId, 'RUNNING')
    await ended(campaignId)
    await assertEverybodyOnce(audience, campaignId)
    await assertCountersEqualRows(pool, campaignId)
  })

  test('sends no SMS while it is paused', async () => {
    const audience = await createAudience(5, ({ recipient }) =>
      // One message is still to be sent, so that the campaign is not completed.
      recipient === audience.people[4] ? { is: 'retry', afterMs: HOUR_MS, detail: 'later' } : refused,
    )
    const campaignId = await acceptedCampaign(pool, audience, { sms: { planParams: { delay: 3_600 } } })
    await until('the others have failed', async () => (await statusCountsOf(pool, campaignId))['FAILED NOT_REACHABLE'] === 4)
    await moveCampaign(pool, campaignId, 'PAUSED')
    await pool.query('update sms_queue set due_at = now() where account_id = $1', [audience.accountId])
    const other = await createAudience(1, () => refused)
    const probe = await acceptedCampaign(pool, other, { sms: {} })
    await until('an SMS of another campaign is sent', async () => (await smsStatusCountsOf(pool, probe))['SENT RCS_FAILED'] === 1)
    assert.deepEqual(await smsStatusCountsOf(pool, campaignId), { 'SCHEDULED RCS_FAILED': 4, WAITING: 1 })
    await moveCampaign(pool, campaignId, 'RUNNING')
    await until('its SMS are sent', async () => (await smsStatusCountsOf(pool, campaignId))['SENT RCS_FAILED'] === 4)
  })

  test('withdraws all messages and SMS that are not being sent when it is cancelled at a random moment', async () => {
    const isRefused = ({ recipient }: RcsMessage) => Number(recipient) % 4 === 0
    const audience = await createAudience(300, async (message) => (isRefused(message) ? refused : await slowly(message)))
    const campaignId = await acceptedCampaign(pool, audience, { sms: { planParams: { delay: 3_600 } } })
    await atThe(40 + (seed % 110), audience, () => moveCampaign(pool, campaignId, 'CANCELLED'))
    await noneLeased(audience)
    const { length } = sentBy(audience)
    assert.ok(length < 300, 'it was cancelled before the end')
    await ended(campaignId, 'CANCELLED')
    await claimsPass()
    assert.equal(sentBy(audience).length, length)

    const counts = await statusCountsOf(pool, campaignId)
    const { SENT = 0, 'FAILED NOT_REACHABLE': failed = 0, 'FAILED CAMPAIGN_CANCELLED': withdrawn = 0 } = counts
    assert.deepEqual([SENT + failed, withdrawn], [length, 300 - length], JSON.stringify(counts))
    assert.ok(failed > 0, 'some SMS were scheduled already')
    await pool.query('update sms_queue set due_at = now() where account_id = $1', [audience.accountId])
    await until('those SMS have their outcome', async () => {
      return (await pool.query('select from sms_queue where account_id = $1', [audience.accountId])).rowCount === 0
    })
    assert.deepEqual(await smsStatusCountsOf(pool, campaignId), { WAITING: SENT, 'SKIPPED CANCELLED': failed + withdrawn })
    assert.deepEqual(
      sms.seen.filter(({ recipient }) => audience.people.includes(recipient)),
      [],
    )
    await assertCountersEqualRows(pool, campaignId)
  })

  test('never starts after a cancellation before its time', async () => {
    const audience = await createAudience(3)
    const campaignId = await acceptedCampaign(pool, audience, { scheduledAt: inMs(HOUR_MS) })
    await moveCampaign(pool, campaignId, 'CANCELLED')
    await pool.query(`update campaigns set scheduled_at = now() where id = $1`, [campaignId])
    await ended(await acceptedCampaign(pool, await createAudience(1)))
    assert.deepEqual(await statusCountsOf(pool, campaignId), {})
  })

  test('is not completed while a message is being sent or waits for a retry', async () => {
    let release: (outcome: SendResult) => void = () => {}
    const held = new Promise<SendResult>((resolve) => {
      release = resolve
    })
    let tries = 0
    const audience = await createAudience(5, (message) => {
      if (message.recipient === audience.people[0]) return held
      if (message.recipient !== audience.people[1]) return sent(message)
      tries += 1
      return tries === 1 ? { is: 'retry', afterMs: 300, detail: 'once more' } : sent(message)
    })
    const campaignId = await acceptedCampaign(pool, audience)
    await until('the others are sent', async () => (await findCampaign(pool, campaignId)).counts.SENT === 3)
    await completeDone(pool)
    assert.equal((await findCampaign(pool, campaignId)).status, 'RUNNING')
    await until('one was retried', async () => (await findCampaign(pool, campaignId)).counts.SENT === 4)
    await completeDone(pool)
    assert.equal((await findCampaign(pool, campaignId)).status, 'RUNNING')
    release({ is: 'sent', carrierMessageId: '' })
    await ended(campaignId)
  })

  test('has counters that equal its messages after refusals, an expiry, and late, repeated and unordered receipts', async () => {
    const audience = await createAudience(60, (message) => (Number(message.recipient) % 6 === 0 ? refused : sent(message)))
    const campaignId = await acceptedCampaign(pool, audience)
    await ended(campaignId)
    const { rows } = await pool.query<{ id: string; recipient: string }>('select id, recipient from messages where campaign_id = $1', [
      campaignId,
    ])
    const receipts = (kind: 'delivered' | 'read', remainders: number[]) =>
      rows.flatMap(({ id, recipient }) =>
        remainders.includes(Number(recipient) % 6) ? [receipt({ messageId: id, kind, phone: recipient })] : [],
      )
    const events = [
      ...receipts('delivered', [0, 1, 2]),
      ...receipts('read', [2, 3]),
      ...receipts('delivered', [3, 1]),
      ...receipts('read', [3]),
    ]
    await receiveConcurrently([...events, ...events.toReversed()])
    assert.deepEqual(await statusCountsOf(pool, campaignId), { DELIVERED: 10, 'FAILED NOT_REACHABLE': 10, READ: 20, SENT: 20 })
    await assertCountersEqualRows(pool, campaignId)
    const left = rows.filter(({ recipient }) => [4, 5].includes(Number(recipient) % 6)).map(({ id }) => id)
    await moveExpiry(pool, left, 'now()')
    await until('the rest has expired', async () => (await statusCountsOf(pool, campaignId)).EXPIRED === 20)
    await receiveConcurrently(receipts('read', [0, 1, 2, 3, 4, 5]))
    assert.deepEqual(await statusCountsOf(pool, campaignId), { EXPIRED: 20, 'FAILED NOT_REACHABLE': 10, READ: 30 })
    await assertCountersEqualRows(pool, campaignId)
    await until('all deltas are folded', async () => {
      return (await pool.query('select from report_deltas where campaign_id = $1', [campaignId])).rowCount === 0
    })
    await assertCountersEqualRows(pool, campaignId)
  })

  test('fails its unsent messages and completes when its agent is deactivated', async () => {
    const audience = await createAudience(300, slowly)
    const campaignId = await acceptedCampaign(pool, audience)
    await atThe(30, audience, () => changeAgent(pool, audience.accountId, audience.agentId, { active: false }))
    await ended(campaignId)
    const { SENT = 0, 'FAILED AGENT_INACTIVE': inactive = 0, ...others } = await statusCountsOf(pool, campaignId)
    assert.deepEqual([SENT + inactive, others], [300, {}])
    assert.ok(inactive > 0)
    assert.equal(sentBy(audience).length, SENT)
    await assertCountersEqualRows(pool, campaignId)
  })

  test('reaches no recipient who opted out of its agent, by RCS or SMS', async () => {
    const audience = await createAudience(6)
    const { accountId, agentId, people } = audience
    const other = await createSender(pool)
    for (const number of people.slice(0, 2)) await changeOptOut(pool, { accountId, agentId, phone: number }, true)
    await changeOptOut(pool, { accountId: other.accountId, agentId: other.agentId, phone: people[5] as string }, true)
    const campaignId = await acceptedCampaign(pool, audience, { sms: {} })
    await ended(campaignId)
    assert.deepEqual(await statusCountsOf(pool, campaignId), { 'FAILED OPTED_OUT': 2, SENT: 4 })
    await until('their SMS have their outcome', async () => (await smsStatusCountsOf(pool, campaignId))['SKIPPED OPTED_OUT'] === 2)
    assert.equal(sentBy(audience).length, 4)
    assert.equal(sms.seen.filter(({ recipient }) => people.includes(recipient)).length, 0)
    await assertCountersEqualRows(pool, campaignId)
  })
})
