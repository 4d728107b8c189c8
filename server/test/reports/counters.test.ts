import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { changeAgent } from '../../src/agents/agents.ts'
import { moveCampaign } from '../../src/campaigns/campaigns.ts'
import { createHotPool, transaction } from '../../src/db/pool.ts'
import { withdrawCancelled } from '../../src/delivery/campaigns/withdraw.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { failInactive } from '../../src/delivery/fail.ts'
import { recordResults } from '../../src/delivery/results.ts'
import { NO_CAMPAIGN } from '../../src/ids.ts'
import { createAcceptor } from '../../src/messages/accept.ts'
import { requestHash } from '../../src/messages/request-hash.ts'
import { makeAll } from '../campaigns/support.ts'
import { nextPhone } from '../delivery/sms/support.ts'
import { createReceiver, createSender, kindsOf, receipt } from '../delivery/support.ts'
import { assertAllCounted, readCounted } from '../support/counted.ts'
import { createTestDatabase } from '../support/database.ts'
import { TEXT } from '../support/templates.ts'
import { type Made, type Sort, startCounting } from './counting.ts'

// What becomes of a message is counted once, under the campaign that it is of, by the statement that makes it so; whatever else comes
// changes nothing. When the file ends, all counters are held against the rows once more.

const { url, hotPool: pool } = await createTestDatabase()
const otherNode = createHotPool({ connectionString: url }, () => {})
after(() => otherNode.end())
const { make, makeAllOf, leaseOf, handOver, refuse, report, runOut, expire, tap, counted } = await startCounting(pool)
const [take, takeElsewhere] = [createReceiver(pool), createReceiver(otherNode)]

/** These are all the counts of its account. */
async function assertCounted({ sender, campaignId }: Made, counts: Record<string, number>): Promise<void> {
  assert.deepEqual(await counted(sender), { [campaignId]: counts })
}

