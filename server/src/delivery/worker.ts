import type { Logger } from 'pino'
import { repeat } from '../background/repeat.ts'
import { createResultWriter } from '../background/result-writer.ts'
import { createUnderWay } from '../background/under-way.ts'
import type { Pool } from '../db/pool.ts'
import { createCallCount } from './call-count.ts'
import type { DeliveryMetrics } from './metrics.ts'
import { ensurePace } from './rate.ts'

export type Dispatcher = {
  /** Something may be due. */
  wake: () => void
  /** Claims nothing more, and returns when the results of all calls under way are recorded. */
  stop: () => Promise<void>
}

type Work<Result> = {
  pool: Pool
  carrier: { name: string; concurrency: number }
  logger: Logger
  metrics: DeliveryMetrics
  /** Claims entries for the calls that are free, and begins the calls. Returns how long until the next claim. */
  claim: (free: number, claimedAt: number) => Promise<number>
  /** Returns for each result whether it counted. */
  record: (results: Result[]) => Promise<boolean[]>
  onWake?: () => void
}

// Polling finds what nothing announces: a retry that another worker has postponed, or a lease that ended.
export const POLL_MS = 1_000
/** How soon to claim again while another worker is claiming. */
export const CLAIM_AGAIN_MS = 5

/** The part that both dispatchers share: it claims in a loop, counts the calls, and records their results. */
export function createWorker<Result extends object>({ pool, carrier, logger, metrics, claim, record, onWake = () => {} }: Work<Result>) {
  const { name, concurrency } = carrier
  const calls = createCallCount()
  const stopping = new AbortController()
  const write = createResultWriter(record, logger.child({ carrier: name }), stopping.signal)
  const underWay = createUnderWay()

  async function round(): Promise<number> {
    const free = concurrency - calls.total()
    if (free <= 0) return POLL_MS
    calls.claimed()
    return await claim(free, performance.now())
  }

  function wake(): void {
    onWake()
    loop.wake()
  }

  /** Returns whether the result counted: it is recorded before the lease ends (by performance.now()), or not at all. */
  async function settle(result: Result, leaseEndsAt: number): Promise<boolean> {
    const hasCounted = await write(result, leaseEndsAt)
    if (!hasCounted) metrics.countRefused(name)
    else if ('afterMs' in result && Number(result.afterMs) < POLL_MS) setTimeout(wake, Number(result.afterMs)).unref()
    return hasCounted
  }

  async function stop(): Promise<void> {
    stopping.abort()
    await loop.stop()
    await underWay.ended()
  }

  const loop = repeat(`dispatch to ${name}`, logger, round, { before: () => ensurePace(pool, name) })
  return { calls, stopping: stopping.signal, settle, wake, stop, /** Has to end before the worker stops. */ add: underWay.add }
}
