import { readFileSync } from 'node:fs'
import type { Span } from './causes.ts'

// Whether the machine had time for this process: where it had not, it had none for the others either, and callers waited for all of them.
// `const stalls = watchStalls()`, later `stalls.stop()`.

export type Stalls = { stop: () => Span[] }

const EVERY_MS = 250
/** Later than that, or for so much of the time with work and no processor, and somebody else had them. */
const LATE_MS = 500
const WAITING_SHARE = 0.5

export function watchStalls(): Stalls {
  const stalls: Span[] = []
  let last = { at: Date.now(), waitedMs: readWaitedMs() }
  const watch = setInterval(() => {
    const now = { at: Date.now(), waitedMs: readWaitedMs() }
    const passedMs = now.at - last.at
    if (passedMs > EVERY_MS + LATE_MS || now.waitedMs - last.waitedMs > passedMs * WAITING_SHARE) stalls.push({ from: last.at, to: now.at })
    last = now
  }, EVERY_MS)
  return {
    stop: () => {
      clearInterval(watch)
      return stalls
    },
  }
}

/** For how long this process could have gone on, and had to wait for a processor. Only Linux tells. */
function readWaitedMs(): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}
