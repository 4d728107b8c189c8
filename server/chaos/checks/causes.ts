import type { Span } from '../history/stalls.ts'
import type { Fault } from '../schedule/faults.ts'
import { SENDS_AT_ONCE } from '../topology/node.ts'

// What a fault explains, by its target and its time.

const meet = (one: Span, other: Span) => one.from <= other.to && other.from <= one.to
const around = (at: number, beforeMs: number, afterMs: number): Span => ({ from: at - beforeMs, to: at + afterMs })

export const isDatabase = ({ target }: Fault) => target.startsWith('database')
export const isNetwork = ({ target }: Fault) => target.startsWith('network')
export const isDelivery = ({ target }: Fault) => target.startsWith('delivery') || target === SENDS_AT_ONCE
export const isWebhooks = ({ target }: Fault) => target.startsWith('webhooks')

// After a fault, connections are made anew and what has waited is done. Callers stop waiting after as long.
const RECOVERY_MS = 5_000

/** From the beginning of a fault until its consequences are over. */
const wholeOf = ({ from, to }: Fault): Span => ({ from, to: to + RECOVERY_MS })

/** A request without a response, or with a 503. */
export function explainsNoResponse(fault: Fault, nodeName: string | undefined, request: Span): boolean {
  return (isDatabase(fault) || fault.target === nodeName) && meet(wholeOf(fault), request)
}

// A busy machine does not explain a shorter wait.
const SHORT_MS = 1_000

/** For at least half of its time there was no processor for it. */
export function isStarved(request: Span, stalls: readonly Span[]): boolean {
  const waitedMs = request.to - request.from
  const overlaps = stalls.map(({ from, to }) => Math.max(0, Math.min(to, request.to) - Math.max(from, request.from)))
  return waitedMs >= SHORT_MS && overlaps.reduce((sum, ms) => sum + ms, 0) >= waitedMs / 2
}

// From the moment that an endpoint has accepted an event until that is stored, on a busy machine.
const UNSTORED_MS = 5_000

/**
 * An event that was accepted comes again. Either the result was not stored, since the database was away or the worker was killed or frozen
 * before that; or a worker that was about to post the event wakes up and posts it.
 */
export function explainsRepeat(fault: Fault, acceptedAt: number, againAt: number): boolean {
  // A request that is under way when its sender is frozen still arrives: 0.4 s later on a busy machine.
  const unstored = around(acceptedAt, UNSTORED_MS, UNSTORED_MS)
  if (isDatabase(fault)) return meet(wholeOf(fault), unstored)
  if (!isWebhooks(fault)) return false
  const { from, frozenMs } = fault
  const isWoken = frozenMs > 0 && meet(around(from + frozenMs, 0, UNSTORED_MS), around(againAt, 0, 0))
  return isWoken || meet(around(from, 0, 0), unstored)
}

/** The network gives no access token while it is away. A process that was frozen meanwhile treats the response as late when it goes on. */
export function explainsNoToken(fault: Fault, processName: string, at: number): boolean {
  const isWoken = fault.target === processName && fault.frozenMs > 0
  return (isNetwork(fault) || isWoken) && meet(wholeOf(fault), around(at, 0, 0))
}

// From the moment that the network has an SMS until that is stored, on a busy machine.
const SMS_UNDER_WAY_MS = 3_000

/**
 * The outcome of an SMS that was submitted at this time is unknown: its worker died, or was frozen and lost its connection; or the
 * network did; or the database was away, so that the outcome could not be stored before the worker died. A worker without a processor
 * stores the outcome later.
 */
export function explainsUnknown(fault: Fault, submittedAt: number, stalls: readonly Span[]): boolean {
  const submitting = around(submittedAt, SMS_UNDER_WAY_MS, SMS_UNDER_WAY_MS)
  if (isDatabase(fault) || isNetwork(fault)) return meet(wholeOf(fault), submitting)
  if (!isDelivery(fault)) return false
  const { from, frozenMs } = fault
  const isLate = from > submittedAt && isStarved({ from: submittedAt, to: from }, stalls)
  return isLate || [from, from + frozenMs].some((at) => meet(around(at, 0, 0), submitting))
}
