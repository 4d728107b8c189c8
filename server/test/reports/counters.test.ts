import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { createHotPool, type Pool, transaction } from '../../src/db/pool.ts'
import { processReplies } from '../../src/delivery/replies.ts'
import { recordResults } from '../../src/delivery/results.ts'
import { NO_CAMPAIGN } from '../../src/ids.ts'
import { visitLink } from '../../src/links/links.ts'
import { changeOptOut } from '../../src/replies/opt-outs.ts'
import { whileOthersCommit } from '../delivery/locks.ts'
import { createSender, receipt } from '../delivery/support.ts'
import { logger } from '../delivery/worker.ts'
import { assertAllCounted, readCounted } from '../support/counted.ts'
import { createTestDatabase } from '../support/database.ts'
import { assertAllEmitted } from '../support/emitted.ts'
import { erased } from '../support/erased.ts'
import { createSteps, type Made, type Sort } from '../support/steps.ts'

// Delivery tests walk the states of messages and SMS; when a test database is dropped, its counters and events are compared with its rows.
// These tests cover messages of campaigns, concurrent actions of recipients, and the comparison itself.

const { url, hotPool: pool } = await createTestDatabase({ unmetered: 'a message is moved to another day by hand' })
const otherNode = createHotPool({ connectionString: url }, () => {})
after(() => otherNode.end())
const { make, makeAllOf, leaseOf, handOver, refuse, sendSms, expire, receive, actionEvent, act, tap, link, counted } =
  await createSteps(pool)

const HOUR_MS = 3_600_000
const SENT = { accepted: 1, sent: 1 }
const REPLIES = [
  { kind: 'wrote', text: 'Thank you' },
  { kind: 'shared-location', latitude: 52.2, longitude: 21 },
  { kind: 'sent-file', url: 'https://example.com/f.png', mimeType: 'image/png', name: 'f.png' },
]

async function sent(sort: Sort, options: Parameters<typeof make>[1] = {}): Promise<Made> {
  const made = await make(sort, options)
  await handOver(made)
  return made
}

/** Several actions arrive together, and two nodes process them concurrently. */
async function actConcurrently(made: Made, actions: Record<string, unknown>[]): Promise<void> {
  await receive(actions.map((action) => actionEvent(made, action)))
  await Promise.all([pool, otherNode, pool, otherNode].map((node: Pool) => processReplies(node, logger, erased)))
}

test('counts the results and receipts of one batch for the account and campaign of each message', async () => {
  const campaigns = [await makeAllOf('campaign', { count: 3 }), await makeAllOf('campaign', { count: 2 })] as [Made[], Made[]]
  const all = campaigns.flat()
  const lease = await leaseOf(all[0] as Made)
  const results = all.map(({ messageId }) => ({ messageId, lease, is: 'sent' }) as const)
  await recordResults(pool, results)
  await receive(all.map((made) => receipt({ ...made, kind: made === all[0] ? 'read' : 'delivered' })))
  for (const [made, counts] of [
    [campaigns[0][0], { accepted: 3, sent: 3, delivered: 3, read: 1 }],
    [campaigns[1][0], { accepted: 2, sent: 2, delivered: 2 }],
  ] as [Made, object][]) {
    assert.deepEqual(await counted(made.sender), { [made.campaignId]: counts })
  }
})

test('gives a message an id of the millisecond of its acceptance', async () => {
  const { rows } = await pool.query<{ id: string; acceptedAt: Date }>('select id, accepted_at as "acceptedAt" from messages')
  const timeOf = (id: string) => Number.parseInt(id.replace('-', '').slice(0, 12), 16)
  for (const { id, acceptedAt } of rows) assert.equal(timeOf(id), acceptedAt.getTime())
})

