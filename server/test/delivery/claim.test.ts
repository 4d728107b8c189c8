import assert from 'node:assert/strict'
import { beforeEach, describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAgent } from '../../src/agents/agents.ts'
import { createHotPool, type Executor, type Pool, transaction } from '../../src/db/pool.ts'
import { type ClaimRequest, claim } from '../../src/delivery/claim.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { ensurePace } from '../../src/delivery/rate.ts'
import { NO_CAMPAIGN, UUID } from '../../src/ids.ts'
import { createTestDatabase } from '../support/database.ts'
import { callerAt } from '../support/messages.ts'
import { startNetwork } from '../support/network.ts'
import { startTestService } from '../support/service.ts'
import { watchStalls } from '../support/stalls.ts'
import { until } from '../support/until.ts'
import {
  CARRIER,
  type CarrierOptions,
  createCarrier,
  createSender,
  NO_LIMITS,
  queueMessage,
  queueMessages,
  type Seen,
  type Sender,
  sent,
  startWorker,
} from './support.ts'

const { url, hotPool: pool } = await createTestDatabase({ uncounted: 'messages are removed between the tests' })
await ensurePace(pool, CARRIER)
const [one, two, three] = [await createSender(pool), await createSender(pool), await createSender(pool)]
const BACKLOG = 5_000

const NO_RATE = { name: CARRIER, messagesPerSecond: undefined, messagesPerSecondPerAgent: undefined }

async function claimNow(fields: Partial<ClaimRequest> = {}, db: Executor = pool) {
  const nothing = { carrier: NO_RATE, free: 10, leaseMs: 60_000, pausedAgents: [], calls: new Map() }
  return await claim(db as Pool, { ...nothing, ...fields })
}

/** How many were claimed, by account, in the order of `senders`. */
async function sharesOf(senders: Sender[], fields: Partial<ClaimRequest> = {}): Promise<number[]> {
  const { entries } = await claimNow(fields)
  return senders.map(({ accountId }) => entries.filter((entry) => entry.accountId === accountId).length)
}

beforeEach(async () => {
  await pool.query('truncate queue, expiries, messages')
  await pool.query(`update agent_assignments set served_at = '-infinity'`)
})

