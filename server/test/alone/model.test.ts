import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import fc from 'fast-check'
import { assignAgent, createAgent } from '../../src/agents/agents.ts'
import type { CarrierEvent } from '../../src/carriers/carrier.ts'
import { createHotPool } from '../../src/db/pool.ts'
import { observe, settled } from '../delivery/model-checks.ts'
import {
  accept,
  callNetwork,
  crash,
  expire,
  giveUpInactive,
  passTime,
  type ReceiptPick,
  readSome,
  receive,
  runOut,
  type Step,
  setActive,
  takeUp,
  writeResults,
} from '../delivery/model-commands.ts'
import { ANSWERS } from '../delivery/model-network.ts'
import { type Known, newWorld, pick, type World, watch } from '../delivery/model-world.ts'
import { createTestDatabase } from '../support/database.ts'
import { createCaller } from '../support/service.ts'
import { until } from '../support/until.ts'

const CARRIER = 'simulator'
const seed = Number(process.env.HERALD_MODEL_SEED ?? Date.now() % 2 ** 31)
const runs = Number(process.env.HERALD_MODEL_RUNS ?? 30)
// A busy machine makes fewer runs, unless somebody asked for a number of them. Not by fast-check's own limits: they would leave the run
// that is under way to the next test.
const longestMs = process.env.HERALD_MODEL_RUNS === undefined ? 2_000 : Number.POSITIVE_INFINITY

const database = await createTestDatabase()
// Nobody pulls the plug of the database here, and waiting for the disk at every step would take most of the time.
await database.pool.query(`alter database ${new URL(database.url).pathname.slice(1)} set synchronous_commit = off`)
const { pool, failures } = watch(createHotPool({ connectionString: database.url }, () => {}))
after(() => pool.end())
const agents = [await newAgent('agent-a'), await newAgent('agent-b')]

async function newAgent(agentId: string) {
  const { accountId } = await createCaller(pool)
  await createAgent(pool, { agentId, name: agentId.replace('-', '_'), billingType: 'single', carrier: CARRIER })
  await assignAgent(pool, agentId, accountId)
  return { accountId, agentId }
}

type Command = fc.AsyncCommand<World, World>
/** `isIdle`: there is nothing for it to do, so that it would only take time. */
type NamedStep = { name: string; step: Step; isIdle: (world: World) => boolean }

/** A step alone, after which everything is as the model says. */
function alone({ name, step, isIdle }: NamedStep): Command {
  return {
    check: (world) => !isIdle(world),
    run: async (_model, world) => {
      const judge = await step(world)
      await judge()
      await observe(world, true)
      assert.deepEqual(failures, [])
    },
    toString: () => name,
  }
}

/** Steps at the same moment: whichever comes first, nothing breaks that has to hold always. */
function atOnce(steps: NamedStep[]): Command {
  return {
    check: (world) => steps.filter(({ isIdle }) => !isIdle(world)).length > 1,
    run: async (_model, world) => {
      await Promise.all(steps.map(({ step }) => step(world)))
      await observe(world, false)
      assert.deepEqual(failures, [])
    },
    toString: () => `at once(${steps.map(({ name }) => name).join(' | ')})`,
  }
}

/** Steps of one kind, whose names say how to make them again. */
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

const holdsNone = ({ workers }: World, worker: number, wasAsked: boolean) =>
  !pick(workers, worker).held.some(({ asked }) => (asked !== undefined) === wasAsked)
const knowsNone = ({ known }: World, is: (one: Known) => boolean) => ![...known.values()].some(is)

const accepting = kindOf(accept, [n, index, fc.constantFrom('new', 'twice at once', 'again', 'other body')])
const taking = kindOf(takeUp, [index, fc.integer({ min: 1, max: 12 })], (world) =>
  knowsNone(world, ({ isQueued, isLeased, status }) => !isLeased && (isQueued || /EXPIRED|FAILED/.test(status))),
)
const calling = kindOf(callNetwork, [index, few, fc.constantFrom('taken', ...ANSWERS)], (world, worker) => holdsNone(world, worker, false))
const writing = kindOf(writeResults, [index, few], (world, worker) => holdsNone(world, worker, true))
const receiving = kindOf(receive, [receipts, index], ({ network }) => network.ledger.size === 0)
const expiring = kindOf(expire, [], (world) => knowsNone(world, ({ ranOut, status }) => ranOut !== 'no' && /ACCEPTED|SENT/.test(status)))
const givingUp = kindOf(giveUpInactive, [], ({ callers }) => callers.every(({ isActive }) => isActive))
const crashing = kindOf(crash, [index], ({ workers }, worker) => pick(workers, worker).held.length === 0)
const passing = kindOf(passTime, [], (world) => knowsNone(world, ({ lease }) => lease !== undefined))
const runningOut = kindOf(runOut, [fc.tuple(n), fc.constantFrom('just', 'just', 'long')])
const switching = kindOf(setActive, [n, fc.boolean()], ({ callers }, caller, isActive) => pick(callers, caller).isActive === isActive)

const kinds = [
  ...[accepting, taking, taking, calling, calling, calling, writing, writing, writing, receiving, receiving],
  ...[expiring, givingUp, crashing, passing, passing, runningOut, runningOut, switching],
]
const meeting = fc.array(fc.oneof(accepting, taking, writing, writing, receiving, expiring, givingUp), { minLength: 2, maxLength: 3 })
const commands = fc.commands([...kinds.map((kind) => kind.map(alone)), meeting.map(atOnce), meeting.map(atOnce)], {
  maxCommands: 120,
  size: 'max',
})