for (const sort of ['single', 'campaign', 'test'] as const) {
  const expected = ({ campaignId }: Made, counts: object) => (sort === 'test' ? {} : { [campaignId]: { ...SENT, ...counts } })

  describe(`of a ${sort} message, counts ${sort === 'test' ? 'nothing' : 'once'}`, () => {
    test('clicks on a button and on short links', async () => {
      const made = await sent(sort)
      const click = { kind: 'tapped', messageId: made.messageId, buttonId: 'web', text: undefined }
      await actConcurrently(made, [click, click, click])
      const links = [await link(made), await link(made), await link(made, 1)]
      await Promise.all([...links, ...links].map((code, n) => visitLink(n % 2 ? pool : otherNode, code, false)))
      assert.deepEqual(await counted(made.sender), expected(made, { clicked: 1 }))
      const { rowCount } = await pool.query(`select from recipient_actions where message_id = $1 and kind = 'clicked'`, [made.messageId])
      assert.equal(rowCount, 5, 'three taps, and a visit of each link that is not in a copy')
    })

    test('replies of all kinds', async () => {
      const made = await sent(sort)
      const tapped = { kind: 'tapped', messageId: made.messageId, buttonId: 'yes', text: undefined }
      await actConcurrently(made, [tapped, ...REPLIES])
      await tap(made, 'yes')
      assert.deepEqual(await counted(made.sender), expected(made, { replied: 1 }))
    })

    test('opt-outs', async () => {
      const made = await sent(sort)
      for (const text of ['STOP', 'STOP', 'START', 'STOP']) await act(made, { kind: 'wrote', text })
      await act(made, { kind: 'unsubscribed' })
      assert.deepEqual(await counted(made.sender), expected(made, { opted_out: 1 }))
    })
  })
}

describe('an action of a recipient', () => {
  test('counts in the hour of the action that was recorded first', async () => {
    const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
    const made = await sent('campaign')
    const { messageId, sender } = made
    await pool.query(`update messages set accepted_at = accepted_at - interval '1 day' where id = $1`, [messageId])
    await pool.query(`update report_deltas set hour = hour - interval '1 day' where account_id = $1 and accepted > 0`, [sender.accountId])
    for (const hoursAgo of [2, 3, 1, 0]) await tap(made, 'yes', new Date(hour - hoursAgo * HOUR_MS))
    const replied = (await readCounted(pool, sender)).filter(({ counts }) => 'replied' in counts)
    assert.deepEqual(
      replied.map(({ hour: at, counts }) => [at, counts.replied]),
      [[new Date(hour - 2 * HOUR_MS).toISOString(), 1]],
    )
  })

  test('counts in no hour before its message was accepted', async () => {
    const made = await sent('single')
    await tap(made, 'yes', new Date('2011-02-03T04:05:06Z'))
    const hours = (await readCounted(pool, made.sender)).map(({ hour }) => hour)
    const { rows } = await pool.query(`select date_trunc('hour', accepted_at, 'UTC') as hour from messages where id = $1`, [made.messageId])
    assert.equal(hours[0], rows[0].hour.toISOString())
  })

  test('counts when a concurrent action is rolled back', async () => {
    const made = await sent('single')
    const code = await link(made)
    const rollback = new Error('rollback')
    let second: Promise<unknown> | undefined
    const first = transaction(pool, async (tx) => {
      await visitLink(tx, code, false)
      second = visitLink(otherNode, code, false)
      throw rollback
    })
    await assert.rejects(first, rollback)
    await second
    assert.deepEqual(await counted(made.sender), { [NO_CAMPAIGN]: { ...SENT, clicked: 1 } })
  })

  test('does not count when it waits for a concurrent action of the same kind', async () => {
    const made = await sent('campaign')
    const [one, two] = [await link(made), await link(made)]
    await whileOthersCommit(
      pool,
      (tx) => visitLink(tx, one, false),
      () => visitLink(otherNode, two, false),
    )
    assert.deepEqual(await counted(made.sender), { [made.campaignId]: { ...SENT, clicked: 1 } })
  })

  test('does not count without a message, nor an opt-out by the operator', async () => {
    const sender = await createSender(pool)
    const nobody: Made = { sender, campaignId: NO_CAMPAIGN, messageId: randomUUID(), phone: '+48600999999' }
    for (const text of ['Hello', 'STOP']) await act(nobody, { kind: 'wrote', text })
    const { rowCount } = await pool.query('select from recipient_actions where account_id = $1', [sender.accountId])
    assert.equal(rowCount, 2)
    const made = await sent('single')
    await changeOptOut(pool, { ...made.sender, phone: made.phone }, true)
    assert.deepEqual([await counted(sender), await counted(made.sender)], [{}, { [NO_CAMPAIGN]: SENT }])
  })

  test('by SMS counts for the message of the SMS', async () => {
    const made = await make('campaign', { sms: {} })
    await refuse(made)
    await sendSms(made)
    for (const text of ['Thank you', 'STOP']) await act(made, { kind: 'wrote', text, senderNumber: 'MyShop', agentId: undefined })
    const counts = { accepted: 1, failed: 1, sms_sent: 1, replied: 1, opted_out: 1 }
    assert.deepEqual(await counted(made.sender), { [made.campaignId]: counts })
  })
})