describe('a claim takes', () => {
  test('an entry, and reports whether more are due than it took', async () => {
    await queueMessages(pool, one, { count: 2 })
    for (const expected of [true, false]) {
      const { entries, isHeldBack } = await claimNow({ free: 1 })
      const { rows } = await pool.query('select attempts, claimed from queue where message_id = $1', [entries[0]?.messageId])
      assert.deepEqual([entries.length, isHeldBack, rows], [1, expected, [{ attempts: 1, claimed: true }]])
    }
  })

  test('one of every account before the second of any', async () => {
    await queueMessages(pool, one, { count: 100, dueInMs: -1_000 })
    await queueMessages(pool, two, { count: 2 })
    await queueMessages(pool, three)
    assert.deepEqual(await sharesOf([one, two, three], { free: 3 }), [1, 1, 1])
    assert.deepEqual(await sharesOf([one, two, three], { free: 4 }), [2, 1, 0])
  })

  test('where there are fewer turns than accounts, of the one that waited longest, however much another has', async () => {
    await queueMessages(pool, one, { count: 100, dueInMs: -1_000 })
    await queueMessages(pool, two)
    const carrier = { ...NO_RATE, messagesPerSecond: 1 }
    assert.deepEqual(await sharesOf([one, two], { free: 1 }), [1, 0])
    assert.deepEqual(await sharesOf([one, two], { carrier }), [0, 1])
    await pool.query(`update carrier_rates set next_slot_at = '-infinity'`)
  })

  /** The account of the first sender, with an agent of its own. */
  async function anotherAgent() {
    const { agentId } = await createSender(pool)
    await pool.query('insert into agent_assignments (account_id, agent_id) values ($1, $2)', [one.accountId, agentId])
    return { accountId: one.accountId, agentId }
  }

  test('of an account, also what is for an agent that has turns, behind a backlog for one that has none left', async () => {
    const otherAgent = await anotherAgent()
    await queueMessages(pool, one, { count: 250, dueInMs: -1_000 })
    const messageId = await queueMessage(pool, otherAgent)
    const { entries } = await claimNow({ carrier: { ...NO_RATE, messagesPerSecondPerAgent: 1 } })
    assert.equal(entries.length, 2)
    assert.ok(entries.some((entry) => entry.messageId === messageId))
    await pool.query(`update agents set next_slot_at = '-infinity'`)
  })

  test('of an account, the one that is due first, whichever of its agents it is for', async () => {
    const late = await queueMessage(pool, one)
    const otherAgent = await anotherAgent()
    const early = await queueMessage(pool, otherAgent, { dueInMs: -60_000 })
    assert.deepEqual(
      (await claimNow({ free: 1 })).entries.map(({ messageId }) => messageId),
      [early],
    )
    assert.deepEqual(
      (await claimNow({ free: 1 })).entries.map(({ messageId }) => messageId),
      [late],
    )
  })

  test('what a caller sent by itself before what is to be taken back, and that before a campaign, whenever they are due', async () => {
    const campaign = await queueMessage(pool, one, { priority: 2, dueInMs: -3_000 })
    const revoke = await queueMessage(pool, two, { dueInMs: -2_000, expiresInMs: -1_000, attempts: 1 })
    await expireDue(pool)
    const transactional = await queueMessage(pool, three)
    const order: string[] = []
    for (let turn = 0; turn < 3; turn += 1) order.push(...(await claimNow({ free: 1 })).entries.map(({ messageId }) => messageId))
    assert.deepEqual(order, [transactional, revoke, campaign])
  })

  test('of one account at most half of the free calls, those that it makes already included', async () => {
    await queueMessages(pool, one, { count: 100 })
    assert.deepEqual(await sharesOf([one]), [5])
    assert.deepEqual(await sharesOf([one], { calls: new Map([[one.accountId, 4]]) }), [3])
    const { entries, isHeldBack } = await claimNow({ calls: new Map([[one.accountId, 10]]) })
    assert.deepEqual([entries.length, isHeldBack], [0, true])
    await queueMessages(pool, two, { count: 100 })
    assert.deepEqual(await sharesOf([one, two], { calls: new Map([[one.accountId, 10]]) }), [0, 5])
  })

  test('nothing of agents that are paused, of agents of another carrier, or whose expiry has passed', async () => {
    await queueMessage(pool, one)
    assert.deepEqual((await claimNow({ pausedAgents: [one.agentId] })).entries, [])
    assert.deepEqual((await claimNow({ carrier: { ...NO_RATE, name: 'unheard-of' } })).entries, [])

    await createAgent(pool, { agentId: 'elsewhere', name: 'elsewhere', billingType: 'single', carrier: 'another' })
    await pool.query('insert into agent_assignments (account_id, agent_id) values ($1, $2)', [two.accountId, 'elsewhere'])
    const elsewhere = await queueMessage(pool, { accountId: two.accountId, agentId: 'elsewhere' })
    await queueMessage(pool, two, { expiresInMs: -1 })
    assert.deepEqual(await sharesOf([one, two]), [1, 0])

    await ensurePace(pool, 'another')
    const { entries } = await claimNow({ carrier: { ...NO_RATE, name: 'another' } })
    assert.deepEqual(
      entries.map(({ messageId }) => messageId),
      [elsewhere],
    )
  })

  test('what is due and not yet, and no entry twice before its lease ends', async () => {
    const due = await queueMessage(pool, one)
    await queueMessage(pool, one, { dueInMs: 60_000 })
    const { entries } = await claimNow()
    const { expiresInMs, turnAt, lease, ...entry } = entries[0] as (typeof entries)[number]
    const lane = { priority: 0, campaignId: NO_CAMPAIGN }
    const expected = { messageId: due, accountId: one.accountId, agentId: one.agentId, task: 'send', attempts: 1, ...lane }
    assert.deepEqual([entries.length, entry], [1, expected])
    assert.match(lease, UUID)
    assert.ok(turnAt <= performance.now(), 'without a rate there is nothing to wait for')
    assert.ok(expiresInMs > 3_590_000 && expiresInMs <= 3_600_000, `${expiresInMs}`)
    assert.deepEqual((await claimNow()).entries, [])
    await pool.query('update queue set leased_until = now() where message_id = $1', [due])
    assert.deepEqual(
      (await claimNow()).entries.map(({ messageId, attempts }) => ({ messageId, attempts })),
      [{ messageId: due, attempts: 2 }],
    )
  })
})

