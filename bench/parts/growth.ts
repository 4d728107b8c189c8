import { claim } from '../../server/src/delivery/claim.ts'
import { ensureRate } from '../../server/src/delivery/rate.ts'
import { readClaimed } from '../../server/src/delivery/read-claimed.ts'
import { recordResults } from '../../server/src/delivery/results.ts'
import { createErasedPeople } from '../../server/src/erasure/erased.ts'
import { enqueue, type Filled, fillHistory, fillQueue, vacuum } from '../data/messages.ts'
import { saturateHttp } from '../load/connections.ts'
import { byMedian, type Figure, grouped, median, ratioAtLeast, ratioAtMost } from '../measure/figures.ts'
import { ratesOf, showRate, sideOf, takeTurns, warmUp } from '../measure/rounds.ts'
import type { Bench } from '../part.ts'
import { createBenchAgent, createSender, messageRequest } from '../setup/accounts.ts'
import { cloneDatabase, createDatabase, type Database, openDatabase, type Postgres, startPostgres } from '../setup/postgres.ts'
import { startHerald } from '../setup/processes.ts'

const erased = createErasedPeople(Buffer.alloc(32))

// Whether accepting and claiming cost more in a large database: one with millions of READ messages in the table of this month against a new
// one, and one with a million waiting messages against one with next to none. The two of a pair take turns.

const ACCEPT_TARGET = ratioAtLeast(0.9)
const CLAIM_TARGET = ratioAtMost(1.1)
const BACKLOG_TARGET = ratioAtMost(1.2)

export async function measureGrowth(bench: Bench): Promise<void> {
  const { history, backlog } = bench.quick ? { history: 100_000, backlog: 50_000 } : { history: 5_000_000, backlog: 1_000_000 }
  const postgres = await startPostgres()
  await compareBacklogs(bench, await openBacklogs(bench, postgres, backlog), backlog)
  const histories = { small: await open(bench, postgres, 'fresh'), large: await open(bench, postgres, 'grown') }
  await fillHistory(histories.large, history)
  // Claims first: accepting leaves hundreds of thousands of messages in both.
  await compareHistories(bench, histories, history)
  await compareAccepting(bench, histories, history)
}

type Sending = Database & Filled
type Pair = { small: Sending; large: Sending }

async function open({ say }: Bench, postgres: Postgres, name: string): Promise<Sending> {
  const database = await createDatabase(postgres, name)
  await createBenchAgent(database.pool)
  return { ...database, account: await createSender(database.pool), say }
}

/** The same messages in both. In one all of them wait, in the other none. */
async function openBacklogs(bench: Bench, postgres: Postgres, backlog: number): Promise<Pair> {
  const many = await open(bench, postgres, 'many')
  await fillQueue(many, backlog)
  await many.close()
  const small = { ...many, ...(await cloneDatabase(postgres, 'many', 'few')) }
  await small.client.query('truncate queue')
  return { small, large: { ...many, ...(await openDatabase(postgres, 'many')) } }
}

const CARRIER = { name: 'simulator', messagesPerSecond: undefined, messagesPerSecondPerAgent: undefined }
const BATCH = 64

/** In ms. `claimed`: the claim, and reading what to send. `recorded`: writing that the messages were sent. */
type Times = { claimed: number; recorded: number }

async function claimAndRecord({ pool }: Sending, free: number): Promise<Times> {
  const from = performance.now()
  const { entries } = await claim(pool, { carrier: CARRIER, free, leaseMs: 3_600_000, pausedAgents: [], calls: new Map() })
  const messages = await readClaimed(pool, entries, erased)
  const claimedAt = performance.now()
  const results = entries.map(({ messageId, lease }) => ({ messageId, lease, is: 'sent' as const }))
  const recorded = (await recordResults(pool, results)).filter(Boolean).length
  const recordedAt = performance.now()
  const read = messages.filter((message) => message !== undefined).length
  const counts = [entries.length, read, recorded]
  if (counts.some((count) => count !== claimSize(free))) {
    throw new Error(`claimed, read and recorded ${counts} messages instead of ${claimSize(free)}`)
  }
  return { claimed: claimedAt - from, recorded: recordedAt - claimedAt }
}