for (const sort of ['own', 'campaign'] satisfies Sort[]) {
  describe(`of a message ${sort === 'own' ? 'that an account sends by itself' : 'of a campaign'} is counted`, () => {
    test('that it was accepted', async () => {
      const made = await make(sort)
      await assertCounted(made, { accepted: 1 })
      await makeAll(pool)
      await assertCounted(made, { accepted: 1 })
    })

    test('that it was sent, however often it was tried, and however often that is written down', async () => {
      const made = await make(sort)
      const { messageId } = made
      await handOver(made, { is: 'retry', afterMs: 0, detail: '' })
      await handOver(made, { is: 'not-tried', afterMs: 0 })
      await assertCounted(made, { accepted: 1 })
      const lease = await leaseOf(made)
      await recordResults(pool, [{ messageId, lease: randomUUID(), is: 'sent' }])
      await assertCounted(made, { accepted: 1 })
      await Promise.all([pool, otherNode].map((node) => recordResults(node, [{ messageId, lease, is: 'sent' }])))
      await recordResults(pool, [{ messageId, lease, is: 'failed', reason: 'REJECTED', detail: '' }])
      await assertCounted(made, { accepted: 1, sent: 1 })
    })

    test('that it was delivered and read, however often receipts come, to however many nodes', async () => {
      const made = await make(sort)
      await handOver(made)
      for (const kind of ['delivered', 'read'] as const) {
        const receipts = Array.from({ length: 2 }, () => receipt({ ...made, kind }))
        await Promise.all([take(receipts), takeElsewhere(receipts)])
        await report(made, kind)
        await assertCounted(made, { accepted: 1, sent: 1, delivered: 1, ...(kind === 'read' && { read: 1 }) })
      }
      await report(made, 'delivered')
      await assertCounted(made, { accepted: 1, sent: 1, delivered: 1, read: 1 })
    })

    test('that it was sent and delivered, where a phone that has read it is quicker than the network’s answer', async () => {
      const made = await make(sort)
      const lease = await leaseOf(made)
      await report(made, 'read')
      await assertCounted(made, { accepted: 1, sent: 1, delivered: 1, read: 1 })
      await report(made, 'delivered')
      await recordResults(pool, [{ messageId: made.messageId, lease, is: 'sent' }])
      await assertCounted(made, { accepted: 1, sent: 1, delivered: 1, read: 1 })
    })

    test('that it failed, and nothing that a receipt says after that', async () => {
      const made = await make(sort)
      await refuse(made)
      await assertCounted(made, { accepted: 1, failed: 1 })
      await report(made, 'delivered')
      await report(made, 'read')
      await runOut(made)
      await expireDue(pool)
      await assertCounted(made, { accepted: 1, failed: 1 })
      assert.deepEqual(new Set(await kindsOf(pool, made.messageId)), new Set(['failed', 'delivered-late', 'read-late']))
    })

    test('that it expired, once by two workers, beside that it was sent, and nothing that is late', async () => {
      const made = await make(sort)
      await handOver(made)
      await runOut(made)
      await Promise.all([expireDue(pool), expireDue(otherNode)])
      await expireDue(pool)
      await report(made, 'read')
      await assertCounted(made, { accepted: 1, sent: 1, expired: 1 })
    })

    test('that it expired while it was being sent, and not that it was sent', async () => {
      const made = await make(sort)
      const lease = await leaseOf(made)
      await expire(made)
      await recordResults(pool, [{ messageId: made.messageId, lease, is: 'sent' }])
      await assertCounted(made, { accepted: 1, expired: 1 })
    })

    test('that it was given up with its agent, once by two workers', async () => {
      const made = await make(sort)
      await changeAgent(pool, made.sender.accountId, made.sender.agentId, { active: false })
      await Promise.all([failInactive(pool), failInactive(otherNode)])
      await failInactive(pool)
      await assertCounted(made, { accepted: 1, failed: 1 })
    })

    test('with many others by one statement, each for its own account and campaign', async () => {
      const [one, two] = [await makeAllOf(sort, { count: 3 }), await makeAllOf(sort, { count: 2 })]
      const all = [...one, ...two]
      const lease = await leaseOf(one[0] as Made)
      await recordResults(
        pool,
        all.map(({ messageId }) => ({ messageId, lease, is: 'sent' })),
      )
      await take(all.map((made) => receipt({ ...made, kind: made === one[0] ? 'read' : 'delivered' })))
      await assertCounted(one[0] as Made, { accepted: 3, sent: 3, delivered: 3, read: 1 })
      await assertCounted(two[0] as Made, { accepted: 2, sent: 2, delivered: 2 })
    })
  })
}

test('a request that comes again, at once or later, is counted once; two requests at once are counted for the account of each', async () => {
  const [one, two] = [await createSender(pool), await createSender(pool)]
  const accept = [createAcceptor(pool, () => {}), createAcceptor(otherNode, () => {})]
  const hash = requestHash({})
  const submissions = [one, two].map(({ accountId, agentId }) => {
    const idempotency = { key: randomUUID(), hash }
    return { accountId, agentId, message: { inline: TEXT as never }, recipients: [nextPhone()], test: false, idempotency }
  })
  const again = () => accept.flatMap((node) => submissions.flatMap((submission) => [node(submission), node(submission)]))
  await Promise.all(again())
  await Promise.all(again())
  for (const sender of [one, two]) assert.deepEqual(await counted(sender), { [NO_CAMPAIGN]: { accepted: 1 } })
})

test('a message’s id is of the millisecond in which it was accepted: lists in the order of ids are in the order of time', async () => {
  const { rows } = await pool.query<{ id: string; acceptedAt: Date }>('select id, accepted_at as "acceptedAt" from messages')
  assert.ok(rows.length > 20)
  const timeOf = (id: string) => Number.parseInt(id.replace('-', '').slice(0, 12), 16)
  assert.deepEqual(
    rows.filter(({ id, acceptedAt }) => timeOf(id) !== acceptedAt.getTime()),
    [],
  )
})