test('two workers that claim at once never take the same entry, and take all in the end', async () => {
  for (const sender of [one, two, three]) await queueMessages(pool, sender, { count: 400 })
  const other = createHotPool({ connectionString: url }, () => {})
  const taken: string[] = []
  async function work(db: Pool): Promise<void> {
    for (let isOver = false; !isOver; ) {
      const { entries, isHeldBack } = await claimNow({ free: 20 }, db)
      taken.push(...entries.map(({ messageId }) => messageId))
      // One that saw the queue as it was before another's claim has taken nothing of what that took, and is held back.
      isOver = entries.length === 0 && !isHeldBack
    }
  }
  await Promise.all([work(pool), work(other), work(pool)])
  await other.end()
  assert.deepEqual([taken.length, new Set(taken).size], [1_200, 1_200])
})

/** How many entries the connection has looked at, by way of any index or none. */
async function lookedAt(tx: Executor): Promise<number> {
  const { rows } = await tx.query<{ count: number }>(
    `select sum(pg_stat_get_xact_tuples_returned(relation::regclass))::int as count
     from unnest(array['queue', 'queue_pkey', 'queue_lanes']) as relation`,
  )
  return rows[0]?.count ?? Number.NaN
}

test(`an idle claim looks at a handful of rows, though ${BACKLOG} are waiting for their time`, async () => {
  for (const sender of [one, two]) await queueMessages(pool, sender, { count: BACKLOG / 2, dueInMs: 3_600_000 })
  const looked = await transaction(pool, async (tx) => {
    const before = await lookedAt(tx)
    const { entries } = await claimNow({ free: 64 }, tx)
    assert.deepEqual(entries, [])
    return (await lookedAt(tx)) - before
  })
  assert.ok(looked > 0 && looked < 20, `${looked} rows`)
})

test('a clock that was set back by an hour stops no carrier that has a rate', async () => {
  await pool.query(`update carrier_rates set next_slot_at = now() + interval '1 hour'`)
  await queueMessages(pool, one, { count: 2 })
  const carrier = { ...NO_RATE, messagesPerSecond: 1 }
  await until('one has its turn', async () => (await claimNow({ carrier })).entries.length === 1, 5_000)
  await pool.query(`update carrier_rates set next_slot_at = '-infinity'`)
})

describe('a rate holds across two workers, and is used up:', () => {
  const RATE = 20
  const COUNT = 24

  /** The most that were seen within any second. */
  function mostInASecond(times: number[]): number {
    return Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length))
  }

  // One worker alone is too slow for the rate: it makes 15 calls a second, so both have a part.
  const SLOW: CarrierOptions = { concurrency: 3, onSend: (message) => sleep(150, sent(message)) }

  /** The times at which the network saw each message, by agent. */
  type Times = Map<string, number[]>
  type Sendings = { byAgent: Times; lateMs: number }

  /** `lateMs`: by how much any of them can have been late: the stalls of its claim and of its call. */
  async function sendAll(t: TestContext, options: CarrierOptions, senders: Sender[]): Promise<Sendings> {
    await pool.query(`update carrier_rates set next_slot_at = '-infinity'`)
    await pool.query(`update agents set next_slot_at = '-infinity'`)
    for (const sender of senders) await queueMessages(pool, sender, { count: COUNT / senders.length })
    const stalls = watchStalls(pool)
    const [left, right] = [createCarrier({ ...SLOW, ...options }), createCarrier({ ...SLOW, ...options })]
    const workers = [startWorker(t, url, left), startWorker(t, url, right)]
    await until('all are sent', () => left.seen.length + right.seen.length === COUNT)
    await Promise.all(workers.map(({ stop }) => stop()))
    const lateMs = 2 * (await stalls.end())
    assert.ok(left.seen.length > 0 && right.seen.length > 0, `${left.seen.length} and ${right.seen.length}`)
    return { byAgent: timesByAgent([...left.seen, ...right.seen]), lateMs }
  }

  function timesByAgent(seen: Seen[]): Times {
    const groups = Map.groupBy(seen, ({ agentId }) => agentId)
    return new Map([...groups].map(([agentId, group]) => [agentId, group.map(({ at }) => at)]))
  }

  /** Turns are `1 / rate` apart, so that many and one more begin within a second and what one of them can be late. */
  function assertKept(times: number[], rate: number, lateMs: number): void {
    const most = mostInASecond(times)
    assert.ok(most <= rate * (1 + lateMs / 1_000) + 1, `${most} in a second, ${lateMs} ms late at most`)
  }

  function isUsedUp(t: TestContext, times: number[], rate: number): boolean {
    const tookMs = Math.max(...times) - Math.min(...times)
    t.diagnostic(`${times.length} in ${Math.round(tookMs)} ms at ${rate} a second`)
    return tookMs < ((times.length - 1) / rate) * 1_000 + 300
  }

  /** The rates are kept in every attempt. A busy machine delays some attempts, but not all of them. */
  async function assertKeptAndUsedUp(t: TestContext, options: CarrierOptions, senders: Sender[]): Promise<void> {
    const { messagesPerSecond: rate = Number.POSITIVE_INFINITY, messagesPerSecondPerAgent: agentRate = Number.POSITIVE_INFINITY } = options
    for (let attempt = 0; attempt < 10; attempt += 1) {
      const { byAgent, lateMs } = await sendAll(t, options, senders)
      const ofAgents = [...byAgent.values()]
      assertKept(ofAgents.flat(), rate, lateMs)
      for (const times of ofAgents) assertKept(times, agentRate, lateMs)
      const isFast =
        rate < Number.POSITIVE_INFINITY ? isUsedUp(t, ofAgents.flat(), rate) : ofAgents.every((times) => isUsedUp(t, times, agentRate))
      if (isFast) return
    }
    assert.fail('no attempt used up the rate')
  }

  test('a carrier’s', async (t) => {
    await assertKeptAndUsedUp(t, { messagesPerSecond: RATE }, [one, two])
  })

  test('an agent’s', async (t) => {
    await assertKeptAndUsedUp(t, { messagesPerSecondPerAgent: RATE / 2 }, [one, two])
  })

  test('both at once', async (t) => {
    await assertKeptAndUsedUp(t, { messagesPerSecond: RATE, messagesPerSecondPerAgent: RATE / 2 }, [one, two, three])
  })
})

