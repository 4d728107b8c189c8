import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from '../server/src/db/pool.ts'
import { recordEvent } from '../server/src/events/changes.ts'
import { median, percentile, printTable, say, until } from './measure.ts'
import type { Peer } from './processes.ts'
import { askSink, clear, createSubscriber, type Scene, subscribe } from './webhook-scene.ts'

// How long an event takes from the commit of its change to a good endpoint: alone, and beside endpoints that never answer or refuse
// everything, of the same account and of others, which get as many events each.

const PER_SECOND = 100
const MOST_RATIO = 1.5
const TIMEOUT_MS = 20_000

export type IsolationOptions = { pairs: number; seconds: number }
type Ids = { good: number; bad: number[]; neighbours: number[] }
/** In ms: from the commit, and from its place in the log, which it gets by a look ten times a second. */
type Delay = { fromCommit: number; fromLog: number }
type Runs = { what: string; runs: Delay[][] }

/** Says whether the bar is kept: the 99th percentile of a pair's second run over that of its first, the median of all pairs. */
export async function measureIsolation(scene: Scene, { pairs, seconds }: IsolationOptions): Promise<boolean> {
  await clear(scene.bare)
  const sink = await scene.startSink()
  // In a process of its own, so that a good endpoint doesn't wait for its machine.
  const badSink = await scene.startSink()
  const ids = await createAll(scene.pool, sink, badSink)
  await scene.startWorker()
  const alone: Runs = { what: 'alone', runs: [] }
  const beside: Runs = { what: 'beside two that are silent, two that refuse', runs: [] }
  // The first pair is the warm-up.
  for (let pair = 0; pair <= pairs; pair++) {
    await setBad(scene, ids, 'DISABLED')
    alone.runs.push(await run(scene.pool, sink, [ids.good], pair === 0 ? 1 : seconds))
    await setBad(scene, ids, 'ACTIVE')
    beside.runs.push(await run(scene.pool, sink, [ids.good, ...ids.neighbours], pair === 0 ? 1 : seconds))
  }
  for (const { runs } of [alone, beside]) runs.shift()
  await scene.stopAll()
  return print(alone, beside)
}

async function createAll(pool: Pool, sink: Peer, badSink: Peer): Promise<Ids> {
  const { accountId: good } = await createSubscriber(pool, sink, '/timed')
  const others = [await createSubscriber(pool, badSink, '/silent'), await createSubscriber(pool, badSink, '/refused')]
  const bad = [await subscribe(pool, good, badSink, '/silent'), await subscribe(pool, good, badSink, '/refused')]
  return { good, bad: [...bad, ...others.map(({ endpointId }) => endpointId)], neighbours: others.map(({ accountId }) => accountId) }
}

/** What the bad ones have not taken goes: a run alone has nothing beside it, and every run beside them begins as the one before. */
async function setBad({ bare }: Scene, { bad }: Ids, status: 'ACTIVE' | 'DISABLED'): Promise<void> {
  await bare.query(
    `update webhook_endpoints set status = $2, failing_since = null, disabled_at = case when $2 = 'DISABLED' then now() end,
       disabled_because = case when $2 = 'DISABLED' then 'OPERATOR' end
     where id = any ($1::int[])`,
    [bad, status],
  )
  await bare.query('delete from webhook_deliveries where endpoint_id = any ($1::int[])', [bad])
}

let numbers = 0

/** An event of each account, again and again, at times that have nothing to do with anybody's polls. Returns the delays of the first account's. */
async function run(pool: Pool, sink: Peer, accounts: number[], seconds: number): Promise<Delay[]> {
  const committedAt = new Map<number, number>()
  const writing: Promise<void>[] = []
  async function write(accountId: number, number: number, isTimed: boolean): Promise<void> {
    await recordEvent(pool, { accountId, kind: 'message.delivered', data: { number } })
    if (isTimed) committedAt.set(number, now())
  }
  const endAt = performance.now() + seconds * 1_000
  for (let at = performance.now(); at < endAt; at += (Math.random() * 2_000) / PER_SECOND) {
    await sleep(Math.max(0, at - performance.now()))
    numbers += 1
    for (const [n, accountId] of accounts.entries()) writing.push(write(accountId, numbers, n === 0))
  }
  await Promise.all(writing)
  const arrivedAt = new Map<number, number>()
  const deadline = performance.now() + TIMEOUT_MS
  await until(async () => {
    for (const [number, at] of (await askSink(sink, 'arrivals')).arrivals) arrivedAt.set(number, at)
    if (performance.now() > deadline) throw new Error(`${committedAt.size - arrivedAt.size} events never arrived`)
    return arrivedAt.size === committedAt.size
  })
  const loggedAt = await readLog(pool, accounts[0] as number)
  return [...arrivedAt].map(([number, at]) => ({
    fromCommit: at - (committedAt.get(number) as number),
    fromLog: at - (loggedAt.get(number) as number),
  }))
}

/** When the router committed the place of each of the account's events, by the clock of this process. Each is a page of its own. */
async function readLog(pool: Pool, accountId: number): Promise<Map<number, number>> {
  const clockMs = Date.now() - now()
  const { rows } = await pool.query<{ number: number; at: Date }>(
    `select (events -> 0 -> 8 ->> 'number')::int as number, pg_xact_commit_timestamp(xmin) as at from log_pages
     where account_id = $1 and last_position is not null`,
    [accountId],
  )
  return new Map(rows.map(({ number, at }) => [number, at.getTime() - clockMs]))
}

/** In ms, by the machine's clock, which is the same for all its processes. */
function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

function print(alone: Runs, beside: Runs): boolean {
  const p99 = (delays: Delay[]) => percentileOf(delays, 'fromCommit', 0.99)
  const ratios = beside.runs.map((delays, pair) => p99(delays) / p99(alone.runs[pair] as Delay[]))
  const each = ({ runs }: Runs) => runs.map((delays) => p99(delays).toFixed(0)).join(', ')
  say(`99th percentiles, run by run: alone ${each(alone)} ms; beside bad ones ${each(beside)} ms`)
  printTable(
    ['to a good endpoint, ms', 'events', 'from commit: 50 %', '99 %', 'from log: 50 %', '99 %'],
    [alone, beside].map(({ what, runs }) => {
      const delays = runs.flat()
      const figures = (['fromCommit', 'fromLog'] as const).flatMap((from) => [0.5, 0.99].map((share) => percentileOf(delays, from, share)))
      return [what, delays.length.toLocaleString('en'), ...figures.map((ms) => ms.toFixed(0))]
    }),
  )
  const isKept = median(ratios) <= MOST_RATIO
  process.stdout.write(
    `The 99th percentile is ${median(ratios).toFixed(2)} times that alone; the bar of ${MOST_RATIO} is ${isKept ? 'kept' : 'missed'}.\n`,
  )
  return isKept
}

function percentileOf(delays: Delay[], from: keyof Delay, share: number): number {
  return percentile(
    delays.map((delay) => delay[from]),
    share,
  )
}