/** A world with something to do. */
async function begin(): Promise<World> {
  const world = await newWorld(pool, CARRIER, agents)
  for (const caller of [0, 0, 1]) await accept(caller, 0, 'new')(world)
  await observe(world, true)
  return world
}

/** No more faults: workers go on until nothing is left to do, then all that is not delivered runs out, and they go on again. */
async function drain(world: World): Promise<void> {
  for (let round = 0; ; round += 1) {
    assert.ok(round < 30, 'the work comes to an end')
    const chores = [passTime(), giveUpInactive(), takeUp(0, 100), callNetwork(0, 100, 'taken'), writeResults(0, 100), expire()]
    for (const chore of chores) await (await chore(world))()
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
    if (round > 0)
      await runOut(
        [...world.known.keys()].map((_, index) => index),
        'long',
      )(world)
  }
}

const CROWD = 100
const crowdReceipts = fc.array(receiptPick(fc.nat(CROWD - 1)), { minLength: CROWD, maxLength: CROWD })
const crowdExpiries = fc.array(fc.nat(CROWD - 1), { maxLength: CROWD / 4 })

/**
 * A hundred messages of which the network has all, though half of the answers were lost and all leases have ended. So everything that
 * comes next is about the same rows: they are due again, and their results, their receipts, some expiries and a deactivation come too.
 */
async function crowd(world: World, receipts: ReceiptPick[], expiries: number[]): Promise<Step[]> {
  await Promise.all(Array.from({ length: CROWD }, (_, index) => accept(index, 0, 'new')(world)))
  await takeUp(0, 4 * CROWD)(world)
  await callNetwork(0, CROWD / 2, 'taken')(world)
  await callNetwork(0, CROWD / 2, 'taken, answer lost')(world)
  await setActive(1, false)(world)
  await passTime()(world)
  await runOut(expiries, 'soon')(world)
  const again = receipts.toReversed()
  const strays = receipts.map((receipt) => ({ ...receipt, stray: 'phone' as const }))
  return [
    ...[takeUp(1, 4 * CROWD), writeResults(0, CROWD), expireForAWhile, giveUpInactive()],
    ...[receive(receipts, 0), receive(again, 1), receive(strays, 2), receive(strays.toReversed(), 3)],
  ]
}

const expireForAWhile: Step = async (world) => {
  for (let round = 0; round < 10; round += 1) await expire()(world)
  return () => {}
}

describe(`the life of messages (fast-check, seed ${seed}, ${runs} runs)`, () => {
  test('whatever comes in whatever order, and wherever workers crash, messages only go forward and reach the network once', async () => {
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

  test('whatever comes at once for the same messages, nobody waits in a circle', async () => {
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

  test('messages of a deactivated agent fail in the order of their ids, whatever the order of their turns, so that no receipt deadlocks', async () => {
    failures.length = 0
    const world = await newWorld(pool, CARRIER, agents)
    for (const caller of [0, 0]) await accept(caller, 0, 'new')(world)
    const [first, second] = [...world.known.values()].sort((a, b) => (a.id < b.id ? -1 : 1)) as [Known, Known]
    await pool.query(`update queue set due_at = due_at - interval '1 minute' where message_id = $1`, [second.id])
    await setActive(0, false)(world)
    // While somebody has the first message, a receipt waits for it, then the statement that fails both. The receipt is served first.
    const holder = await pool.connect()
    await holder.query('begin')
    await holder.query('select from messages where id = $1 for update', [first.id])
    const receiving = world.takeEvents[0]?.([first, second].map((message) => revoked(message)))
    await until('the receipt waits', async () => (await waitingForLocks()) === 1)
    const failing = giveUpInactive()(world)
    await until('the statement waits too', async () => (await waitingForLocks()) === 2)
    await holder.query('commit')
    holder.release()
    await Promise.all([receiving, failing])
    assert.deepEqual(failures, [])
  })

  test('the same replies at two nodes, in another order, wait for each other in no circle and are kept once', async () => {
    failures.length = 0
    const { takeEvents } = await newWorld(pool, CARRIER, agents)
    // Of a batch as large as this, every second met another in the wrong order.
    for (let round = 0; round < 5; round += 1) {
      const replies = Array.from({ length: 400 }, (_, number) => reply(`${round} ${number}`))
      await Promise.all([takeEvents[0]?.(replies), takeEvents[1]?.(replies.toReversed())])
    }
    assert.deepEqual(failures, [])
    const { rows } = await pool.query(`select count(*) as kept from carrier_events where kind = 'wrote'`)
    assert.equal(rows[0]?.kept, 2_000)
  })
})

async function waitingForLocks(): Promise<number> {
  const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  return (await database.pool.query(waiting)).rowCount ?? 0
}

function revoked({ id, phone, caller }: Known): CarrierEvent {
  return { carrier: CARRIER, eventId: id, occurredAt: new Date(), phone, kind: 'expired', agentId: caller.agentId, messageId: id }
}

function reply(eventId: string): CarrierEvent {
  return { carrier: CARRIER, eventId, occurredAt: new Date(), phone: '+48500100200', kind: 'wrote', agentId: 'agent-a', text: 'Hello' }
}
