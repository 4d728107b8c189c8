import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { Registry } from 'prom-client'
import { findCampaign, moveCampaign } from '../../src/campaigns/campaigns.ts'
import type { SendResult } from '../../src/carriers/carrier.ts'
import { createHotPool } from '../../src/db/pool.ts'
import { fanOut } from '../../src/delivery/campaigns/fan-out.ts'
import { completeDone, startDue } from '../../src/delivery/campaigns/lifecycle.ts'
import { withdrawCancelled } from '../../src/delivery/campaigns/withdraw.ts'
import { startDelivery } from '../../src/delivery/delivery.ts'
import { FAILURES } from '../../src/delivery/failures.ts'
import { createDeliveryMetrics } from '../../src/delivery/metrics.ts'
import { ensurePace } from '../../src/delivery/rate.ts'
import { recordResults } from '../../src/delivery/results.ts'
import { OperatorError } from '../../src/errors.ts'
import { changeOptOut } from '../../src/replies/opt-outs.ts'
import { acceptedCampaign, fillGroup, makeAll, phones } from '../campaigns/support.ts'
import { claimMessages, createSmsCarrier } from '../delivery/sms/support.ts'
import { CARRIER, createCarrier, createSender, logger, type Sender, sent } from '../delivery/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { assertAllTold, readTold, type Told } from '../support/told.ts'
import { until } from '../support/until.ts'
import { assertAsDocumented } from './documented.ts'

// The course of a campaign is told step by step, each once, whoever else does the same work at that moment.

const { url, hotPool: pool } = await createTestDatabase()
const otherNode = createHotPool({ connectionString: url }, () => {})
after(() => otherNode.end())
const nodes = [pool, otherNode, pool, otherNode]
await ensurePace(pool, CARRIER)

const SOON = 3_600_000
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()

let ranges = 0
/** An account with group 1, of so many people of its own. */
async function createAudience(count: number): Promise<Sender & { people: string[] }> {
  const sender = await createSender(pool)
  ranges += 1
  const people = phones(ranges * 1_000, count)
  await fillGroup(pool, sender.accountId, 1, people)
  return { ...sender, people }
}

type Step = 'started' | 'completed' | 'cancelled'

/** What is told of this step of a campaign, with the campaign's own time. */
async function toldOf(sender: Sender, campaignId: string, step: Step, fields: Record<string, unknown> = {}): Promise<Told> {
  const campaign = await findCampaign(pool, campaignId)
  const occurredAt = campaign[`${step}At`] as Date
  const data = { campaignId, name: 'Spring sale', agentId: sender.agentId, ...fields }
  return { kind: `campaign.${step}`, subjectId: campaignId, occurredAt, data }
}

async function sendAll(sender: Sender): Promise<void> {
  const claimed = await claimMessages(pool)
  await recordResults(
    pool,
    claimed.map(({ messageId, lease }) => ({ messageId, lease, is: 'sent' })),
  )
  const { rowCount } = await pool.query('select from queue where account_id = $1', [sender.accountId])
  assert.equal(rowCount, 0)
}

async function everywhere(work: (node: typeof pool) => Promise<unknown>): Promise<void> {
  await Promise.all(nodes.map(work))
}

