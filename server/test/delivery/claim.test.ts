import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAgent } from '../../src/agents/agents.ts'
import { createHotPool, type Executor, type Pool, transaction } from '../../src/db/pool.ts'
import type { ClaimRequest, Entry } from '../../src/delivery/claim.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { ensureRate } from '../../src/delivery/rate.ts'
import { NO_CAMPAIGN, UUID } from '../../src/ids.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { callerAt } from '../support/messages.ts'
import { startNetwork } from '../support/network.ts'
import { startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { createSender, NO_LIMITS, queueMessage, queueMessages, type Sender, sendUntilAccepted } from './support.ts'
import { CARRIER, claimNow as claimUpTo, createHold, makeDue, NO_RATE } from './worker.ts'

const { url, hotPool: pool } = await createTestDatabase({ uncounted: 'messages are removed between the tests' })
await ensureRate(pool, CARRIER)
const [one, two, three] = [await createSender(pool), await createSender(pool), await createSender(pool)]
const BACKLOG = 5_000

// It needs its own database: its workers would claim the messages of the other tests.
const busy = await createTestDatabase()
const network = await startNetwork(10)
const service = await startTestService(
  { HERALD_DATABASE_URL: busy.url, ...NO_LIMITS },
  { findCarriers: async () => ({ rcs: [{ ...network.settings, name: CARRIER }], sms: undefined }) },
)

const claimNow = (fields: Partial<ClaimRequest> = {}, db: Executor = pool) => claimUpTo(db, { free: 10, ...fields })
const idsOf = (entries: Entry[]) => entries.map(({ messageId }) => messageId)

/** How many entries of each sender were claimed. */
async function sharesOf(senders: Sender[], fields: Partial<ClaimRequest> = {}): Promise<number[]> {
  const { entries } = await claimNow(fields)
  return senders.map(({ accountId }) => entries.filter((entry) => entry.accountId === accountId).length)
}

beforeEach(async () => {
  await ownerOf(pool).query('truncate queue, expiries, messages')
  await pool.query(`update agent_assignments set served_at = '-infinity'`)
})

/** Another agent of the first sender's account. */
async function anotherAgent() {
  const { agentId } = await createSender(pool)
  await pool.query('insert into agent_assignments (account_id, agent_id) values ($1, $2)', [one.accountId, agentId])
  return { accountId: one.accountId, agentId }
}

describe('a claim', () => {
  test('leases an entry, and reports whether more are due', async () => {
    await queueMessages(pool, one, { count: 2 })
    for (const expected of [true, false]) {
      const { entries, mayBeMore } = await claimNow({ free: 1 })
      const { rows } = await pool.query('select attempts, claimed from queue where message_id = $1', [entries[0]?.messageId])
      assert.deepEqual([entries.length, mayBeMore, rows], [1, expected, [{ attempts: 1, claimed: true }]])
    }
  })

  test('gives every account one call before any account gets a second one', async () => {
    await queueMessages(pool, one, { count: 100, dueInMs: -1_000 })
    await queueMessages(pool, two, { count: 2 })
    await queueMessages(pool, three)
    assert.deepEqual(await sharesOf([one, two, three], { free: 3 }), [1, 1, 1])
    assert.deepEqual(await sharesOf([one, two, three], { free: 4 }), [2, 1, 0])
  })

  test('with fewer calls than accounts serves the account that waited longest, whatever its backlog', async () => {
    await queueMessages(pool, one, { count: 100, dueInMs: -1_000 })
    await queueMessages(pool, two)
    assert.deepEqual(await sharesOf([one, two], { free: 1 }), [1, 0])
    assert.deepEqual(await sharesOf([one, two], { carrier: { ...NO_RATE, messagesPerSecond: 1 } }), [0, 1])
  })

  test('serves an agent with free slots behind the account’s backlog for an agent without free slots', async () => {
    const otherAgent = await anotherAgent()
    await queueMessages(pool, one, { count: 250, dueInMs: -1_000 })
    const messageId = await queueMessage(pool, otherAgent)
    const { entries } = await claimNow({ carrier: { ...NO_RATE, messagesPerSecondPerAgent: 1 } })
    assert.equal(entries.length, 2)
    assert.ok(idsOf(entries).includes(messageId))
  })

  test('serves an account’s agents in due order', async () => {
    const late = await queueMessage(pool, one)
    const early = await queueMessage(pool, await anotherAgent(), { dueInMs: -60_000 })
    assert.deepEqual(idsOf((await claimNow({ free: 1 })).entries), [early])
    assert.deepEqual(idsOf((await claimNow({ free: 1 })).entries), [late])
  })

  test('takes transactional messages before revocations, and those before campaigns, whenever they are due', async () => {
    const campaign = await queueMessage(pool, one, { priority: 2, dueInMs: -3_000 })
    const revoke = await queueMessage(pool, two, { dueInMs: -2_000, expiresInMs: -1_000, attempts: 1 })
    await expireDue(pool)
    const transactional = await queueMessage(pool, three)
    const order: string[] = []
    for (let turn = 0; turn < 3; turn += 1) order.push(...idsOf((await claimNow({ free: 1 })).entries))
    assert.deepEqual(order, [transactional, revoke, campaign])
  })

  test('gives one account at most half of the free calls and its own together', async () => {
    await queueMessages(pool, one, { count: 100 })
    assert.deepEqual(await sharesOf([one]), [5])
    assert.deepEqual(await sharesOf([one], { calls: new Map([[one.accountId, 4]]) }), [3])
    const { entries, mayBeMore } = await claimNow({ calls: new Map([[one.accountId, 10]]) })
    assert.deepEqual([entries.length, mayBeMore], [0, true])
    await queueMessages(pool, two, { count: 100 })
    assert.deepEqual(await sharesOf([one, two], { calls: new Map([[one.accountId, 10]]) }), [0, 5])
  })

  test('skips paused agents, agents of another carrier and expired messages', async () => {
    await queueMessage(pool, one)
    assert.deepEqual((await claimNow({ pausedAgents: [one.agentId] })).entries, [])
    assert.deepEqual((await claimNow({ carrier: { ...NO_RATE, name: 'unknown' } })).entries, [])

    await createAgent(pool, { agentId: 'elsewhere', name: 'elsewhere', billingType: 'single', carrier: 'another' })
    await pool.query('insert into agent_assignments (account_id, agent_id) values ($1, $2)', [two.accountId, 'elsewhere'])
    const elsewhere = await queueMessage(pool, { accountId: two.accountId, agentId: 'elsewhere' })
    await queueMessage(pool, two, { expiresInMs: -1 })
    assert.deepEqual(await sharesOf([one, two]), [1, 0])
    assert.deepEqual(idsOf((await claimNow({ carrier: { ...NO_RATE, name: 'another' } })).entries), [elsewhere])
  })

  test('takes only due entries, and none again before its lease ends', async () => {
    const due = await queueMessage(pool, one)
    await queueMessage(pool, one, { dueInMs: 60_000 })
    const { entries } = await claimNow()
    const { expiresInMs, nowMs, slotAt, lease, ...entry } = entries[0] as Entry
    const lane = { priority: 0, campaignId: NO_CAMPAIGN }
    const expected = { messageId: due, accountId: one.accountId, agentId: one.agentId, task: 'send', attempts: 1, window: null, ...lane }
    assert.deepEqual([entries.length, entry, slotAt], [1, expected, 0])
    assert.match(lease, UUID)
    assert.ok(expiresInMs > 3_000_000 && expiresInMs <= 3_600_000, `${expiresInMs}`)
    assert.deepEqual((await claimNow()).entries, [])
    await makeDue(pool, [due])
    const again = (await claimNow()).entries
    assert.deepEqual([idsOf(again), again[0]?.attempts], [[due], 2])
  })

  test('never takes an entry that a concurrent claim takes', async () => {
    for (const sender of [one, two, three]) await queueMessages(pool, sender, { count: 400 })
    const other = createHotPool({ connectionString: url }, () => {})
    const claimed: string[] = []
    async function work(db: Pool): Promise<void> {
      for (let isOver = false; !isOver; ) {
        const { entries, mayBeMore } = await claimNow({ free: 20 }, db)
        claimed.push(...idsOf(entries))
        // A claim that read the lanes before another claim leased them gets nothing, and is held back.
        isOver = (entries.length === 0 && !mayBeMore) || claimed.length > 1_200
      }
    }
    await Promise.all([work(pool), work(other), work(pool)])
    await other.end()
    assert.deepEqual([claimed.length, new Set(claimed).size], [1_200, 1_200])
  })

  test(`reads a handful of rows if ${BACKLOG} entries are not due yet`, async () => {
    for (const sender of [one, two]) await queueMessages(pool, sender, { count: BACKLOG / 2, dueInMs: 3_600_000 })
    const read = async (tx: Executor) => {
      const relations = `unnest(array['queue', 'queue_pkey', 'queue_lanes'])`
      const { rows } = await tx.query(`select sum(pg_stat_get_xact_tuples_returned(r::regclass))::int as count from ${relations} as r`)
      return rows[0].count as number
    }
    const count = await transaction(pool, async (tx) => {
      const before = await read(tx)
      assert.deepEqual((await claimNow({ free: 64 }, tx)).entries, [])
      return (await read(tx)) - before
    })
    assert.ok(count > 0 && count < 20, `${count} rows`)
  })
})

describe('in a service, a message of another account', async () => {
  const [crowd, single] = [await createSender(busy.pool), await createSender(busy.pool)]
  const isOf = ({ agentId }: Sender, path: string) => path.includes(`agentId=${agentId}`)

  /** How many messages of the crowd reach the network between the request of another account and its message. */
  async function overtaken(): Promise<number> {
    const before = network.requests.length
    const { messageId } = await sendUntilAccepted(callerAt(service.url, single), {})
    const place = () => network.requests.findIndex(({ path }) => path.includes(messageId))
    await until('it is at the network', () => place() >= 0)
    return place() - before
  }

  test(`overtakes nearly all of a backlog of ${BACKLOG} messages`, async (t) => {
    network.respondWith(async (request) => {
      await sleep(10)
      return { body: { name: request.path } }
    })
    await queueMessages(busy.hotPool, crowd, { count: BACKLOG })
    await until('the backlog is being sent', () => network.requests.length > 50)
    const counts: number[] = []
    while (counts.length < 5) counts.push(await overtaken())
    t.diagnostic(`behind ${counts.join(', ')} of ${BACKLOG}`)
    const { rowCount: left } = await busy.pool.query('select from queue')
    assert.ok((left as number) > 0, 'there was still a backlog')
    assert.ok((counts.toSorted((a, b) => a - b)[2] as number) < BACKLOG / 10, `${counts}`)
  })

  test('is sent while all calls of one account hang', async (t) => {
    await busy.pool.query('delete from queue where lease is null')
    await until('no call is running', async () => (await busy.pool.query('select from queue where lease is not null')).rowCount === 0)
    const { released, release } = createHold(t)
    let hanging = 0
    network.respondWith(async ({ path }) => {
      if (isOf(crowd, path)) {
        hanging += 1
        await released
      }
      return { body: { name: path } }
    })
    await queueMessages(busy.pool, crowd, { count: 100 })
    await until('half of the calls hang', () => hanging === 5)
    for (let turn = 0; turn < 2; turn += 1) assert.equal(await overtaken(), 0)
    release()
  })
})
