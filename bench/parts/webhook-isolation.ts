import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from '../../server/src/db/pool.ts'
import { recordEvent } from '../../server/src/events/changes.ts'
import { grouped, percentile, percentileOf, ratioAtMost } from '../measure/figures.ts'
import { type Side, sideOf, takeTurns, until } from '../measure/rounds.ts'
import type { Bench } from '../part.ts'
import { askSink, createSubscriber, createWebhookDatabase, subscribe } from '../setup/endpoints.ts'
import type { Database } from '../setup/postgres.ts'
import { type Peer, startPeer } from '../setup/processes.ts'

// The time from the commit of an event to a good endpoint: alone, and beside endpoints that never respond or refuse everything, of the same
// account and of others, which get as many events each.

const PER_SECOND = 100
const TARGET = ratioAtMost(1.5)
const TIMEOUT_MS = 60_000

/** The two take turns, so that a pause of a shared machine affects one pair: the target is for the median of the pairs' ratios. */
export async function measureWebhookIsolation(bench: Bench): Promise<void> {
  const { pairs, seconds } = bench.quick ? { pairs: 3, seconds: 5 } : { pairs: 5, seconds: 20 }
  const database = await createWebhookDatabase()
  const sink = await startPeer('sink')
  // The bad endpoints have a process of their own, so that the good one does not wait for it.
  const { good, bad, neighbours } = await createEndpoints(database.pool, sink, await startPeer('sink'))
  await database.startWorker()
  const sidesWith = (duration: number) => [
    sideOf('alone', async () => {
      await setStatus(database, bad, 'DISABLED')
      return await measure(database.pool, sink, [good], duration)
    }),
    sideOf('beside two that are silent and two that refuse', async () => {
      await setStatus(database, bad, 'ACTIVE')
      return await measure(database.pool, sink, [good, ...neighbours], duration)
    }),
  ]
  for (const side of sidesWith(1)) await side.run()
  const [alone, beside] = sidesWith(seconds) as [Side<number[]>, Side<number[]>]
  await takeTurns(bench, [alone, beside], { rounds: pairs, show: (delays) => `99 % within ${percentile(delays, 0.99).toFixed(0)} ms` })
  for (const share of [0.5, 0.99]) {
    const figure = ({ rounds }: Side<number[]>) => percentileOf(rounds, share)
    const what = ({ label, rounds }: Side<number[]>) => `${label}, ${grouped(rounds.flat().length)} events, ${share * 100} %`
    bench.report({ what: what(alone), unit: 'ms', measured: figure(alone) })
    const limit = { what: alone.label, ...figure(alone) }
    bench.report({ what: what(beside), unit: 'ms', measured: figure(beside), limit, target: share === 0.99 ? TARGET : undefined })
  }
}

/** `bad`: endpoints. `good` and `neighbours`: accounts. */
type Endpoints = { good: number; bad: number[]; neighbours: number[] }

async function createEndpoints(pool: Pool, sink: Peer, badSink: Peer): Promise<Endpoints> {
  const { accountId: good } = await createSubscriber(pool, `${sink.url}/timed`)
  const [silent, refused] = [`${badSink.url}/silent`, `${badSink.url}/refused`]
  const others = [await createSubscriber(pool, silent), await createSubscriber(pool, refused)]
  const own = [await subscribe(pool, good, silent), await subscribe(pool, good, refused)]
  return { good, bad: [...own, ...others.map(({ endpointId }) => endpointId)], neighbours: others.map(({ accountId }) => accountId) }
}

/** Removes the deliveries that the endpoints did not take, so that all runs start alike. */
async function setStatus({ client }: Database, endpoints: number[], status: 'ACTIVE' | 'DISABLED'): Promise<void> {
  await client.query(
    `update webhook_endpoints set status = $2, failing_since = null, disabled_at = case when $2 = 'DISABLED' then now() end,
       disabled_because = case when $2 = 'DISABLED' then 'OPERATOR' end
     where id = any ($1::int[])`,
    [endpoints, status],
  )
  await client.query('delete from webhook_deliveries where endpoint_id = any ($1::int[])', [endpoints])
}

let numbers = 0

/** Events of each account at random moments, independent of every poll. Returns the delays of the first account's events, in ms. */
async function measure(pool: Pool, sink: Peer, accounts: number[], seconds: number): Promise<number[]> {
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
  return [...arrivedAt].map(([number, at]) => at - (committedAt.get(number) as number))
}

/** In ms of the machine's clock, which all processes share. */
function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