describe('a campaign', () => {
  test('is told as started and as completed, once by several workers, and each message with the campaign it is of', async () => {
    const audience = await createAudience(3)
    const clientReferenceId = 'spring "27" \\ 🎈'
    const campaignId = await acceptedCampaign(pool, audience, { clientReferenceId })
    assert.deepEqual(await readTold(pool, audience), [])
    await everywhere(startDue)
    const started = await toldOf(audience, campaignId, 'started', { clientReferenceId })
    assert.deepEqual(await readTold(pool, audience), [started])
    await everywhere(completeDone)
    await makeAll(pool)
    await everywhere(completeDone)
    assert.deepEqual(await readTold(pool, audience), [started], 'nothing is completed before all is handed over')
    await sendAll(audience)
    await everywhere(completeDone)
    const [first, ...others] = await readTold(pool, audience)
    const completed = await toldOf(audience, campaignId, 'completed', { clientReferenceId, recipients: 3 })
    assert.deepEqual([first, others.pop()], [started, completed])
    assert.deepEqual(
      others.map(({ kind, data }) => [kind, data]).toSorted(byRecipient),
      audience.people.map((recipient) => {
        const messageId = others.find(({ data }) => data.recipient === recipient)?.subjectId
        return ['message.sent', { messageId, agentId: audience.agentId, recipient, campaignId, test: false }]
      }),
    )
  })

  test('with nobody in it is told as completed, with no recipients', async () => {
    const audience = await createAudience(0)
    const campaignId = await acceptedCampaign(pool, audience)
    await makeAll(pool)
    await completeDone(pool)
    const completed = await toldOf(audience, campaignId, 'completed', { recipients: 0 })
    assert.deepEqual(await readTold(pool, audience), [await toldOf(audience, campaignId, 'started'), completed])
  })

  test('that is paused or resumed is not told as anything, by one or by several', async () => {
    const audience = await createAudience(1)
    const campaignId = await acceptedCampaign(pool, audience)
    await startDue(pool)
    await everywhere((node) => moveCampaign(node, campaignId, 'PAUSED'))
    await everywhere((node) => moveCampaign(node, campaignId, 'RUNNING'))
    assert.deepEqual(await readTold(pool, audience), [await toldOf(audience, campaignId, 'started')])
    await moveCampaign(pool, campaignId, 'CANCELLED')
  })

  test('whose time has not come is told as cancelled alone, once, and never as started', async () => {
    const audience = await createAudience(1)
    const campaignId = await acceptedCampaign(pool, audience, { scheduledAt: inMs(SOON) })
    await startDue(pool)
    await everywhere((node) => moveCampaign(node, campaignId, 'CANCELLED'))
    await pool.query('update campaigns set scheduled_at = created_at where id = $1', [campaignId])
    await startDue(pool)
    await assert.rejects(moveCampaign(pool, campaignId, 'PAUSED'), OperatorError)
    assert.deepEqual(await readTold(pool, audience), [await toldOf(audience, campaignId, 'cancelled')])
  })

  test('that is cancelled is told as that, before its messages as failed, each once by several workers', async () => {
    const audience = await createAudience(3)
    const campaignId = await acceptedCampaign(pool, audience, { sms: {} })
    await makeAll(pool)
    await everywhere((node) => moveCampaign(node, campaignId, 'CANCELLED'))
    await everywhere(withdrawCancelled)
    await withdrawCancelled(pool)
    await completeDone(pool)
    const [started, cancelled, ...failed] = await readTold(pool, audience)
    assert.deepEqual(
      [started, cancelled],
      [await toldOf(audience, campaignId, 'started'), await toldOf(audience, campaignId, 'cancelled', { recipients: 3 })],
    )
    const failure = { reason: 'CAMPAIGN_CANCELLED', description: FAILURES.CAMPAIGN_CANCELLED }
    assert.deepEqual(
      failed.map(({ kind, data }) => [kind, data]).toSorted(byRecipient),
      audience.people.map((recipient) => {
        const messageId = failed.find(({ data }) => data.recipient === recipient)?.subjectId
        return ['message.failed', { messageId, agentId: audience.agentId, recipient, campaignId, test: false, failure }]
      }),
    )
  })

  test('that is cancelled while its messages are made has a number of recipients that nobody knows', async () => {
    const audience = await createAudience(1)
    const campaignId = await acceptedCampaign(pool, audience)
    await startDue(pool)
    await pool.query('update campaigns set recipients = 1 where id = $1', [campaignId])
    await moveCampaign(pool, campaignId, 'CANCELLED')
    await fanOut(pool)
    assert.deepEqual((await readTold(pool, audience)).at(-1), await toldOf(audience, campaignId, 'cancelled'))
  })

  test('that is started, completed and cancelled at the same moment ends in one way, and is told so', async () => {
    const ends: string[] = []
    for (let round = 0; round < 6; round += 1) {
      const audience = await createAudience(0)
      const campaignId = await acceptedCampaign(pool, audience)
      const cancel = (node: typeof pool) => moveCampaign(node, campaignId, 'CANCELLED').catch(() => {})
      if (round < 3) await Promise.all([startDue(pool), cancel(otherNode), startDue(otherNode), cancel(pool)])
      else {
        await makeAll(pool)
        await Promise.all([completeDone(pool), cancel(otherNode), completeDone(otherNode), cancel(pool)])
      }
      const { status, startedAt } = await findCampaign(pool, campaignId)
      const steps = [...(startedAt === undefined ? [] : ['started']), status.toLowerCase()]
      assert.deepEqual(
        (await readTold(pool, audience)).map(({ kind }) => kind),
        steps.map((step) => `campaign.${step}`),
      )
      ends.push(status)
    }
    assert.ok(ends.every((status) => status === 'CANCELLED' || status === 'COMPLETED'))
  })
})

