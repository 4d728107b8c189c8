// When a network is in trouble, more requests make it worse and are answered no better. Some failures in a row, or its own word, close the
// way for a growing time, during which everything is told to come again later without a request; then one goes ahead to see, and the rest
// follow it.

export type Circuit = {
  /** The way in. Whoever gets a pass makes a request and says how it went. */
  enter: () => { is: 'open'; pass: Pass } | { is: 'closed'; waitMs: number }
  /** How long it stays closed, at the least; 0 where it is open. */
  closedForMs: () => number
}

export type Pass = {
  succeeded: () => void
  /** After how long to try what has just failed again. `retryAfterMs`: what the network asked for. `reason`: for the log. */
  failed: (retryAfterMs?: number, reason?: string) => number
}

const FAILURES_TO_CLOSE = 5
const FIRST_MS = 500
// While one request is ahead to see, which most often is answered by then.
const PROBE_MS = 250
const LONGEST_MS = 60_000
// A network that asks for more than this is asked again all the same.
const LONGEST_ASKED_FOR_MS = 3_600_000

/** `onChange` hears of every pause, with the reason of the failure that it began with, and of its end with 0: for the log. */
export function createCircuit(onChange: (pauseMs: number, reason?: string) => void, now = () => performance.now()): Circuit {
  let failures = 0
  let closings = 0
  let closedUntil = 0
  let isProbing = false
  /** Of the openings and closings: a pass of an earlier one tells nothing of how the network is now. */
  let epoch = 0

  function close(pauseMs: number, reason?: string): void {
    closings += 1
    epoch += 1
    closedUntil = now() + pauseMs
    isProbing = false
    onChange(pauseMs, reason)
  }

  function open(): void {
    closings = 0
    epoch += 1
    closedUntil = 0
    isProbing = false
    onChange(0)
  }

  function pauseLeftMs(): number {
    return Math.max(0, closedUntil - now())
  }

  function createPass(): Pass {
    const passEpoch = epoch
    return {
      succeeded: () => {
        if (passEpoch !== epoch) return
        failures = 0
        if (closedUntil > 0) open()
      },
      failed: (askedMs = 0, reason) => {
        const retryAfterMs = Math.min(askedMs, LONGEST_ASKED_FOR_MS)
        if (passEpoch === epoch) {
          failures += 1
          if (retryAfterMs > 0 || isProbing || failures >= FAILURES_TO_CLOSE) close(Math.max(retryAfterMs, growing(closings)), reason)
        }
        return Math.max(retryAfterMs, pauseLeftMs(), growing(0))
      },
    }
  }

  return {
    closedForMs: () => (isProbing ? PROBE_MS : pauseLeftMs()),
    enter: () => {
      if (closedUntil === 0) return { is: 'open', pass: createPass() }
      // Spread out, so that not all come back at the moment it opens, while one is sent ahead.
      if (pauseLeftMs() > 0) return { is: 'closed', waitMs: pauseLeftMs() + growing(0) }
      if (isProbing) return { is: 'closed', waitMs: growing(0) }
      isProbing = true
      return { is: 'open', pass: createPass() }
    },
  }
}

/** With jitter, so that many nodes do not come back at one moment. */
function growing(times: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** times) * (0.5 + Math.random() / 2)
}

const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

/** `Retry-After` is a number of seconds or a date. Undefined where it is neither, or past. */
export function retryAfterMs(header: string | string[] | undefined): number | undefined {
  const text = String(Array.isArray(header) ? header[0] : header).trim()
  if (/^\d+$/.test(text)) return Number(text) * 1000
  const ms = HTTP_DATE.test(text) ? Date.parse(text) - Date.now() : 0
  return ms > 0 ? ms : undefined
}
