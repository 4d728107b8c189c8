import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import fc from 'fast-check'
import { assignAgent, createAgent } from '../../src/agents/agents.ts'
import type { CarrierEvent } from '../../src/carriers/carrier.ts'
import { untilBlocked } from '../delivery/locks.ts'
import { observe, settled } from '../delivery/model-checks.ts'
import {
  accept,
  callNetwork,
  claimEntries,
  crash,
  expire,
  failOfInactive,
  moveExpiries,
  passTime,
  type ReceiptPick,
  readSome,
  receive,
  recordCalls,
  type Step,
  setActive,
} from '../delivery/model-commands.ts'
import { RESPONSES } from '../delivery/model-network.ts'
import { type Known, newWorld, pick, type World, watch } from '../delivery/model-world.ts'
import { createBusyPool } from '../delivery/worker.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { createCaller } from '../support/service.ts'

const CARRIER = 'simulator'
const seed = Number(process.env.HERALD_MODEL_SEED ?? Date.now() % 2 ** 31)
const runs = Number(process.env.HERALD_MODEL_RUNS ?? 30)
// A busy machine makes fewer runs, unless HERALD_MODEL_RUNS is set. fast-check's own time limit would leave the current run to the next test.
const longestMs = process.env.HERALD_MODEL_RUNS === undefined ? 2_000 : Number.POSITIVE_INFINITY

const database = await createTestDatabase()
// No test here crashes the database, and waiting for the disk would take most of the time.
await ownerOf(database.pool).query(`alter database ${new URL(database.url).pathname.slice(1)} set synchronous_commit = off`)
const { pool, failures } = watch(createBusyPool(database.url))
after(() => pool.end())
const agents = [await newAgent('agent-a'), await newAgent('agent-b')]

async function newAgent(agentId: string) {
  const { accountId } = await createCaller(pool)
  await createAgent(pool, { agentId, name: agentId.replace('-', '_'), billingType: 'single', carrier: CARRIER })
  await assignAgent(pool, agentId, accountId)
  return { accountId, agentId }
}

type Command = fc.AsyncCommand<World, World>
/** `isIdle`: the step would do nothing, and only take time. */
type NamedStep = { name: string; step: Step; isIdle: (world: World) => boolean }

/** A step alone, after which everything is as the model says. */
function alone({ name, step, isIdle }: NamedStep): Command {
  return {
    check: (world) => !isIdle(world),
    run: async (_model, world) => {
      const check = await step(world)
      await check()
      await observe(world, true)
      assert.deepEqual(failures, [])
    },
    toString: () => name,
  }
}

/** Concurrent steps: everything that always holds must hold in any order. */
function concurrently(steps: NamedStep[]): Command {
  return {
    check: (world) => steps.filter(({ isIdle }) => !isIdle(world)).length > 1,
    run: async (_model, world) => {
      await Promise.all(steps.map(({ step }) => step(world)))
      await observe(world, false)
      assert.deepEqual(failures, [])
    },
    toString: () => `concurrently(${steps.map(({ name }) => name).join(' | ')})`,
  }
}

/** Steps of one kind. A name shows how to repeat the step. */
function kindOf<Args extends unknown[]>(
  make: (...args: Args) => Step,
  args: { [K in keyof Args]: fc.Arbitrary<Args[K]> },
  isIdle: (world: World, ...args: Args) => boolean = () => false,
): fc.Arbitrary<NamedStep> {
  return fc.tuple(...args).map((values) => ({
    name: `${make.name}(${values.map((value) => JSON.stringify(value)).join(', ')})`,
    step: make(...(values as Args)),
    isIdle: (world) => isIdle(world, ...(values as Args)),
  }))
}

const n = fc.nat(20)
const index = fc.nat(1)
const few = fc.integer({ min: 1, max: 4 })
const receiptPick = (message: fc.Arbitrary<number>) =>
  fc.record({
    n: message,
    kind: fc.constantFrom('delivered', 'delivered', 'read', 'read', 'expired', 'expiry-failed'),
    stray: fc.constantFrom('no', 'no', 'no', 'phone', 'carrier'),
    skewMs: fc.constantFrom(0, 0, -3_600_000, 3_600_000),
  })
const receipts = fc.array(receiptPick(n), { minLength: 1, maxLength: 4 })

