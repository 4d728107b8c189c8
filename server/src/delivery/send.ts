import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { RcsCarrier, RevokeResult, SendResult } from '../carriers/carrier.ts'
import { isUnavailable, type Pool } from '../db/pool.ts'
import { type ErasedPeople, PLACEHOLDER_PREFIX } from '../erasure/erased.ts'
import type { Reserve } from '../messages/send-at-once.ts'
import { claim, type Entry } from './claim.ts'
import { createRoute, type Route } from './look-up.ts'
import type { DeliveryMetrics } from './metrics.ts'
import { isClosed } from './postpone.ts'
import { isRated, SLOTS_AHEAD_MS } from './rate.ts'
import { type Claimed, createReader } from './read-claimed.ts'
import { createReserve } from './reserve.ts'
import { type EntryResult, type Result, recordResults } from './results.ts'
import { shareOf } from './share-out.ts'
import { CLAIM_AGAIN_MS, createCarrierWorker, type Dispatcher, LATEST_BEGIN_MS, POLL_MS, retryMs, withRetry } from './worker.ts'

// The send step, from top to bottom: claim due entries, read their messages, send each to its network, record the result.

export type RcsDispatcher = Dispatcher & { reserve: Reserve }

type DispatcherOptions = {
  pool: Pool
  carrier: RcsCarrier
  erased: ErasedPeople
  logger: Logger
  metrics: DeliveryMetrics
  /** A message failed permanently, so its SMS may be due. */
  onFailed?: () => void
}

// The time that a busy process may need to start the call and to record its result.
const LEASE_MARGIN_MS = 2_000

