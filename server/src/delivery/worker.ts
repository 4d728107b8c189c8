import type { Logger } from 'pino'
import { repeat } from '../background/repeat.ts'
import { createResultWriter } from '../background/result-writer.ts'
import { createTaskTracker } from '../background/task-tracker.ts'
import type { Pool } from '../db/pool.ts'
import { createCallCount } from './call-count.ts'
import type { DeliveryMetrics } from './metrics.ts'
import { ensurePace } from './rate.ts'

export type Dispatcher = {
  /** Claims again at once: entries may be due. */
  wake: () => void
  /** Stops claiming. Returns once all running calls have ended and their results are recorded. */
  stop: () => Promise<void>
}

type Work<Result> = {
  pool: Pool
  carrier: { name: string; concurrency: number }
  logger: Logger
  metrics: DeliveryMetrics
  /** Claims entries for at most `free` calls, and starts the calls. Returns the milliseconds until the next claim. */
  claim: (free: number, claimedAt: number) => Promise<number>
  /** Returns, for each result, whether it was recorded: only the holder of a lease may record. */
  record: (results: Result[]) => Promise<boolean[]>
  onWake?: () => void
}

// Polling finds entries that no NOTIFY announces: retries that another worker postponed, and entries whose lease ended.
export const POLL_MS = 1_000
/** How soon to claim again if another worker holds the lock on the carrier's rate. */
export const CLAIM_AGAIN_MS = 5

/** The part that both dispatchers share: the claim loop, the count of running calls, and the recording of results. */
export function createWorker<Result extends object>({ pool, carrier, logger, metrics, claim, record, onWake = () => {} }: Work<Result>) {
  const { name, concurrency } = carrier
  const calls = createCallCount()
  const stopping = new AbortController()
  const write = createResultWriter(record, logger.child({ carrier: name }), stopping.signal)
  const tasks = createTaskTracker()

  async function claimOnce(): Promise<number> {
    const free = concurrency - calls.total()
    if (free <= 0) return POLL_MS
    calls.claimed()
    return await claim(free, performance.now())
  }

  function wake(): void {
    onWake()
    loop.wake()
  }

  /** Records a result before its lease ends (by performance.now()), or not at all. Returns whether it was recorded. */
  async function settle(result: Result, leaseEndsAt: number): Promise<boolean> {
    const isRecorded = await write(result, leaseEndsAt)
    if (!isRecorded) metrics.countRefused(name)
    else if ('afterMs' in result && Number(result.afterMs) < POLL_MS) setTimeout(wake, Number(result.afterMs)).unref()
    return isRecorded
  }

  async function stop(): Promise<void> {
    stopping.abort()
    await loop.stop()
    await tasks.ended()
  }

  const loop = repeat(`dispatch to ${name}`, logger, claimOnce, { before: () => ensurePace(pool, name) })
  return { calls, stopping: stopping.signal, settle, wake, stop, /** Tracks a task, which `stop` waits for. */ add: tasks.add }
}
