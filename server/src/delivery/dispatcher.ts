import type { Logger } from 'pino'
import type { RcsCarrier } from '../carriers/carrier.ts'
import { createBatcher } from '../db/batcher.ts'
import { isUnavailable, type Pool } from '../db/pool.ts'
import type { Reserve } from '../messages/send-at-once.ts'
import { type Claim, claim, type Entry } from './claim.ts'
import type { DeliveryMetrics } from './metrics.ts'
import { isRated, TURNS_AHEAD_MS } from './rate.ts'
import { readClaimed } from './read-claimed.ts'
import { createReserve } from './reserve.ts'
import { type Result, recordEach, type Verdict } from './results.ts'
import { createSend, LATEST_BEGIN_MS } from './send.ts'
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

// Time for a busy process to make the call and to record its result.
const LEASE_MARGIN_MS = 2_000

/** Sends the queue's entries to one carrier, with as many concurrent calls as the carrier allows, and records the results. */
export function createDispatcher({ pool, carrier, logger, metrics, onFailed = () => {} }: DispatcherOptions): RcsDispatcher {
  // Long enough that no other worker claims an entry while its call can still be under way.
  const leaseMs = LATEST_BEGIN_MS + carrier.longestCallMs + LEASE_MARGIN_MS
  // Those whose entries it has claimed: they belong to this carrier.
  const agents = new Set<string>()
  // More may be due than the last claim took. If not, a call that ends is no reason to claim: new entries wake the dispatcher.
  let isMoreDue = true
  let isClaiming = false

  async function claimFree(free: number, claimedAt: number): Promise<number> {
    isMoreDue = false
    const { entries, isBusy, isHeldBack } = await claimWithin(free)
    isMoreDue ||= isHeldBack
    for (const entry of entries) begin(entry, claimedAt)
    if (isBusy) return CLAIM_AGAIN_MS
    // Without a rate, only a call that ends makes room.
    return isHeldBack && isRated(carrier) ? TURNS_AHEAD_MS / 2 : POLL_MS
  }

  async function claimWithin(free: number): Promise<Claim> {
    const pausedAgents = [...agents].filter((agentId) => carrier.pausedForMs(agentId) > 0)
    isClaiming = true
    try {
      return await claim(pool, { carrier, free, leaseMs, pausedAgents, calls: calls.byAccount })
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

  /** Claims again only when enough calls have ended: a claim for one entry costs nearly as much as one for many. */
  function end(accountId: number): void {
    calls.end(accountId)
    if (isMoreDue && (calls.endedSinceClaim() >= carrier.concurrency / 3 || calls.total() === 0)) worker.wake()
  }

  async function handle(entry: Entry, claimedAt: number): Promise<void> {
    const { messageId, accountId, lease } = entry
    const verdict = await read(entry).then((message) => send(entry, message, claimedAt), unread)
    end(accountId)
    const hasCounted = await worker.settle({ messageId, lease, ...verdict }, claimedAt + leaseMs)
    if (hasCounted && verdict.is === 'failed') onFailed()
  }

  /** The database is away, or has a fault with this message: the others go on. */
  function unread(error: unknown): Verdict {
    if (!isUnavailable(error)) logger.error({ carrier: carrier.name, err: error }, 'a message could not be read, and is tried again')
    return { is: 'put-back', afterMs: POLL_MS }
  }

  /** What can't be sent at once is about to be queued. */
  function hasRoomFor(accountId: number, count: number): boolean {
    isMoreDue ||= count > shareOf(accountId, carrier.concurrency - calls.total(), calls.byAccount)
    return !isMoreDue && !isClaiming && !worker.stopping.aborted
  }

  const record = (results: Result[]) => recordEach(pool, results)
  const onWake = () => {
    isMoreDue = true
  }
  const worker = createWorker({ pool, carrier, logger, metrics, claim: claimFree, record, onWake })
  const { calls } = worker
  const read = createBatcher((entries: Entry[]) => readClaimed(pool, entries), { maxItems: carrier.concurrency })
  const send = createSend({ carrier, metrics, logger, stopping: worker.stopping })
  const { wake, stop, add } = worker
  const reserve = createReserve({ carrier, agents, leaseMs, hasRoomFor, begin: calls.begin, end, send: handle, add })
  return { wake, stop, reserve }
}
