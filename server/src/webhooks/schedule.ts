const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Whether an attempt succeeded. Any other status is a failed attempt. */
export function isSuccess(status: number | null | undefined): boolean {
  return typeof status === 'number' && status >= 200 && status < 300
}

/** The delays after each failed attempt: 75.6 hours in total. */
const RETRY_DELAYS_MS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR]
// Each delay is randomly longer by up to this share, so that events that failed together are not retried together.
const JITTER = 0.2
const LONGEST_RETRY_AFTER_MS = 24 * HOUR

/**
 * The delay before the next attempt, after this many attempts; null after the last one. An endpoint may ask for a longer delay, not a
 * shorter one.
 */
export function nextTryMs(attempts: number, askedMs = 0): number | null {
  const afterMs = RETRY_DELAYS_MS[attempts - 1]
  if (afterMs === undefined) return null
  return Math.max(afterMs, Math.min(askedMs, LONGEST_RETRY_AFTER_MS)) * (1 + JITTER * Math.random())
}
