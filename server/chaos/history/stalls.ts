import { readFileSync } from 'node:fs'

// When the machine had no processor for this process. Then it had none for the others either, and callers waited for all of them.

export type Span = { from: number; to: number }
export type Stalls = { stop: () => Span[] }

const EVERY_MS = 250
// Waiting for a processor for half of the time is a stall; on systems that do not report it, a timer that is half a second late.
const WAITING_SHARE = 0.5
const LATE_MS = 500

export function watchStalls(): Stalls {
  const stalls: Span[] = []
  let last = { at: Date.now(), waitedMs: readWaitedMs() }
  const timer = setInterval(() => {
    const now = { at: Date.now(), waitedMs: readWaitedMs() }
    const passedMs = now.at - last.at
    const waitedMs = now.waitedMs - last.waitedMs
    if (Number.isNaN(waitedMs) ? passedMs > EVERY_MS + LATE_MS : waitedMs > passedMs * WAITING_SHARE)
      stalls.push({ from: last.at, to: now.at })
    last = now
  }, EVERY_MS)
  return {
    stop: () => {
      clearInterval(timer)
      return stalls
    },
  }
}

/** How long this process was ready to run and waited for a processor. Only Linux reports it. */
function readWaitedMs(): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[1]) / 1e6
  } catch {
    return Number.NaN
  }
}
