import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fillGroup } from '../../campaigns/support.ts'
import { createSender, NO_LIMITS } from '../../delivery/support.ts'
import { createTestDatabase } from '../../support/database.ts'
import { moveExpiry } from '../../support/expiring.ts'
import { callerAt, newKey, smsFallback } from '../../support/messages.ts'
import { startTestService } from '../../support/service.ts'
import { startSimulator } from '../../support/simulator.ts'
import { until } from '../../support/until.ts'
import { descriptionsOf, reporting } from './support.ts'

// The whole service with both simulated networks: reports equal what callers sent and phones did.

const { url, pool } = await createTestDatabase()
const simulator = await startSimulator()
const service = await startTestService({ HERALD_DATABASE_URL: url, ...NO_LIMITS }, { findCarriers: async () => simulator.settings })
await simulator.ask('webhook', { url: `${service.url}/carriers/${simulator.rcs.name}/webhook` }, 'PUT')
const assertDescribed = await descriptionsOf(service.url)
const caller = reporting(callerAt(service.url, await createSender(pool)), assertDescribed)

/** The endings of the contract, each of which makes a phone behave in its own way. */
const ENDINGS = ['01', '02', '03', '04', '05', '06', '07', '08', '09', '10']
const people = (part: string) => ENDINGS.map((ending) => `+4850010${part}${ending}`)
const BUTTONS = [{ id: 'web', type: 'url', text: 'Web', url: 'https://example.com/a' }]
const message = { inline: { type: 'MESSAGE', content: 'Spring sale', buttons: BUTTONS } }
const TEST_NUMBER = '+48500100999'
const sms = smsFallback(
  { useTestNumbers: true, testNumbers: [TEST_NUMBER], smsShipmentType: 1 },
  { content: 'See https://example.com/sms', urlShortening: true, multipart: true },
)

// A campaign, messages one by one and test messages, to phones of their own.
const [ofCampaign, ofSingle, ofTests] = [people('11'), people('22'), people('55').slice(4, 9)]
await fillGroup(pool, caller.accountId, 1, ofCampaign)
const campaignId = await startCampaign({ segmentIds: [1], smsFallback: sms })
for (const recipient of ofSingle) await caller.accepted({ recipient, message, smsFallback: sms })
assert.equal((await caller.sendTest({ agentId: caller.agentId, recipients: ofTests, message })).status, 202)

async function startCampaign(fields: { segmentIds: number[]; smsFallback?: unknown }): Promise<string> {
  const request = { name: 'Spring sale', agentId: caller.agentId, message, ...fields }
  return (await caller.ask('POST', '/campaigns', request, { 'Idempotency-Key': newKey() })).body.campaignId
}

const REACHED = {
  accepted: ENDINGS,
  sent: ['01', '04', '05', '06', '07', '09', '10'],
  delivered: ['01', '05', '06', '07', '09', '10'],
  read: ['05', '06', '07', '10'],
  failed: ['02', '03', '08'],
  expired: ['04'],
  clicked: ['02', '07'],
  replied: ['06'],
  'opted-out': ['09'],
  'sms-sent': ['02', '03', '08'],
  'sms-delivered': ['02', '03'],
  'sms-failed': ['08'],
}

const COUNTED = {
  ...{
    from: null,
    to: null,
    recipients: 10,
    accepted: 10,
    sent: 7,
    delivered: 6,
    read: 4,
    failed: 3,
    expired: 1,
    clicked: 2,
    replied: 1,
    optedOut: 1,
  },
  ...{ deliveryRate: 0.8571, readRate: 0.6667, clickRate: 0.3333 },
  smsFallback: { sent: 3, delivered: 2, failed: 1, skipped: 1 },
}