/** Sends the queue's entries to one carrier, with as many concurrent calls as the carrier allows, and records the results. */
export function createDispatcher({ pool, carrier, erased, logger, metrics, onFailed = () => {} }: DispatcherOptions): RcsDispatcher {
  // The lease outlasts the longest call, so no other worker claims an entry while its call may still be running.
  const leaseMs = LATEST_BEGIN_MS + carrier.longestCallMs + LEASE_MARGIN_MS
  // The agents whose entries this dispatcher has claimed. They belong to this carrier.
  const agents = new Set<string>()
  // Whether entries may be due that the last claim left in the queue. If not, the end of a call triggers no claim: new entries wake the dispatcher.
  let isMoreDue = true
  // A running claim has already counted the free calls, so a reservation must not use them.
  let isClaiming = false

  async function claimFree(free: number, claimedAt: number): Promise<number> {
    const pausedAgents = [...agents].filter((agentId) => carrier.pausedForMs(agentId) > 0)
    isMoreDue = false
    isClaiming = true
    try {
      const claimed = await claim(pool, { carrier, free, leaseMs, pausedAgents, calls: calls.byAccount })
      isMoreDue ||= claimed.mayBeMore
      for (const entry of claimed.entries) begin(entry, claimedAt)
      if (claimed.isBusy || claimed.hasPostponed) return CLAIM_AGAIN_MS
      // Without a rate, only the end of a call makes room.
      return claimed.mayBeMore && isRated(carrier) ? SLOTS_AHEAD_MS / 2 : POLL_MS
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

  /** Reads, sends and records one entry. */
  async function handle(entry: Entry, claimedAt: number): Promise<void> {
    const { messageId, accountId, lease } = entry
    const result = await read(entry).then(
      (message) => send(entry, message, claimedAt),
      (error: unknown): EntryResult => (isUnavailable(error) ? { is: 'not-tried', afterMs: POLL_MS } : faultResult(entry.attempts)),
    )
    end(accountId)
    const isRecorded = await worker.settle({ messageId, lease, ...result }, claimedAt + leaseMs)
    if (isRecorded && (result.is === 'failed' || result.is === 'no-rcs')) onFailed()
  }

  /** Claims again only after enough calls have ended: a claim for one entry costs nearly as much as a claim for many. */
  function end(accountId: number): void {
    calls.end(accountId)
    if (isMoreDue && (calls.endedSinceClaim() >= carrier.concurrency / 3 || calls.total() === 0)) worker.wake()
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
  const worker = createCarrierWorker({ pool, carrier, logger, metrics, claim: claimFree, record, onWake })
  const { calls } = worker
  const read = createReader(pool, carrier, erased, logger)
  const route = createRoute({ pool, carrier, erased, logger, metrics, stopping: worker.stopping })
  const send = createSend({ carrier, metrics, logger, route, stopping: worker.stopping })
  return { ...worker, reserve: createReserve({ carrier, agents, leaseMs, reserveCalls, end, send: handle, add: worker.add }) }
}

type SendOptions = { carrier: RcsCarrier; metrics: DeliveryMetrics; logger: Logger; route: Route; stopping: AbortSignal }

/** Makes the call of an entry, and returns the result to record. `claimedAt`: by performance.now(). Never throws. */
export type Send = (entry: Entry, message: Claimed | undefined, claimedAt: number) => Promise<EntryResult>

export function createSend({ carrier, metrics, logger, route, stopping }: SendOptions): Send {
  async function sendMessage(
    { agentId, attempts }: Entry,
    { isErased, stoppedBy, heldBackForMs, capability, ...message }: Claimed,
  ): Promise<EntryResult> {
    if (isErased) return { is: 'erased' }
    if (stoppedBy !== null) return stoppedResult(stoppedBy, attempts, heldBackForMs)
    const result = await carrier.send({ ...message, agentId })
    count('send', result)
    // If the response was lost, the worker sends the message again: the network knows its id, and ignores a message that it already has.
    return result.is === 'sent' ? result : withRetry(result, attempts)
  }

  async function revokeMessage({ messageId, agentId, attempts }: Entry, { recipient }: Claimed): Promise<EntryResult> {
    if (recipient.startsWith(PLACEHOLDER_PREFIX)) return { is: 'revoke-refused', detail: 'the number of the recipient was erased' }
    const result = await carrier.revoke({ messageId, agentId, recipient })
    count('revoke', result)
    return revokeResult(result, attempts)
  }

  function count(task: Entry['task'], { is }: SendResult | RevokeResult): void {
    if (is !== 'not-tried') metrics.count(carrier.name, task, is)
  }

  return async (entry, message, claimedAt) => {
    const routed = await route(entry, message)
    if (routed !== undefined) return routed
    const waitMs = entry.slotAt - performance.now()
    if (waitMs > 0) await sleep(waitMs, undefined, { signal: stopping }).catch(() => {})
    if (stopping.aborted) return { is: 'not-tried', afterMs: 0 }
    // The partition of its month has been dropped.
    if (message === undefined) return { is: 'revoke-refused', detail: 'the message has been dropped' }
    if (isTooLate(entry, performance.now() - claimedAt)) return { is: 'not-tried', afterMs: 0 }
    return await (entry.task === 'send' ? sendMessage : revokeMessage)(entry, message).catch((error: unknown): EntryResult => {
      logger.error({ carrier: carrier.name, err: error }, 'failed to send a message; will retry')
      return faultResult(entry.attempts)
    })
  }
}

/**
 * Whether the call must not begin any more: the lease or the message may end, or the window has closed, and the next claim postpones the entry.
 * performance.now() continues while this process is frozen. If another worker has claimed the entry meanwhile, `not-tried` changes nothing.
 */
function isTooLate(entry: Entry, heldForMs: number): boolean {
  if (heldForMs > LATEST_BEGIN_MS || (entry.task === 'send' && heldForMs > entry.expiresInMs)) return true
  return isClosed(entry, entry.nowMs + heldForMs)
}

/** The result after a fault in Herald. The fault may concern this message only, so the worker continues with the others. */
function faultResult(attempts: number): EntryResult {
  return { is: 'retry', afterMs: retryMs(attempts), detail: 'a fault of the service' }
}

// How long to wait for a receipt after the recipient opts out or is blocked, if an earlier attempt may have sent the message. A receipt that
// Herald could not store comes again after some seconds, and then at growing intervals.
const RECEIPT_TIMEOUT_MS = 120_000

/**
 * A message to a recipient who opted out or is blocked is not sent again. But an earlier worker may have died after the network accepted the
 * message, and the STOP may be a reply to it that came before its receipt. So the message is held back, and fails only if no receipt comes in
 * time. On the first attempt it fails at once, since no earlier attempt can have sent it.
 */
function stoppedResult(reason: 'BLOCKED' | 'OPTED_OUT', attempts: number, heldBackForMs: number): EntryResult {
  if (attempts === 1 || heldBackForMs >= RECEIPT_TIMEOUT_MS) return { is: 'failed', reason, detail: '' }
  return { is: 'held-back', afterMs: RECEIPT_TIMEOUT_MS - heldBackForMs }
}

// These attempts take about two minutes. After them the revocation ends: the network also knows when the message expires.
const MAX_REVOKE_ATTEMPTS = 10

function revokeResult(result: RevokeResult, attempts: number): EntryResult {
  if (result.is === 'not-tried') return result
  if (result.is === 'accepted') return { is: 'revoke-asked', detail: '' }
  if (result.is === 'too-late') return { is: 'revoke-refused', detail: 'the network no longer has the message, or never had it' }
  if (result.is === 'failed' || attempts >= MAX_REVOKE_ATTEMPTS) return { is: 'revoke-refused', detail: result.detail }
  return withRetry(result, attempts)
}
