import type { Logger } from 'pino'
import type { RcsCarrier } from '../carriers/carrier.ts'
import { isUnavailable, type Pool } from '../db/pool.ts'
import type { Reserve } from '../messages/send-at-once.ts'
import { claim, type Entry } from './claim.ts'
import type { DeliveryMetrics } from './metrics.ts'
import { isRated, SLOTS_AHEAD_MS } from './rate.ts'
import { createReader } from './read-claimed.ts'
import { createReserve } from './reserve.ts'
import { type Result, recordResults, type Verdict } from './results.ts'
import { createSend, faultResult, LATEST_BEGIN_MS } from './send.ts'
import { shareOf } from './share-out.ts'
import { CLAIM_AGAIN_MS, createWorker, type Dispatcher, POLL_MS } from './worker.ts'

export type RcsDispatcher = Dispatcher & { reserve: Reserve }

export type DispatcherOptions = {
  pool: Pool
  carrier: RcsCarrier
  logger: Logger
  metrics: DeliveryMetrics
  /** A message failed permanently, so its SMS may be due. */
  onFailed?: () => void
}

// The time that a busy process may need to start the call and to record its result.
const LEASE_MARGIN_MS = 2_000

/** Sends the queue's entries to one carrier, with as many concurrent calls as the carrier allows, and records the results. */
export function createDispatcher({ pool, carrier, logger, metrics, onFailed = () => {} }: DispatcherOptions): RcsDispatcher {
  // The lease outlasts the longest call, so no other worker claims an entry while its call may still be running.
  const leaseMs = LATEST_BEGIN_MS + carrier.longestCallMs + LEASE_MARGIN_MS
  // Agents whose entries this dispatcher has claimed, so they belong to this carrier.
  const agents = new Set<string>()
  // Whether more entries may be due than the last claim took. If not, the end of a call triggers no claim: new entries wake the dispatcher.
  let isMoreDue = true
  // A running claim has already counted the free calls, so a reservation must not use them.
  let isClaiming = false

  async function claimFree(free: number, claimedAt: number): Promise<number> {
    const pausedAgents = [...agents].filter((agentId) => carrier.pausedForMs(agentId) > 0)
    isMoreDue = false
    isClaiming = true
    try {
      const { entries, isBusy, isHeldBack } = await claim(pool, { carrier, free, leaseMs, pausedAgents, calls: calls.byAccount })
      isMoreDue ||= isHeldBack
      for (const entry of entries) begin(entry, claimedAt)
      if (isBusy) return CLAIM_AGAIN_MS
      // Without a rate, only the end of a call makes room.
      return isHeldBack && isRated(carrier) ? SLOTS_AHEAD_MS / 2 : POLL_MS
    } catch (error) {
      isMoreDue = true
      throw error
    } finally {
      isClaiming = false
    }
  }

  function begin(entry: Entry, claimedAt: number): void {
    agents.add(entry.agentId)
    calls.begin(entry.accountId)
    worker.add(handle(entry, claimedAt))
  }

  /** Claims again only after enough calls have ended: a claim for one entry costs nearly as much as a claim for many. */
  function end(accountId: number): void {
    calls.end(accountId)
    if (isMoreDue && (calls.endedSinceClaim() >= carrier.concurrency / 3 || calls.total() === 0)) worker.wake()
  }

  async function handle(entry: Entry, claimedAt: number): Promise<void> {
    const { messageId, accountId, lease } = entry
    const result = await read(entry).then(
      (message) => send(entry, message, claimedAt),
      (error: unknown): Verdict => (isUnavailable(error) ? { is: 'put-back', afterMs: POLL_MS } : faultResult(entry.attempts)),
    )
    end(accountId)
    const isRecorded = await worker.settle({ messageId, lease, ...result }, claimedAt + leaseMs)
    if (isRecorded && result.is === 'failed') onFailed()
  }

  /** Reserves calls for messages of this account. If its share is used up, the messages are queued instead, so more entries will be due. */
  function reserveCalls(accountId: number, count: number): boolean {
    isMoreDue ||= count > shareOf(accountId, carrier.concurrency - calls.total(), calls.byAccount)
    if (isMoreDue || isClaiming || worker.stopping.aborted) return false
    for (let n = 0; n < count; n += 1) calls.begin(accountId)
    return true
  }

  const record = (results: Result[]) => recordResults(pool, results)
  const onWake = () => {
    isMoreDue = true
  }
  const worker = createWorker({ pool, carrier, logger, metrics, claim: claimFree, record, onWake })
  const { calls } = worker
  const read = createReader(pool, carrier, logger)
  const send = createSend({ carrier, metrics, logger, stopping: worker.stopping })
  return { ...worker, reserve: createReserve({ carrier, agents, leaseMs, reserveCalls, end, send: handle, add: worker.add }) }
}