const holdsNone = ({ workers }: World, worker: number, isCalled: boolean) =>
  !pick(workers, worker).held.some(({ result }) => (result !== undefined) === isCalled)
const knowsNone = ({ known }: World, is: (one: Known) => boolean) => ![...known.values()].some(is)

const accepting = kindOf(accept, [n, index, fc.constantFrom('new', 'twice at once', 'again', 'other body')])
const claiming = kindOf(claimEntries, [index, fc.integer({ min: 1, max: 12 })], (world) =>
  knowsNone(world, ({ isQueued, isLeased, status }) => !isLeased && (isQueued || /EXPIRED|FAILED/.test(status))),
)
const calling = kindOf(callNetwork, [index, few, fc.constantFrom('accepted', ...RESPONSES)], (world, worker) =>
  holdsNone(world, worker, false),
)
const recording = kindOf(recordCalls, [index, few], (world, worker) => holdsNone(world, worker, true))
const receiving = kindOf(receive, [receipts, index], ({ network }) => network.ledger.size === 0)
const expiring = kindOf(expire, [], (world) => knowsNone(world, ({ expired, status }) => expired !== 'no' && /ACCEPTED|SENT/.test(status)))
const failing = kindOf(failOfInactive, [], ({ callers }) => callers.every(({ isActive }) => isActive))
const crashing = kindOf(crash, [index], ({ workers }, worker) => pick(workers, worker).held.length === 0)
const passing = kindOf(passTime, [], (world) => knowsNone(world, ({ lease }) => lease !== undefined))
const movingExpiries = kindOf(moveExpiries, [fc.tuple(n), fc.constantFrom('just', 'just', 'long')])
const switching = kindOf(setActive, [n, fc.boolean()], ({ callers }, caller, isActive) => pick(callers, caller).isActive === isActive)

const kinds = [
  ...[accepting, claiming, claiming, calling, calling, calling, recording, recording, recording, receiving, receiving],
  ...[expiring, failing, crashing, passing, passing, movingExpiries, movingExpiries, switching],
]
const meeting = fc.array(fc.oneof(accepting, claiming, recording, recording, receiving, expiring, failing), { minLength: 2, maxLength: 3 })
const commands = fc.commands([...kinds.map((kind) => kind.map(alone)), meeting.map(concurrently), meeting.map(concurrently)], {
  maxCommands: 120,
  size: 'max',
})

/** A world with three messages. */
async function begin(): Promise<World> {
  const world = await newWorld(pool, CARRIER, agents)
  for (const caller of [0, 0, 1]) await accept(caller, 0, 'new')(world)
  await observe(world, true)
  return world
}

/** Works without faults until nothing is left to do, then lets every undelivered message expire, and works again. */
async function drain(world: World): Promise<void> {
  for (let round = 0; ; round += 1) {
    assert.ok(round < 30, 'the work ends')
    const steps = [passTime(), failOfInactive(), claimEntries(0, 100), callNetwork(0, 100, 'accepted'), recordCalls(0, 100), expire()]
    for (const step of steps) await (await step(world))()
    await observe(world, true)
    const { rows } = await pool.query<{ left: number }>(
      `select (select count(*) from queue) + (select count(*) from expiries)
         + (select count(*) from messages where id = any ($1) and status in ('ACCEPTED', 'SENT')) as left`,
      [[...world.known.keys()]],
    )
    if (rows[0]?.left === 0) {
      await (await readSome()(world))()
      return await observe(world, true)
    }
    const all = Array.from(world.known.keys(), (_, index) => index)
    if (round > 0) await moveExpiries(all, 'long')(world)
  }
}

const CROWD = 100
const crowdReceipts = fc.array(receiptPick(fc.nat(CROWD - 1)), { minLength: CROWD, maxLength: CROWD })
const crowdExpiries = fc.array(fc.nat(CROWD - 1), { maxLength: CROWD / 4 })

/**
 * A hundred messages that the network has. Half of the responses were lost, and all leases have ended. So the next steps concern the same rows:
 * the entries are due again, and results, receipts, some expiries and a deactivation come too.
 */