/** When the networks are done, the undelivered message expires, and a recipient opens the link of an SMS. Returns the final summary. */
async function goOn(summaryPath: string, numbers: string[]): Promise<unknown> {
  const settled = { sent: 7, delivered: 6, read: 4, failed: 3, clicked: 1, replied: 1, optedOut: 1 }
  await until('the networks are done', async () => {
    const { smsFallback: instead, ...counts } = await caller.report(summaryPath)
    return Object.entries(settled).every(([name, count]) => counts[name] === count) && instead.delivered === 2 && instead.failed === 1
  })
  const { rows: due } = await pool.query<{ id: string }>(
    `select id from messages where account_id = $1 and status = 'SENT' and recipient = any ($2)`,
    [caller.accountId, numbers],
  )
  await moveExpiry(
    pool,
    due.map(({ id }) => id),
    'now()',
  )
  const { messages } = await simulator.ask(`phones/${numbers[1]}`)
  const [link] = /http\S+/.exec(messages.at(-1).text) as RegExpExecArray
  const headers = { 'user-agent': 'Mozilla/5.0 (Linux; Android 14) Chrome/130.0 Mobile' }
  for (let visit = 0; visit < 2; visit += 1) assert.equal((await fetch(link, { redirect: 'manual', headers })).status, 302)
  await until('a copy was sent', async () => (await simulator.ask(`phones/${TEST_NUMBER}`)).messages.length > 0)
  return await until('all is counted', async () => {
    const summary = await caller.report(summaryPath)
    return summary.expired === 1 && summary.clicked === 2 && summary.smsFallback.skipped === 1 ? summary : undefined
  })
}

describe('reports of delivered messages', () => {
  test('count and list a campaign to a phone of each behaviour, without test messages and copies of SMS', async () => {
    const path = `/campaigns/${campaignId}`
    assert.deepEqual(await goOn(`${path}/summary`, ofCampaign), { campaignId, ...COUNTED })

    for (const [eventType, endings] of Object.entries(REACHED)) {
      const items = await caller.walk(`${path}/recipients/${eventType}?sort=recipient`, 4)
      assert.deepEqual(
        items.map(({ recipient }) => recipient),
        endings.map((ending) => `+485001011${ending}`),
        eventType,
      )
      const [{ messageId, recipient }] = items as [{ messageId: string; recipient: string }]
      assert.equal((await caller.read(messageId)).body.recipient, recipient)
    }
    const failed = await caller.walk(`${path}/recipients/failed?sort=recipient`)
    assert.deepEqual(
      failed.map(({ reason }) => reason),
      ['NOT_REACHABLE', 'REJECTED', 'NOT_REACHABLE'],
    )
    const [smsFailed] = await caller.walk(`${path}/recipients/sms-failed`)
    const { body } = await caller.read(smsFailed.messageId)
    assert.equal(smsFailed.reason, body.smsFallback.reason)
    await assertActions(path, ofCampaign)
  })

  async function assertActions(path: string, numbers: string[]): Promise<void> {
    const nothing = { buttonId: null, text: null, payload: null, url: null }
    const actions = await caller.walk(`${path}/action-details?sort=recipient`, 1)
    assert.deepEqual(
      actions.map(({ messageId, occurredAt, ...shown }) => shown),
      [
        { recipient: numbers[1], action: 'clicked', ...nothing, url: 'https://example.com/sms' },
        { recipient: numbers[5], action: 'wrote', ...nothing, text: 'Thank you' },
        { recipient: numbers[6], action: 'clicked', ...nothing, buttonId: 'web', text: 'Web', url: 'https://example.com/a' },
        { recipient: numbers[8], action: 'opted-out', ...nothing, text: 'STOP' },
      ],
    )
  }

  test('count single messages in the same way, without campaigns', async () => {
    assert.deepEqual(await goOn('/messages/summary', ofSingle), COUNTED)
    const { items } = await caller.report('/messages/aggregations')
    for (const name of ['sent', 'delivered', 'read', 'failed', 'expired', 'clicked', 'replied'] as const) {
      const sum = items.reduce((total: number, item: Record<string, number>) => total + (item[name] ?? 0), 0)
      assert.equal(sum, COUNTED[name], name)
    }
  })

  test('name the reason when a campaign fails for a recipient who opted out', async () => {
    await fillGroup(pool, caller.accountId, 2, ['+48500101109', '+48500101110'])
    const path = `/campaigns/${await startCampaign({ segmentIds: [2] })}`
    await until('one is read, and one has failed', async () => {
      const { read, failed } = await caller.report(`${path}/summary`)
      return read === 1 && failed === 1
    })
    const [item] = await caller.walk(`${path}/recipients/failed`)
    assert.deepEqual([item.recipient, item.reason], ['+48500101109', 'OPTED_OUT'])
  })
})