// With a database of its own: its workers would take what the tests above are about.
const busy = await createTestDatabase()
const network = await startNetwork(10)
const service = await startTestService(
  { HERALD_DATABASE_URL: busy.url, ...NO_LIMITS },
  { findCarriers: async () => ({ rcs: [{ ...network.settings, name: CARRIER }], sms: undefined }) },
)

describe('in a service', async () => {
  const [crowd, single] = [await createSender(busy.hotPool), await createSender(busy.hotPool)]

  /** How long after its request another account's message is at the network. */
  async function delayMs(): Promise<number> {
    const caller = callerAt(service.url, single)
    const before = performance.now()
    const messageId = await caller.accepted()
    await until('it is at the network', () => network.asked.some(({ path }) => path.includes(messageId)))
    return performance.now() - before
  }

  test(`a backlog of ${BACKLOG} messages of one account delays another’s single one by far less than a second`, async (t) => {
    network.answer(async (asked) => {
      await new Promise((resolve) => setTimeout(resolve, 10))
      return { body: { name: asked.path } }
    })
    await queueMessages(busy.hotPool, crowd, { count: BACKLOG })
    await until('the backlog is being sent', () => network.asked.length > 50)
    const delays: number[] = []
    while (delays.length < 5) delays.push(await delayMs())
    t.diagnostic(`${delays.map(Math.round).join(', ')} ms behind ${BACKLOG}`)
    // The median: a single one also measures what else the machine does at that moment.
    assert.ok((delays.toSorted((a, b) => a - b)[2] as number) < 500, `${delays}`)
    const { rows } = await busy.hotPool.query<{ count: number }>('select count(*) from queue')
    assert.ok((rows[0]?.count ?? 0) > BACKLOG / 2, 'there was still a backlog')
  })

  test('while all calls of one account hang, another’s message goes out within a second', async (t) => {
    await busy.hotPool.query('delete from queue where lease is null')
    await until('nothing is under way', async () => (await busy.hotPool.query('select from queue where lease is not null')).rowCount === 0)
    let hanging = 0
    const { promise: over, resolve: end } = Promise.withResolvers<void>()
    network.answer(async (asked) => {
      if (asked.path.includes(`agentId=${crowd.agentId}`)) {
        hanging += 1
        await over
      }
      return { body: { name: asked.path } }
    })
    await queueMessages(busy.hotPool, crowd, { count: 100 })
    await until('as many hang as may', () => hanging === 5)
    const delays = [await delayMs(), await delayMs()]
    t.diagnostic(`${delays.map(Math.round).join(', ')} ms beside ${hanging} calls that hang`)
    assert.ok(Math.max(...delays) < 1_000, `${delays}`)
    assert.equal(hanging, 5)
    end()
  })
})
