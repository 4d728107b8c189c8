/** A delay that doubles with each start until it is reset. Times are from `performance.now()`. */
export type BackOff = { firstMs: number; longestMs: number; delayMs: number; untilMs: number }

export function createBackOff(firstMs: number, longestMs: number): BackOff {
  return { firstMs, longestMs, delayMs: 0, untilMs: 0 }
}

/** Waits between half of the delay and all of it, so that clients rejected together do not retry together. */
export function startBackOff(backOff: BackOff, nowMs: number): void {
  backOff.delayMs = Math.min(backOff.longestMs, backOff.delayMs === 0 ? backOff.firstMs : 2 * backOff.delayMs)
  backOff.untilMs = nowMs + backOff.delayMs * (0.5 + Math.random() / 2)
}

/** The next delay starts from the shortest. A delay in progress is not cut short. */
export function resetBackOff(backOff: BackOff): void {
  backOff.delayMs = 0
}

export function remainingMs(backOff: BackOff, nowMs: number): number {
  return Math.max(0, Math.ceil(backOff.untilMs - nowMs))
}