const DELTA = `(select ctid from report_deltas where sent > 0 and campaign_id <> '${NO_CAMPAIGN}' limit 1)`
const STEP = `(select message_id from message_events where kind = 'sent' and campaign_id is not null limit 1)`
const PAGE = `(select id from log_pages where events -> 0 ->> 0 = 'message.sent' limit 1)`

describe('the check of a dropped database detects', () => {
  before(async () => {
    await tap(await sent('campaign'), 'web')
    await expire(await make('single', { sms: {} }))
    await assertAllCounted(pool)
    await assertAllEmitted(pool)
  })

  async function assertDetected(fault: string, check: typeof assertAllCounted, message: RegExp): Promise<void> {
    const checked = transaction(pool, async (tx) => {
      assert.notEqual((await tx.query(fault)).rowCount, 0)
      await check(tx)
    })
    await assert.rejects(checked, { message })
  }

  for (const [what, fault] of [
    ['a missing count', `delete from report_deltas where ctid = ${DELTA}`],
    ['a doubled count', `insert into report_deltas select * from report_deltas where ctid = ${DELTA}`],
    ['a count in another hour', `update report_deltas set hour = hour - interval '1 hour' where ctid = ${DELTA}`],
    ['a count of another account', `update report_deltas set account_id = account_id + 1 where ctid = ${DELTA}`],
    ['a count of another campaign', `update report_deltas set campaign_id = '${NO_CAMPAIGN}' where ctid = ${DELTA}`],
    ['a count of another kind', `update report_deltas set delivered = sent, sent = 0 where ctid = ${DELTA}`],
    ['a counted test message', `update messages set test = true where id = ${STEP}`],
    ['a step that no list has', `update message_events set campaign_id = null where message_id = ${STEP}`],
    ['a step in the list of another recipient', `update message_events set recipient = '+48600000000' where message_id = ${STEP}`],
    ['a step at another time', `update message_events set occurred_at = occurred_at - interval '1 ms' where message_id = ${STEP}`],
    ['an action at another time', `update message_events set occurred_at = occurred_at + interval '1 ms' where kind = 'clicked'`],
    ['an action without a step', `delete from message_events where kind = 'clicked'`],
    ['an action in no list', 'update recipient_actions set campaign_id = null where campaign_id is not null'],
    ['a skipped SMS without a time', `delete from message_events where kind = 'sms-skipped'`],
  ] as const) {
    test(what, () => assertDetected(fault, assertAllCounted, /^reports do not say what the rows do:/))
  }

  for (const [what, fault] of [
    ['a missing event', `delete from log_pages where id = ${PAGE}`],
    [
      'a doubled event',
      `insert into log_pages (account_id, event_count, events) select account_id, event_count, events from log_pages where id = ${PAGE}`,
    ],
    ['an event of another account', `update log_pages set account_id = account_id + 1 where id = ${PAGE}`],
    ['an event at another time', `update messages set sent_at = sent_at + interval '1 ms' where id = ${STEP}`],
    ['an event with other data', `update messages set recipient = '+48600000000' where id = ${STEP}`],
    ['an event without its state', `update messages set status = 'ACCEPTED', sent_at = null where id = ${STEP}`],
    ['an action without an event', `update recipient_actions set text = 'other' where kind = 'wrote'`],
    ['a campaign without an event', `update campaigns set status = 'COMPLETED', completed_at = now() where status = 'RUNNING'`],
  ] as const) {
    test(what, () => assertDetected(fault, assertAllEmitted, /^events are not what the rows say:/))
  }
})
