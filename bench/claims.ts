import { claim } from '../server/src/delivery/claim.ts'
import { ensurePace } from '../server/src/delivery/rate.ts'
import { readClaimed } from '../server/src/delivery/read-claimed.ts'
import { recordResults } from '../server/src/delivery/results.ts'
import { enqueue, fillQueue, type Sending, vacuum } from './history.ts'
import { byMedian, type Report } from './lines.ts'
import { median, say } from './measure.ts'

// What a worker does to take messages up: the claim, and reading what is to be sent. Then it writes down that they were sent, which makes room
// for the next. Of two databases, one of which has much more in it. They take turns, claim by claim, so that whatever else the machine does
// falls on both.

type Times = { taken: number; recorded: number }

const CARRIER = { name: 'simulator', messagesPerSecond: undefined, messagesPerSecondPerAgent: undefined }
const BATCH = 64

async function claimAndRead({ pool }: Sending, free: number): Promise<Times> {
  const from = performance.now()
  const { entries } = await claim(pool, { carrier: CARRIER, free, leaseMs: 3_600_000, pausedAgents: [], calls: new Map() })
  const messages = await readClaimed(pool, entries)
  const taken = performance.now()
  const counted = await recordResults(
    pool,
    entries.map(({ messageId, lease }) => ({ messageId, lease, is: 'sent' as const })),
  )
  const recordedAt = performance.now()
  const expected = takenOf(free)
  if (entries.length !== expected) throw new Error(`of ${free} free calls a claim took ${entries.length}`)
  const read = messages.filter((message) => message !== undefined).length
  const recorded = counted.filter(Boolean).length
  if (read !== expected || recorded !== expected) throw new Error(`read ${read} and recorded ${recorded} of ${expected} claimed messages`)
  return { taken: taken - from, recorded: recordedAt - taken }
}

/** Half of what is free is the most that one account gets. */
function takenOf(free: number): number {
  return Math.max(1, Math.ceil(free / 2))
}

type Pair = { small: Sending; large: Sending }
type Compared = Record<keyof Pair, Times[]>
/** `before`: what is done for each, before every pair of claims. */
type Turns = { free: number; rounds: number; claims: number; before?: () => Promise<void> }

/** Each figure is the median of a round's claims. The first round is a warm-up, after which statements have the plans that they keep. */
async function takeTurns(pair: Pair, { free, rounds, claims, before = async () => {} }: Turns): Promise<Compared> {
  const compared: Compared = { small: [], large: [] }
  for (let round = 0; round <= rounds; round++) {
    const times: Compared = { small: [], large: [] }
    for (let n = 0; n < claims; n++) {
      await before()
      // Nobody always comes after the same.
      const order = n % 2 === 0 ? (['small', 'large'] as const) : (['large', 'small'] as const)
      for (const side of order) times[side].push(await claimAndRead(pair[side], free))
    }
    if (round === 0) continue
    for (const side of ['small', 'large'] as const) compared[side].push(middle(times[side]))
  }
  return compared
}

function middle(times: Times[]): Times {
  return { taken: median(times.map(({ taken }) => taken)), recorded: median(times.map(({ recorded }) => recorded)) }
}

function figures(times: Times[], of: keyof Times) {
  return byMedian(times.map((round) => round[of]))
}

const turnsOf = (quick: boolean) => (quick ? { rounds: 3, claims: 20 } : { rounds: 15, claims: 40 })

/** Beside much history, and beside none. */
export async function compareHistories(report: Report, pair: Pair, history: number, { quick, most }: { quick: boolean; most: number }) {
  const { rounds, claims } = turnsOf(quick)
  for (const side of [pair.small, pair.large]) {
    await ensurePace(side.pool, CARRIER.name)
    await fillQueue(side, (rounds + 1) * claims * takenOf(BATCH) + BATCH * 2)
  }
  const { small, large } = await takeTurns(pair, { free: BATCH, rounds, claims })
  const beside = `beside ${history.toLocaleString('en')} messages of history`
  const limit = (of: keyof Times) => ({ what: 'beside none', ...figures(small, of) })
  const what = `${takenOf(BATCH)} claimed and read, ${beside}, 50 %`
  const target = { of: 'ratio' as const, most }
  report({ part: 'growth', what, unit: 'ms', measured: figures(large, 'taken'), limit: limit('taken'), target })
  const recorded = `${takenOf(BATCH)} recorded as sent, ${beside}, 50 %`
  report({ part: 'growth', what: recorded, unit: 'ms', measured: figures(large, 'recorded'), limit: limit('recorded') })
  say('growth: claims beside a history are compared')
}

/** Of many that wait, and of no more than are taken, in databases that differ in nothing else. */
export async function compareBacklogs(report: Report, pair: Pair, backlog: number, { quick, most }: { quick: boolean; most: number }) {
  const { rounds, claims } = turnsOf(quick)
  for (const side of [pair.small, pair.large]) {
    await ensurePace(side.pool, CARRIER.name)
    await vacuum(side)
  }
  for (const free of [1, BATCH]) {
    const count = takenOf(free)
    // The large one gets as many again as were taken of it: both have done the same, and hold as many as ever.
    const before = async () => {
      for (const side of [pair.small, pair.large]) await enqueue(side, count)
    }
    const { small, large } = await takeTurns(pair, { free, rounds, claims, before })
    report({
      part: 'growth',
      what: `${count} claimed and read, of ${backlog.toLocaleString('en')} that wait, 50 %`,
      unit: 'ms',
      measured: figures(large, 'taken'),
      limit: { what: `of ${count} that ${count === 1 ? 'waits' : 'wait'}`, ...figures(small, 'taken') },
      target: { of: 'ratio', most },
    })
    say(`growth: claims of ${count} out of a backlog are compared`)
  }
}
