import { backOffMs } from '../../outbound/back-off.ts'

/** The pauses after failures in a row. Times are by performance.now(). */
export type BackOff = { firstMs: number; longestMs: number; failures: number; untilMs: number }

export function createBackOff(firstMs: number, longestMs: number): BackOff {
  return { firstMs, longestMs, failures: 0, untilMs: 0 }
}

export function startBackOff(backOff: BackOff, nowMs: number): void {
  backOff.failures += 1
  backOff.untilMs = nowMs + backOffMs(backOff.failures, backOff.firstMs, backOff.longestMs)
}

/** The next pause is the shortest again. A pause in progress is not cut short. */
export function resetBackOff(backOff: BackOff): void {
  backOff.failures = 0
}

export function remainingMs(backOff: BackOff, nowMs: number): number {
  return Math.max(0, Math.ceil(backOff.untilMs - nowMs))
}
