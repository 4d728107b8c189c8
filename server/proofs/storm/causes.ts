import { SENDS_AT_ONCE } from './nodes.ts'
import type { Disturbance } from './upsets.ts'

// What an upset explains, and what it does not: by who was upset, and when.

export type Span = { from: number; to: number }

const meet = (one: Span, other: Span) => one.from <= other.to && other.from <= one.to
const around = (at: number, beforeMs: number, afterMs: number): Span => ({ from: at - beforeMs, to: at + afterMs })

export const isDatabase = ({ victim }: Disturbance) => victim.startsWith('database')
export const isNetwork = ({ victim }: Disturbance) => victim.startsWith('network')
export const isDelivery = ({ victim }: Disturbance) => victim.startsWith('delivery') || victim === SENDS_AT_ONCE
export const isWebhooks = ({ victim }: Disturbance) => victim.startsWith('webhooks')

// What has come back needs a moment: connections are made anew, what has waited is done at once. Callers give up after as long.
const RECOVERY_MS = 5_000

/** From the beginning until what waited for it has been done. */
const wholeOf = ({ from, to }: Disturbance): Span => ({ from, to: to + RECOVERY_MS })

/** A request that had no answer, or was told to come again. */
export function explainsNoAnswer(upset: Disturbance, nodeName: string | undefined, request: Span): boolean {
  return (isDatabase(upset) || upset.victim === nodeName) && meet(wholeOf(upset), request)
}

// Whoever waits less than this was not kept waiting by a busy machine.
const SHORT_MS = 1_000

/** For at least half of the time that it waited for its answer, there was no processor for it. */
export function isStarved(request: Span, stalls: readonly Span[]): boolean {
  const waitedMs = request.to - request.from
  const overlaps = stalls.map(({ from, to }) => Math.max(0, Math.min(to, request.to) - Math.max(from, request.from)))
  return waitedMs >= SHORT_MS && overlaps.reduce((sum, ms) => sum + ms, 0) >= waitedMs / 2
}

// From the moment that an endpoint has taken an event until that is written down, on a busy machine.
const UNWRITTEN_MS = 5_000

/**
 * An event that was taken at one time comes again at another: what came of it was not written down, since the database was away, or whoever had
 * posted it was killed or froze before that; or who had been about to post it wakes up, and does so.
 */
export function explainsRepeat(upset: Disturbance, takenAt: number, againAt: number): boolean {
  // What was on its way when its sender froze arrives all the same: 0.4 s later, where the machine was busy.
  const unwritten = around(takenAt, UNWRITTEN_MS, UNWRITTEN_MS)
  if (isDatabase(upset)) return meet(wholeOf(upset), unwritten)
  if (!isWebhooks(upset)) return false
  const { from, frozenMs } = upset
  const isWoken = frozenMs > 0 && meet(around(from + frozenMs, 0, UNWRITTEN_MS), around(againAt, 0, 0))
  return isWoken || meet(around(from, 0, 0), unwritten)
}

/** The network gives no access token while it is away. */
export function explainsNoToken(upset: Disturbance, at: number): boolean {
  return isNetwork(upset) && meet(wholeOf(upset), around(at, 0, 0))
}

// From the moment that the network has an SMS until that is written down, on a busy machine.
const SMS_UNDER_WAY_MS = 3_000

/**
 * An SMS that the network took at this time, of which nobody knows here: who had handed it over died, or stood still and lost its connection,
 * or its network did; or the database was away, so that it could not be written down before its worker died.
 */
export function explainsUnknown(upset: Disturbance, takenAt: number): boolean {
  const taken = around(takenAt, SMS_UNDER_WAY_MS, SMS_UNDER_WAY_MS)
  if (isDatabase(upset) || isNetwork(upset)) return meet(wholeOf(upset), taken)
  if (!isDelivery(upset)) return false
  const { from, frozenMs } = upset
  return [from, from + frozenMs].some((at) => meet(around(at, 0, 0), taken))
}