test('of a campaign that is cancelled, what is withdrawn is counted as failed, and its SMS as skipped, once by two workers', async () => {
  const [waiting, sent] = (await makeAllOf('campaign', { count: 2, sms: {} })) as [Made, Made]
  const lease = await leaseOf(sent)
  await recordResults(pool, [
    { messageId: sent.messageId, lease, is: 'sent' },
    { messageId: waiting.messageId, lease, is: 'not-tried', afterMs: 0 },
  ])
  await moveCampaign(pool, sent.campaignId, 'CANCELLED')
  await Promise.all([withdrawCancelled(pool), withdrawCancelled(otherNode)])
  await withdrawCancelled(pool)
  await assertCounted(sent, { accepted: 2, sent: 1, failed: 1, sms_skipped: 1 })
})

test('of test messages nothing is counted, whatever becomes of them', async () => {
  const read = await make('test')
  await handOver(read)
  await report(read, 'read')
  const failed = await make('test', { sender: read.sender })
  await refuse(failed)
  const expired = await make('test', { sender: read.sender, sms: {} })
  await expire(expired)
  const waiting = await make('test', { sender: read.sender })
  await changeAgent(pool, read.sender.accountId, read.sender.agentId, { active: false })
  await failInactive(pool)
  const timelines = await Promise.all([read, failed, expired, waiting].map(({ messageId }) => kindsOf(pool, messageId)))
  assert.deepEqual(
    timelines.map((kinds) => new Set(kinds)),
    [['sent', 'delivered', 'read'], ['failed'], ['expired', 'sms-skipped'], ['failed']].map((kinds) => new Set(kinds)),
  )
  assert.deepEqual(await readCounted(pool, read.sender), [])
})

const CAMPAIGNS = `campaign_id <> '${NO_CAMPAIGN}'`
const CHANGED = `(select ctid from report_deltas where sent > 0 and ${CAMPAIGNS} limit 1)`
const EVENT = `(select message_id from message_events where kind = 'sent' and campaign_id is not null limit 1)`

describe('the check that ends every test sees', () => {
  before(async () => {
    const made = await make('campaign')
    await handOver(made)
    await tap(made, 'web')
    await expire(await make('own', { sms: {} }))
    await assertAllCounted(pool)
  })

  for (const [what, fault] of [
    ['a count that is missing', `delete from report_deltas where ctid = ${CHANGED}`],
    ['a count that is doubled', `insert into report_deltas select * from report_deltas where ctid = ${CHANGED}`],
    ['a count of another hour', `update report_deltas set hour = hour - interval '1 hour' where ctid = ${CHANGED}`],
    ['a count of another account', `update report_deltas set account_id = account_id + 1 where ctid = ${CHANGED}`],
    ['a count of another campaign', `update report_deltas set campaign_id = '${NO_CAMPAIGN}' where ctid = ${CHANGED}`],
    ['a count of something else', `update report_deltas set delivered = sent, sent = 0 where ctid = ${CHANGED}`],
    ['a test message that was counted', `update messages set test = true where campaign_id is null and status = 'READ'`],
    ['an event that no list has', `update message_events set campaign_id = null where message_id = ${EVENT}`],
    ['an event that is listed for another recipient', `update message_events set recipient = '+48600000000' where message_id = ${EVENT}`],
    [
      'an event that is listed at another time',
      `update message_events set occurred_at = occurred_at - interval '1 ms' where message_id = ${EVENT}`,
    ],
    [
      'a deed that was noted at no deed’s time',
      `update message_events set occurred_at = occurred_at + interval '1 ms' where kind = 'clicked'`,
    ],
    ['a deed that was not noted', `delete from message_events where kind = 'clicked'`],
    ['a deed that is listed for no campaign', `update recipient_actions set campaign_id = null where campaign_id is not null`],
    ['an SMS that was skipped at no time', `delete from message_events where kind = 'sms-skipped'`],
  ] as const) {
    test(what, async () => {
      const seen = transaction(pool, async (tx) => {
        assert.notEqual((await tx.query(fault)).rowCount, 0)
        await assertAllCounted(tx)
      })
      await assert.rejects(seen, { message: /^reports do not say what the rows do:/ })
    })
  }
})
