import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { Registry } from 'prom-client'
import { changeAgent } from '../../src/agents/agents.ts'
import { findCampaign, moveCampaign } from '../../src/campaigns/campaigns.ts'
import type { RcsMessage, SendResult } from '../../src/carriers/carrier.ts'
import { completeDone } from '../../src/delivery/campaigns/lifecycle.ts'
import { startDelivery } from '../../src/delivery/delivery.ts'
import { createDeliveryMetrics } from '../../src/delivery/metrics.ts'
import { QUEUE_CHANNEL } from '../../src/messages/announce.ts'
import { changeOptOut } from '../../src/replies/opt-outs.ts'
import { createSmsCarrier } from '../delivery/sms/support.ts'
import {
  CARRIER,
  createCarrier,
  createReceiver,
  createSender,
  logger,
  queueMessage,
  receipt,
  type Sender,
  sent,
  statusOf,
} from '../delivery/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { moveExpiry } from '../support/expiring.ts'
import { until } from '../support/until.ts'
import { acceptedCampaign, assertCountersEqualRows, fatesOf, fillGroup, phones, smsFatesOf } from './support.ts'

// Campaigns from their acceptance to their end, with everything that moves messages at work. Each test has an agent of its own, whose
// network does what the test wants.

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
  announce: () => {},
})
after(() => delivery.stop())

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
const HOUR_MS = 3_600_000
const refused: SendResult = { is: 'failed', reason: 'NOT_REACHABLE', detail: '' }

/** Every test writes to numbers of its own, so that the SMS of one are not those of another. */
let ranges = 0
async function createAudience(count: number, network: Network = sent): Promise<Sender & { people: string[] }> {
  const sender = await createSender(pool)
  networks.set(sender.agentId, network)
  ranges += 1
  const people = phones(ranges * 10_000, count)
  await fillGroup(pool, sender.accountId, 1, people)
  return { ...sender, people }
}

/** What the network was asked to send for this agent, in order. */
function sentBy({ agentId }: Sender): { messageId: string; at: number }[] {
  return carrier.seen.filter((seen) => seen.agentId === agentId && seen.task === 'send')
}

async function ended(campaignId: string, status = 'COMPLETED') {
  return await until(`it is ${status} and nothing waits`, async () => {
    const campaign = await findCampaign(pool, campaignId)
    return campaign.status === status && campaign.counts.ACCEPTED === 0 ? campaign : undefined
  })
}

/** Several rounds of those who hand messages over have passed: messages of others, one after the other, got through. */
async function roundsPass(): Promise<void> {
  const other = await createSender(pool)
  for (let round = 0; round < 3; round += 1) {
    const messageId = await queueMessage(pool, other)
    await pool.query('select pg_notify($1, $2)', [QUEUE_CHANNEL, 'messages'])
    await until('it is sent', async () => (await statusOf(pool, messageId)) === 'SENT')
  }
}

async function nothingUnderWay({ accountId }: Sender): Promise<void> {
  await until('nothing is under way', async () => {
    return (await pool.query('select from queue where account_id = $1 and lease is not null', [accountId])).rowCount === 0
  })
}

/** Does something while the n-th message of a sender is being handed over, which waits for it. */
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

