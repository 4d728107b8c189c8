const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Anything else is tried again. */
export function isSuccess(status: number | null | undefined): boolean {
  return typeof status === 'number' && status >= 200 && status < 300
}

/** How long after a try that failed the next one is due: 75.6 hours in all. */
const TRY_AGAIN_AFTER_MS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR]
// Longer by up to this much, by chance: what failed together does not come back together.
const JITTER = 0.2
const LONGEST_RETRY_AFTER_MS = 24 * HOUR

/** Until the next try of an event that was tried so many times; null where that was the last. An endpoint may ask for more time, not for less. */
export function nextTryMs(attempts: number, askedMs = 0): number | null {
  const afterMs = TRY_AGAIN_AFTER_MS[attempts - 1]
  if (afterMs === undefined) return null
  return Math.max(afterMs, Math.min(askedMs, LONGEST_RETRY_AFTER_MS)) * (1 + JITTER * Math.random())
}
