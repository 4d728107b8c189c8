// A timer can wait for at most 24 days. Checking once a minute costs nothing.
const LONGEST_MS = 60_000

const FIRST_WAIT_MS = 500

/** How long to wait after this number of failed tries: half a second, then twice as long each time. */
export function waitMsAfter(tries: number, longestMs: number): number {
  return Math.min(FIRST_WAIT_MS * 2 ** Math.min(tries, 20), longestMs)
}

let lastMs = Number.NaN
let lastText = ''

/** The time in ISO 8601. Formatting takes 1.3 µs, and many events are in the same millisecond. */
export function isoTime(ms: number): string {
  if (ms !== lastMs) {
    lastMs = ms
    lastText = new Date(ms).toISOString()
  }
  return lastText
}

type Alarm = {
  /** Rings at this time, or earlier if it was set to an earlier time. */
  at: (time: number) => void
  stop: () => void
}

/** Creates one timer for the earliest of many times. The callback must find out what is due, and set the alarm again. */
export function createAlarm(ring: () => void): Alarm {
  let ringsAt = Number.POSITIVE_INFINITY
  let timer: NodeJS.Timeout | NodeJS.Immediate | undefined
  let stopped = false

  function clear(): void {
    clearTimeout(timer as NodeJS.Timeout)
    clearImmediate(timer as NodeJS.Immediate)
    timer = undefined
    ringsAt = Number.POSITIVE_INFINITY
  }
  function go(): void {
    clear()
    ring()
  }
  return {
    at: (time) => {
      if (stopped || time >= ringsAt) return
      clear()
      ringsAt = time
      const waitMs = time - Date.now()
      timer = waitMs <= 0 ? setImmediate(go) : setTimeout(go, Math.min(waitMs, LONGEST_MS))
    },
    stop: () => {
      stopped = true
      clear()
    },
  }
}
