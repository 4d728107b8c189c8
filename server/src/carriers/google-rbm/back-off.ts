// When a network is in trouble, more requests make it worse and are answered no better. Some failures in a row close the way for a growing
// time, during which everything is told to come again later without a request; then one goes ahead to see, and the rest follow it.

export type BackOff = {
  /** How long to stay away; 0: go ahead. The one that goes ahead after a pause must say how it went. */
  waitMs: () => number
  succeeded: () => void
  /** After how long to try what has just failed again. `retryAfterMs`: what the network asked for. */
  failed: (retryAfterMs?: number) => number
}

const FAILURES_TO_CLOSE = 5
const FIRST_MS = 500
const LONGEST_MS = 60_000
// A network that asks for more than this is asked again all the same.
const LONGEST_ASKED_FOR_MS = 3_600_000

/** `onChange` hears of every pause, and of its end with 0: for the log. */
export function createBackOff(onChange: (pauseMs: number) => void): BackOff {
  let failures = 0
  let closings = 0
  let closedUntil = 0
  let isProbing = false

  return {
    waitMs: () => {
      if (closedUntil === 0) return 0
      const leftMs = closedUntil - performance.now()
      if (leftMs > 0) return leftMs
      if (isProbing) return FIRST_MS
      isProbing = true
      return 0
    },
    succeeded: () => {
      failures = 0
      if (closedUntil > 0) onChange(0)
      closings = 0
      closedUntil = 0
      isProbing = false
    },
    failed: (retryAfterMs = 0) => {
      failures += 1
      const askedMs = Math.min(retryAfterMs, LONGEST_ASKED_FOR_MS)
      const isClosed = closedUntil > performance.now()
      if (failures >= FAILURES_TO_CLOSE && !isClosed) {
        // Those that were under way when it closed say nothing new: only what goes ahead afterwards can make the pause longer.
        const pauseMs = Math.max(askedMs, growing(closings))
        closings += 1
        closedUntil = performance.now() + pauseMs
        onChange(pauseMs)
        isProbing = false
      }
      const leftMs = Math.max(0, closedUntil - performance.now())
      return Math.max(askedMs, leftMs, growing(0))
    },
  }
}

/** With jitter, so that many nodes do not come back at one moment. */
function growing(times: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** times) * (0.5 + Math.random() / 2)
}

/** `Retry-After` is a number of seconds or a date. Undefined where it is neither. */
export function retryAfterMs(header: string | string[] | undefined): number | undefined {
  const text = String(header)
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return ms > 0 ? ms : undefined
}
