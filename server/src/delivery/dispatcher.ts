import type { Logger } from 'pino'
import { repeat } from '../background/repeat.ts'
import { createResultWriter } from '../background/result-writer.ts'
import { createUnderWay } from '../background/under-way.ts'
import type { RcsCarrier } from '../carriers/carrier.ts'
import type { Pool } from '../db/pool.ts'
import { createCallCount } from './call-count.ts'
import { claim, type Entry } from './claim.ts'
import { createErrand, LATEST_BEGIN_MS } from './errands.ts'
import type { DeliveryMetrics } from './metrics.ts'
import { ensurePace, isRated, TURNS_AHEAD_MS } from './rate.ts'
import { type Claimed, readClaimed } from './read-claimed.ts'
import { type Result, recordEach, type Verdict } from './results.ts'

export type Dispatcher = {
  /** Something may be due. */
  wake: () => void
  /** Takes nothing more up, and returns when what is under way has been written down. */
  stop: () => Promise<void>
}

export type DispatcherOptions = {
  pool: Pool
  carrier: RcsCarrier
  logger: Logger
  metrics: DeliveryMetrics
  /** A message was given up: an SMS may be due instead. */
  onFailed?: () => void
}

// The safety net, should nobody be woken: a retry that another worker has put off, a lease that ended.
const POLL_MS = 1_000
const CLAIM_AGAIN_MS = 5
// For a busy process, and for writing the result down.
const LEASE_MARGIN_MS = 2_000

/** Hands the queue's entries to one carrier, as many at once as that makes calls, and writes down what came of them. */
export function createDispatcher({ pool, carrier, logger, metrics, onFailed = () => {} }: DispatcherOptions): Dispatcher {
  // So that no other worker takes an entry up while its call can still be under way.
  const leaseMs = LATEST_BEGIN_MS + carrier.longestCallMs + LEASE_MARGIN_MS
  const calls = createCallCount()
  const stopping = new AbortController()
  const write = createResultWriter<Result>((results) => recordEach(pool, results), logger.child({ carrier: carrier.name }), stopping.signal)
  const errand = createErrand({ carrier, metrics, logger, stopping: stopping.signal })
  const underWay = createUnderWay()
  const agents = new Set<string>()
  // More may be due than the last claim took. Without it, a call that ends is no reason to claim: what comes new wakes the dispatcher.
  let isMoreDue = true

  async function round(): Promise<number> {
    const free = carrier.concurrency - calls.total()
    if (free === 0) return POLL_MS
    isMoreDue = false
    calls.claimed()
    const claimedAt = performance.now()
    const pausedAgents = [...agents].filter((agentId) => carrier.pausedForMs(agentId) > 0)
    const { entries, isBusy, isHeldBack } = await claim(pool, { carrier, free, leaseMs, pausedAgents, calls: calls.byAccount })
    isMoreDue ||= isHeldBack
    if (entries.length > 0) await begin(entries, claimedAt)
    if (isBusy) return CLAIM_AGAIN_MS
    // Without a rate, room comes with a call that ends.
    return isHeldBack && isRated(carrier) ? TURNS_AHEAD_MS / 2 : POLL_MS
  }

  async function begin(entries: Entry[], claimedAt: number): Promise<void> {
    for (const { agentId } of entries) agents.add(agentId)
    try {
      const messages = await readClaimed(pool, entries)
      for (const entry of entries) underWay.add(handle(entry, messages.get(entry.messageId), claimedAt))
    } catch (error) {
      for (const entry of entries) underWay.add(settle(entry, { is: 'put-back', afterMs: 0 }, claimedAt))
      throw error
    }
  }

  /** Not every call that ends makes room worth a claim: one for a single entry costs nearly as much as one for many. */
  function end({ accountId }: Entry): void {
    calls.end(accountId)
    if (isMoreDue && (calls.endedSinceClaim() >= carrier.concurrency / 3 || calls.total() === 0)) loop.wake()
  }

  async function handle(entry: Entry, message: Claimed | undefined, claimedAt: number): Promise<void> {
    calls.begin(entry.accountId)
    const verdict = await errand(entry, message, claimedAt)
    end(entry)
    await settle(entry, verdict, claimedAt)
  }

  async function settle({ messageId, lease }: Entry, verdict: Verdict, claimedAt: number): Promise<void> {
    const hasCounted = await write({ messageId, lease, ...verdict }, claimedAt + leaseMs)
    if (!hasCounted) metrics.countRefused(carrier.name)
    else if (verdict.is === 'failed') onFailed()
    else if ('afterMs' in verdict && verdict.afterMs < POLL_MS) setTimeout(wake, verdict.afterMs).unref()
  }

  const wake = () => {
    isMoreDue = true
    loop.wake()
  }
  const loop = repeat(`dispatch to ${carrier.name}`, logger, round, { before: () => ensurePace(pool, carrier.name) })
  return {
    wake,
    stop: async () => {
      stopping.abort()
      await loop.stop()
      await underWay.ended()
    },
  }
}