/** A network that takes a moment for each. */
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
    const audience = await createAudience(10)
    const scheduledAt = inMs(1_500)
    const campaignId = await acceptedCampaign(pool, audience, { scheduledAt })
    const { startedAt } = await ended(campaignId)
    const lateMs = (startedAt as Date).getTime() - Date.parse(scheduledAt)
    assert.ok(lateMs >= 0 && lateMs < 2_000, `${lateMs} ms late`)
    const firstAt = performance.timeOrigin + Math.min(...sentBy(audience).map(({ at }) => at))
    // Both clocks are this machine's; the one of the tests may have been set right by a few milliseconds since it started.
    assert.ok(firstAt > Date.parse(scheduledAt) - 50, 'and nothing is handed over before')
    await assertEverybodyOnce(audience, campaignId)
  })

  test('whose start was missed starts when somebody is there', async () => {
    const audience = await createAudience(10)
    const campaignId = await acceptedCampaign(pool, audience, { scheduledAt: inMs(HOUR_MS) })
    await pool.query(`update campaigns set scheduled_at = now() - interval '3 days' where id = $1`, [campaignId])
    const { startedAt } = await ended(campaignId)
    assert.ok(Date.now() - (startedAt as Date).getTime() < 60_000)
    await assertEverybodyOnce(audience, campaignId)
  })

  for (const [what, afterExpiry, fate] of [
    ['', undefined, { 'SKIPPED EXPIRED': 5 }],
    [', and their SMS go out where they were asked for after an expiry', { delay: 0 }, { 'SENT RCS_EXPIRED': 5 }],
  ] as const) {
    test(`whose start was missed and that has expired completes with everything EXPIRED, never sent${what}`, async () => {
      const audience = await createAudience(5)
      const times = { scheduledAt: inMs(HOUR_MS), expiresAt: inMs(2 * HOUR_MS) }
      const campaignId = await acceptedCampaign(pool, audience, { ...times, sms: afterExpiry ? { afterExpiry } : {} })
      await pool.query(
        `update campaigns set scheduled_at = now() - interval '2 hours', expires_at = now() - interval '1 hour' where id = $1`,
        [campaignId],
      )
      await ended(campaignId)
      assert.deepEqual(await fatesOf(pool, campaignId), { EXPIRED: 5 })
      await until('their SMS have their outcome', async () => {
        return (await pool.query('select from sms_queue where account_id = $1', [audience.accountId])).rowCount === 0
      })
      assert.deepEqual(await smsFatesOf(pool, campaignId), fate)
      assert.equal(sms.seen.filter(({ recipient }) => audience.people.includes(recipient)).length, afterExpiry ? 5 : 0)
      await assertCountersEqualRows(pool, campaignId)
      assert.deepEqual(
        carrier.seen.filter(({ agentId }) => agentId === audience.agentId),
        [],
        'neither sent nor taken back',
      )
    })
  }

  test('paused at a random moment hands nothing over until it is resumed; then everybody has it, once', async () => {
    const audience = await createAudience(300, slowly)
    const campaignId = await acceptedCampaign(pool, audience)
    await atThe(1 + (seed % 150), audience, () => moveCampaign(pool, campaignId, 'PAUSED'))
    await nothingUnderWay(audience)
    const { length } = sentBy(audience)
    assert.ok(length < 300, 'it was paused before the end')
    await roundsPass()
    assert.equal(sentBy(audience).length, length)
    assert.equal((await findCampaign(pool, campaignId)).status, 'PAUSED')
    await moveCampaign(pool, campaignId, 'RUNNING')
    await ended(campaignId)
    await assertEverybodyOnce(audience, campaignId)
    await assertCountersEqualRows(pool, campaignId)
  })

  test('that is paused sends no SMS either, until it is resumed', async () => {
    const audience = await createAudience(4, () => refused)
    const campaignId = await acceptedCampaign(pool, audience, { sms: { planParams: { delay: 3_600 } } })
    await until('all have failed', async () => (await fatesOf(pool, campaignId))['FAILED NOT_REACHABLE'] === 4)
    // From RUNNING, whoever would have completed it meanwhile.
    await pool.query(`update campaigns set status = 'PAUSED', completed_at = null where id = $1`, [campaignId])
    await pool.query('update sms_queue set due_at = now() where account_id = $1', [audience.accountId])
    const other = await createAudience(1, () => refused)
    const probe = await acceptedCampaign(pool, other, { sms: {} })
    await until('an SMS of another one is sent', async () => (await smsFatesOf(pool, probe))['SENT RCS_FAILED'] === 1)
    assert.deepEqual(await smsFatesOf(pool, campaignId), { 'SCHEDULED RCS_FAILED': 4 })
    await moveCampaign(pool, campaignId, 'RUNNING')
    await until('they are sent', async () => (await smsFatesOf(pool, campaignId))['SENT RCS_FAILED'] === 4)
  })

  test('that is cancelled at a random moment: nothing leaves after what was under way, and all the rest is withdrawn, SMS included', async () => {
    const isRefused = ({ recipient }: RcsMessage) => Number(recipient) % 4 === 0
    const audience = await createAudience(300, async (message) => (isRefused(message) ? refused : await slowly(message)))
    const campaignId = await acceptedCampaign(pool, audience, { sms: { planParams: { delay: 3_600 } } })
    await atThe(40 + (seed % 110), audience, () => moveCampaign(pool, campaignId, 'CANCELLED'))
    await nothingUnderWay(audience)
    const { length } = sentBy(audience)
    assert.ok(length < 300, 'it was cancelled before the end')
    await ended(campaignId, 'CANCELLED')
    await roundsPass()
    assert.equal(sentBy(audience).length, length)

    const fates = await fatesOf(pool, campaignId)
    const { SENT = 0, 'FAILED NOT_REACHABLE': failed = 0, 'FAILED CAMPAIGN_CANCELLED': withdrawn = 0 } = fates
    assert.deepEqual([SENT + failed, withdrawn], [length, 300 - length], JSON.stringify(fates))
    assert.ok(failed > 0, 'some had an SMS that was scheduled already')
    await pool.query('update sms_queue set due_at = now() where account_id = $1', [audience.accountId])
    await until('those SMS have their outcome', async () => {
      return (await pool.query('select from sms_queue where account_id = $1', [audience.accountId])).rowCount === 0
    })
    assert.deepEqual(await smsFatesOf(pool, campaignId), { WAITING: SENT, 'SKIPPED CANCELLED': failed + withdrawn })
    assert.deepEqual(
      sms.seen.filter(({ recipient }) => audience.people.includes(recipient)),
      [],
    )
    await assertCountersEqualRows(pool, campaignId)
  })

  test('that is cancelled before its time never starts', async () => {
    const audience = await createAudience(3)
    const campaignId = await acceptedCampaign(pool, audience, { scheduledAt: inMs(HOUR_MS) })
    await moveCampaign(pool, campaignId, 'CANCELLED')
    await pool.query(`update campaigns set scheduled_at = now() where id = $1`, [campaignId])
    await ended(await acceptedCampaign(pool, await createAudience(1)))
    assert.deepEqual(await fatesOf(pool, campaignId), {})
  })

  test('is not completed while one message is under way, or waits to be tried again', async () => {
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
    await until('one was tried again', async () => (await findCampaign(pool, campaignId)).counts.SENT === 4)
    await completeDone(pool)
    assert.equal((await findCampaign(pool, campaignId)).status, 'RUNNING')
    release({ is: 'sent', carrierMessageId: '' })
    await ended(campaignId)
  })

  test('has counters that equal its messages after receipts that come late, twice and in the wrong order, refusals and an expiry', async () => {
    const audience = await createAudience(60, (message) => (Number(message.recipient) % 6 === 0 ? refused : sent(message)))
    const campaignId = await acceptedCampaign(pool, audience)
    await ended(campaignId)
    const take = createReceiver(pool)
    const { rows } = await pool.query<{ id: string; recipient: string }>('select id, recipient from messages where campaign_id = $1', [
      campaignId,
    ])
    const told = (kind: 'delivered' | 'read', remainders: number[]) =>
      rows.flatMap(({ id, recipient }) =>
        remainders.includes(Number(recipient) % 6) ? [receipt({ messageId: id, kind, phone: recipient })] : [],
      )
    const events = [...told('delivered', [0, 1, 2]), ...told('read', [2, 3]), ...told('delivered', [3, 1]), ...told('read', [3])]
    await Promise.all([...events, ...events.reverse()].map((event) => take([event])))
    assert.deepEqual(await fatesOf(pool, campaignId), { DELIVERED: 10, 'FAILED NOT_REACHABLE': 10, READ: 20, SENT: 20 })
    await assertCountersEqualRows(pool, campaignId)
    const left = rows.filter(({ recipient }) => [4, 5].includes(Number(recipient) % 6)).map(({ id }) => id)
    await moveExpiry(pool, left, 'now()')
    await until('the rest has run out', async () => (await fatesOf(pool, campaignId)).EXPIRED === 20)
    await Promise.all(told('read', [0, 1, 2, 3, 4, 5]).map((event) => take([event])))
    assert.deepEqual(await fatesOf(pool, campaignId), { EXPIRED: 20, 'FAILED NOT_REACHABLE': 10, READ: 30 })
    await assertCountersEqualRows(pool, campaignId)
    await until('all changes are added up', async () => {
      return (await pool.query('select from report_deltas where campaign_id = $1', [campaignId])).rowCount === 0
    })
    await assertCountersEqualRows(pool, campaignId)
  })

  test('whose agent is deactivated gives up what has not been sent, is completed, and counts right', async () => {
    const audience = await createAudience(300, slowly)
    const campaignId = await acceptedCampaign(pool, audience)
    await atThe(30, audience, () => changeAgent(pool, audience.accountId, audience.agentId, { active: false }))
    await ended(campaignId)
    const { SENT = 0, 'FAILED AGENT_INACTIVE': inactive = 0, ...others } = await fatesOf(pool, campaignId)
    assert.deepEqual([SENT + inactive, others], [300, {}])
    assert.ok(inactive > 0)
    assert.equal(sentBy(audience).length, SENT)
    await assertCountersEqualRows(pool, campaignId)
  })

  test('leaves those alone who opted out of its agent, by RCS and by SMS, and nobody else', async () => {
    const audience = await createAudience(6)
    const { accountId, agentId, people } = audience
    const other = await createSender(pool)
    for (const number of people.slice(0, 2)) await changeOptOut(pool, { accountId, agentId, phone: number }, true)
    await changeOptOut(pool, { accountId: other.accountId, agentId: other.agentId, phone: people[5] as string }, true)
    const campaignId = await acceptedCampaign(pool, audience, { sms: {} })
    await ended(campaignId)
    assert.deepEqual(await fatesOf(pool, campaignId), { 'FAILED OPTED_OUT': 2, SENT: 4 })
    await until('their SMS have their outcome', async () => (await smsFatesOf(pool, campaignId))['SKIPPED OPTED_OUT'] === 2)
    assert.equal(sentBy(audience).length, 4)
    assert.equal(sms.seen.filter(({ recipient }) => people.includes(recipient)).length, 0)
    await assertCountersEqualRows(pool, campaignId)
  })
})
