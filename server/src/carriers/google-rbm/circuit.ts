import { backOffMs } from '../../outbound/back-off.ts'

// A circuit breaker: more requests make a failing network worse. After some failures in a row, or if the network asks for a pause, the circuit
// pauses for a growing time, and messages are postponed without a request. Then one request probes the network. If it succeeds, the rest follow.

export type Circuit = {
  /** A caller that gets a pass makes one request and reports its result to the pass. */
  enter: () => { is: 'free'; pass: Pass } | { is: 'paused'; waitMs: number }
  /** The minimum time until the pause ends; 0 if there is none. */
  pausedForMs: () => number
  /** Whether requests were paused, and none has succeeded since. */
  isOpen: () => boolean
}

export type Pass = {
  succeeded: () => void
  /** Returns the delay before the failed request should be tried again. `retryAfterMs`: what the network asked for. `reason`: for the log. */
  failed: (retryAfterMs?: number, reason?: string) => number
}

const FAILURES_TO_PAUSE = 5
const FIRST_PAUSE_MS = 500
// The delay of other requests during a probe. Most probes have a response by then.
const PROBE_MS = 250
const LONGEST_PAUSE_MS = 60_000
// The maximum for the network's Retry-After.
const LONGEST_RETRY_AFTER_MS = 3_600_000

const pauseMs = (failures: number) => backOffMs(failures, FIRST_PAUSE_MS, LONGEST_PAUSE_MS)

/** Calls `onChange` with the length and reason of every pause, and with 0 at its end. The caller logs them. */
export function createCircuit(onChange: (pauseMs: number, reason?: string) => void, now = () => performance.now()): Circuit {
  let failures = 0
  let pauses = 0
  let pausedUntil = 0
  let isProbing = false
  /** Counts the beginnings and ends of pauses. The result of a pass from an earlier epoch says nothing about the network now. */
  let epoch = 0

  function pause(pauseMs: number, reason?: string): void {
    pauses += 1
    epoch += 1
    pausedUntil = now() + pauseMs
    isProbing = false
    onChange(pauseMs, reason)
  }

  function resume(): void {
    pauses = 0
    epoch += 1
    pausedUntil = 0
    isProbing = false
    onChange(0)
  }

  function pauseLeftMs(): number {
    return Math.max(0, pausedUntil - now())
  }

  function createPass(): Pass {
    const passEpoch = epoch
    return {
      succeeded: () => {
        if (passEpoch !== epoch) return
        failures = 0
        if (pausedUntil > 0) resume()
      },
      failed: (askedMs = 0, reason) => {
        const retryAfterMs = Math.min(askedMs, LONGEST_RETRY_AFTER_MS)
        if (passEpoch === epoch) {
          failures += 1
          if (retryAfterMs > 0 || isProbing || failures >= FAILURES_TO_PAUSE) pause(Math.max(retryAfterMs, pauseMs(pauses + 1)), reason)
        }
        return Math.max(retryAfterMs, pauseLeftMs(), pauseMs(1))
      },
    }
  }

  return {
    pausedForMs: () => (isProbing ? PROBE_MS : pauseLeftMs()),
    isOpen: () => pausedUntil > 0,
    enter: () => {
      if (pausedUntil === 0) return { is: 'free', pass: createPass() }
      // With jitter, so that requests do not all return at the moment of the probe.
      if (pauseLeftMs() > 0) return { is: 'paused', waitMs: pauseLeftMs() + pauseMs(1) }
      if (isProbing) return { is: 'paused', waitMs: pauseMs(1) }
      isProbing = true
      return { is: 'free', pass: createPass() }
    },
  }
}
