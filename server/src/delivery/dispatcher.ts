import type { Logger } from 'pino'
import type { RcsCarrier } from '../carriers/carrier.ts'
import type { Pool } from '../db/pool.ts'
import { claim, type Entry } from './claim.ts'
import type { DeliveryMetrics } from './metrics.ts'
import { isRated, TURNS_AHEAD_MS } from './rate.ts'
import { type Claimed, readClaimed } from './read-claimed.ts'
import { type Result, recordEach, type Verdict } from './results.ts'
import { createSend, LATEST_BEGIN_MS } from './send.ts'
import { CLAIM_AGAIN_MS, createWorker, type Dispatcher, POLL_MS } from './worker.ts'

export type DispatcherOptions = {
  pool: Pool
  carrier: RcsCarrier
  logger: Logger
  metrics: DeliveryMetrics
  /** A message failed permanently, so its SMS may be due. */
  onFailed?: () => void
}

// Time for a busy process to make the call and to record its result.
const LEASE_MARGIN_MS = 2_000

/** Sends the queue's entries to one carrier, with as many concurrent calls as the carrier allows, and records the results. */
export function createDispatcher({ pool, carrier, logger, metrics, onFailed = () => {} }: DispatcherOptions): Dispatcher {
  // Long enough that no other worker claims an entry while its call can still be under way.
  const leaseMs = LATEST_BEGIN_MS + carrier.longestCallMs + LEASE_MARGIN_MS
  const agents = new Set<string>()
  // More may be due than the last claim took. If not, a call that ends is no reason to claim: new entries wake the dispatcher.
  let isMoreDue = true

  async function claimFree(free: number, claimedAt: number): Promise<number> {
    isMoreDue = false
    const pausedAgents = [...agents].filter((agentId) => carrier.pausedForMs(agentId) > 0)
    const { entries, isBusy, isHeldBack } = await claim(pool, { carrier, free, leaseMs, pausedAgents, calls: calls.byAccount })
    isMoreDue ||= isHeldBack
    if (entries.length > 0) await begin(entries, claimedAt)
    if (isBusy) return CLAIM_AGAIN_MS
    // Without a rate, only a call that ends makes room.
    return isHeldBack && isRated(carrier) ? TURNS_AHEAD_MS / 2 : POLL_MS
  }

  async function begin(entries: Entry[], claimedAt: number): Promise<void> {
    for (const { agentId } of entries) agents.add(agentId)
    try {
      const messages = await readClaimed(pool, entries)
      for (const entry of entries) worker.add(handle(entry, messages.get(entry.messageId), claimedAt))
    } catch (error) {
      for (const entry of entries) worker.add(settle(entry, { is: 'put-back', afterMs: 0 }, claimedAt))
      throw error
    }
  }

  /** Claims again only when enough calls have ended: a claim for one entry costs nearly as much as one for many. */
  function end({ accountId }: Entry): void {
    calls.end(accountId)
    if (isMoreDue && (calls.endedSinceClaim() >= carrier.concurrency / 3 || calls.total() === 0)) worker.wake()
  }

  async function handle(entry: Entry, message: Claimed | undefined, claimedAt: number): Promise<void> {
    calls.begin(entry.accountId)
    const verdict = await send(entry, message, claimedAt)
    end(entry)
    await settle(entry, verdict, claimedAt)
  }

  async function settle({ messageId, lease }: Entry, verdict: Verdict, claimedAt: number): Promise<void> {
    const hasCounted = await worker.settle({ messageId, lease, ...verdict }, claimedAt + leaseMs)
    if (hasCounted && verdict.is === 'failed') onFailed()
  }

  const record = (results: Result[]) => recordEach(pool, results)
  const onWake = () => {
    isMoreDue = true
  }
  const worker = createWorker({ pool, carrier, logger, metrics, claim: claimFree, record, onWake })
  const { calls } = worker
  const send = createSend({ carrier, metrics, logger, stopping: worker.stopping })
  return worker
}