/** One account gets at most half of the free calls. */
function claimSize(free: number): number {
  return Math.max(1, Math.ceil(free / 2))
}

const planOf = ({ quick }: Bench) => (quick ? { rounds: 3, claims: 20 } : { rounds: 15, claims: 40 })

/** The figure of each round: the median of its claims. */
type Compared = Record<keyof Pair, (of: keyof Times) => Figure>

/** Claim by claim. The first round does not count: in it, statements get the plans that they keep. */
async function alternate(bench: Bench, pair: Pair, free: number, before: () => Promise<void> = async () => {}): Promise<Compared> {
  const { rounds, claims } = planOf(bench)
  const small = sideOf('', () => claimAndRecord(pair.small, free))
  const large = sideOf('', () => claimAndRecord(pair.large, free))
  for (let n = 0; n < (rounds + 1) * claims; n++) {
    await before()
    for (const side of n % 2 === 0 ? [small, large] : [large, small]) side.rounds.push(await side.run())
  }
  const medianOf = (times: Times[], of: keyof Times) => median(times.map((one) => one[of]))
  const figureOf = (times: Times[]) => (of: keyof Times) =>
    byMedian(Array.from({ length: rounds }, (_, round) => medianOf(times.slice((round + 1) * claims, (round + 2) * claims), of)))
  return { small: figureOf(small.rounds), large: figureOf(large.rounds) }
}

async function compareHistories(bench: Bench, pair: Pair, history: number): Promise<void> {
  const { rounds, claims } = planOf(bench)
  for (const side of [pair.small, pair.large]) {
    await ensureRate(side.pool, CARRIER.name)
    await fillQueue(side, (rounds + 1) * claims * claimSize(BATCH) + BATCH * 2)
  }
  const { small, large } = await alternate(bench, pair, BATCH)
  for (const [of, what, target] of [
    ['claimed', 'claimed and read', CLAIM_TARGET] as const,
    ['recorded', 'recorded as sent', undefined] as const,
  ]) {
    const named = `${claimSize(BATCH)} ${what}, beside ${grouped(history)} messages of history, 50 %`
    bench.report({ what: named, unit: 'ms', measured: large(of), limit: { what: 'beside none', ...small(of) }, target })
  }
  bench.say('compared claims beside a history')
}

/** Of many waiting messages, and of no more than are claimed, in databases that differ in nothing else. */
async function compareBacklogs(bench: Bench, pair: Pair, backlog: number): Promise<void> {
  const sides = [pair.small, pair.large]
  for (const { pool, client } of sides) {
    await ensureRate(pool, CARRIER.name)
    await vacuum(client)
  }
  for (const free of [1, BATCH]) {
    const count = claimSize(free)
    // The large one gets as many again as were claimed, so that both do the same and its backlog stays as long.
    const { small, large } = await alternate(bench, pair, free, async () => {
      for (const side of sides) await enqueue(side, count)
    })
    const limit = { what: `of ${count} that ${count === 1 ? 'waits' : 'wait'}`, ...small('claimed') }
    const what = `${count} claimed and read, of ${grouped(backlog)} that wait, 50 %`
    bench.report({ what, unit: 'ms', measured: large('claimed'), limit, target: BACKLOG_TARGET })
    bench.say(`compared claims of ${count} from a backlog`)
  }
}

async function compareAccepting(bench: Bench, { small, large }: Pair, history: number): Promise<void> {
  const { seconds, rounds } = bench.quick ? { seconds: 1, rounds: 3 } : { seconds: 4, rounds: 9 }
  async function accepting(label: string, { url, account }: Sending) {
    const api = await startHerald(['--only', 'api'], { HERALD_DATABASE_URL: url })
    return sideOf(label, () => saturateHttp({ url: api.url, request: () => messageRequest(account) }, seconds))
  }
  const without = await accepting('without', small)
  const beside = await accepting(`accepted, with ${grouped(history)} messages of history`, large)
  await warmUp([without, beside])
  await takeTurns(bench, [without, beside], { rounds, show: showRate })
  const limit = { what: without.label, ...ratesOf(without) }
  bench.report({ what: beside.label, unit: 'a second', measured: ratesOf(beside), limit, target: ACCEPT_TARGET })
}