async function crowd(world: World, receipts: ReceiptPick[], expiries: number[]): Promise<Step[]> {
  await Promise.all(Array.from({ length: CROWD }, (_, index) => accept(index, 0, 'new')(world)))
  await claimEntries(0, 4 * CROWD)(world)
  await callNetwork(0, CROWD / 2, 'accepted')(world)
  await callNetwork(0, CROWD / 2, 'accepted, response lost')(world)
  await setActive(1, false)(world)
  await passTime()(world)
  await moveExpiries(expiries, 'soon')(world)
  const again = receipts.toReversed()
  const strays = receipts.map((receipt) => ({ ...receipt, stray: 'phone' as const }))
  return [
    ...[claimEntries(1, 4 * CROWD), recordCalls(0, CROWD), expireForAWhile, failOfInactive()],
    ...[receive(receipts, 0), receive(again, 1), receive(strays, 2), receive(strays.toReversed(), 3)],
  ]
}

const expireForAWhile: Step = async (world) => {
  for (let round = 0; round < 10; round += 1) await expire()(world)
  return () => {}
}

describe(`messages (fast-check, seed ${seed}, ${runs} runs)`, () => {
  test('only move forward and reach the network once, in any order of steps and crashes', async () => {
    const endsAt = performance.now() + longestMs
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        if (performance.now() > endsAt) return
        failures.length = 0
        const world = await begin()
        await fc.asyncModelRun(() => ({ model: world, real: world }), sequence)
        await drain(world)
        await settled(world)
      }),
      { seed, numRuns: runs, unbiased: true },
    )
  })

  test('cause no deadlock when steps concern the same messages', async () => {
    const endsAt = performance.now() + longestMs
    await fc.assert(
      fc.asyncProperty(
        crowdReceipts,
        crowdExpiries,
        fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6, 7], { minLength: 4 }),
        async (receipts, expiries, order) => {
          if (performance.now() > endsAt) return
          failures.length = 0
          const world = await newWorld(pool, CARRIER, agents)
          const steps = await crowd(world, receipts, expiries)
          await Promise.all(order.map((index) => steps[index]?.(world)))
          assert.deepEqual(failures, [])
          await observe(world, false)
          await drain(world)
          await settled(world)
        },
      ),
      { seed, numRuns: Math.ceil(runs / 4), unbiased: true, endOnFailure: true },
    )
  })

  test('of a deactivated agent fail in the order of their ids, so that no receipt deadlocks', async () => {
    failures.length = 0
    const world = await newWorld(pool, CARRIER, agents)
    for (const caller of [0, 0]) await accept(caller, 0, 'new')(world)
    const [first, second] = [...world.known.values()].sort((a, b) => (a.id < b.id ? -1 : 1)) as [Known, Known]
    await pool.query(`update queue set due_at = due_at - interval '1 minute' where message_id = $1`, [second.id])
    await setActive(0, false)(world)
    // While the first message is locked, a receipt waits for it, and then the statement that fails both. The receipt gets the lock first.
    const holder = await pool.connect()
    await holder.query('begin')
    await holder.query('select from messages where id = $1 for update', [first.id])
    const receiving = world.receivers[0]?.([first, second].map((message) => revoked(message)))
    await untilBlocked(database.pool, 1)
    const failed = failOfInactive()(world)
    await untilBlocked(database.pool, 2)
    await holder.query('commit')
    holder.release()
    await Promise.all([receiving, failed])
    assert.deepEqual(failures, [])
  })

  test('get the same replies on two nodes in opposite orders without a deadlock, and each reply is stored once', async () => {
    failures.length = 0
    const { receivers } = await newWorld(pool, CARRIER, agents)
    // With batches of this size, every second one met another in the wrong order.
    for (let round = 0; round < 5; round += 1) {
      const replies = Array.from({ length: 400 }, (_, number) => reply(`${round} ${number}`))
      await Promise.all([receivers[0]?.(replies), receivers[1]?.(replies.toReversed())])
    }
    assert.deepEqual(failures, [])
    const { rows } = await pool.query(`select count(*) as kept from carrier_events where kind = 'wrote'`)
    assert.equal(rows[0]?.kept, 2_000)
  })
})

function revoked({ id, phone, caller }: Known): CarrierEvent {
  return { carrier: CARRIER, eventId: id, occurredAt: new Date(), phone, kind: 'expired', agentId: caller.agentId, messageId: id }
}

function reply(eventId: string): CarrierEvent {
  return { carrier: CARRIER, eventId, occurredAt: new Date(), phone: '+48500100200', kind: 'wrote', agentId: 'agent-a', text: 'Hello' }
}
