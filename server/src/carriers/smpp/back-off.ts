/** A wait that doubles each time, until it is told that things go well again. Times are those of `performance.now()`. */
export type BackOff = { firstMs: number; longestMs: number; delayMs: number; untilMs: number }

export function createBackOff(firstMs: number, longestMs: number): BackOff {
  return { firstMs, longestMs, delayMs: 0, untilMs: 0 }
}

/** Between half of the delay and all of it, so that many that were sent away at once do not come back at once. */
export function startBackOff(backOff: BackOff, nowMs: number): void {
  backOff.delayMs = Math.min(backOff.longestMs, backOff.delayMs === 0 ? backOff.firstMs : 2 * backOff.delayMs)
  backOff.untilMs = nowMs + backOff.delayMs * (0.5 + Math.random() / 2)
}

/** The next wait is a short one again. One that is under way goes on. */
export function resetBackOff(backOff: BackOff): void {
  backOff.delayMs = 0
}

export function remainingMs(backOff: BackOff, nowMs: number): number {
  return Math.max(0, Math.ceil(backOff.untilMs - nowMs))
}
