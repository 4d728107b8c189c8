import type { Logger } from 'pino'
import { createWorker } from '../background/worker.ts'
import type { SendResult } from '../carriers/carrier.ts'
import type { Pool } from '../db/pool.ts'
import { backOffMs } from '../outbound/back-off.ts'
import { createCallCount } from './call-count.ts'
import type { DeliveryMetrics } from './metrics.ts'
import { ensureRate } from './rate.ts'

// The code that the dispatchers of RCS messages and of SMS share.

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
/** If a call has not begun this long after the claim, the worker releases the entry without a call: the call might outlast the lease. */
export const LATEST_BEGIN_MS = 2_000

/** A worker for one carrier: it claims as many entries as the carrier has free calls, and counts the running calls. */
export function createCarrierWorker<Result extends object>(work: Work<Result>) {
  const { pool, carrier, logger, metrics, claim, record, onWake = () => {} } = work
  const { name, concurrency } = carrier
  const calls = createCallCount()

  async function claimFree(): Promise<number> {
    const free = concurrency - calls.total()
    if (free <= 0) return POLL_MS
    calls.claimed()
    return await claim(free, performance.now())
  }

  const before = () => ensureRate(pool, name)
  const child = logger.child({ carrier: name })
  const worker = createWorker({ name: `dispatch to ${name}`, logger: child, claim: claimFree, record, before })

  function wake(): void {
    onWake()
    worker.wake()
  }

  /** Records a result before its lease ends (by performance.now()), or not at all. Returns whether it was recorded. */
  async function settle(result: Result, leaseEndsAt: number): Promise<boolean> {
    const isRecorded = await worker.write(result, leaseEndsAt)
    if (!isRecorded) metrics.countRefused(name)
    else if ('afterMs' in result && Number(result.afterMs) < POLL_MS) setTimeout(wake, Number(result.afterMs)).unref()
    return isRecorded
  }

  return { ...worker, calls, settle, wake }
}

const FIRST_RETRY_MS = 500
const LONGEST_RETRY_MS = 60_000

/** The wait before the next attempt. It grows with the attempts, and is never shorter than the network asked for. */
export function retryMs(attempts: number, askedMs = 0): number {
  return Math.max(askedMs, backOffMs(attempts, FIRST_RETRY_MS, LONGEST_RETRY_MS))
}

type Unsent = Exclude<SendResult, { is: 'sent' }>

/** The result with the delay to record. */
export function withRetry<Result extends Unsent>(result: Result, attempts: number): Exclude<Result, { is: 'expired' }> | Retry {
  // The SMS has expired by this machine's clock. Only the database's clock decides, so the next claim checks it.
  if (result.is === 'expired') return { is: 'retry', afterMs: retryMs(attempts), detail: 'expired by the clock of the sending machine' }
  const other = result as Exclude<Result, { is: 'expired' }>
  return other.is === 'retry' || other.is === 'unknown' ? { ...other, afterMs: retryMs(attempts, other.afterMs) } : other
}

type Retry = Extract<SendResult, { is: 'retry' }>