function byRecipient([, a]: unknown[], [, b]: unknown[]): number {
  return (a as { recipient: string }).recipient < (b as { recipient: string }).recipient ? -1 : 1
}

test('what two nodes at work make of campaigns, with refusals, SMS and people who opted out, is told once', async (t) => {
  const audience = await createAudience(60)
  const { accountId, agentId, people } = audience
  const [out, ...others] = people as [string, ...string[]]
  await changeOptOut(pool, { accountId, agentId, phone: out }, true)
  const refusals = new Set(others.slice(0, 20))
  const onSend = ({ messageId, recipient }: { messageId: string; recipient: string }): SendResult =>
    refusals.has(recipient) ? { is: 'failed', reason: 'NOT_REACHABLE', detail: '' } : sent({ messageId })
  const workers = nodes.slice(0, 2).map((node) =>
    startDelivery({
      pool: node,
      hotPool: node,
      carriers: { rcs: new Map([[CARRIER, createCarrier({ concurrency: 20, onSend })]]), sms: createSmsCarrier(), close: async () => {} },
      logger,
      metrics: createDeliveryMetrics(new Registry()),
      links: { key: Buffer.alloc(32), publicUrl: 'http://localhost' },
      announce: () => {},
    }),
  )
  t.after(() => Promise.all(workers.map(({ stop }) => stop())))
  const campaignId = await acceptedCampaign(pool, audience, { sms: {} })
  await until('it is completed, and its SMS are sent', async () => {
    const told = await readTold(pool, audience)
    const count = (kind: string) => told.filter((one) => one.kind === kind).length
    return count('campaign.completed') > 0 && count('sms.sent') >= 20
  })
  const told = await readTold(pool, audience)
  const counts = Object.fromEntries([...Map.groupBy(told, ({ kind }) => kind)].map(([kind, { length }]) => [kind, length]))
  assert.deepEqual(counts, {
    'recipient.opted_out': 1,
    'campaign.started': 1,
    'message.sent': 39,
    'message.failed': 21,
    'sms.sent': 20,
    'campaign.completed': 1,
  })
  const failure = { reason: 'OPTED_OUT', description: FAILURES.OPTED_OUT }
  const refused = told.find(({ kind, data }) => kind === 'message.failed' && data.recipient === out)
  assert.deepEqual(refused?.data, { messageId: refused?.subjectId, agentId, recipient: out, campaignId, test: false, failure })
  const bySms = told.filter(({ kind }) => kind === 'sms.sent')
  assert.ok(bySms.every(({ data }) => data.campaignId === campaignId && data.segments === 1))
})

test('all that these campaigns’ messages went through was told, as it is documented', async () => {
  assert.ok((await assertAllTold(pool)) > 80)
  await assertAsDocumented(pool)
})
