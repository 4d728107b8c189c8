import { readFileSync } from 'node:fs'
import type { Span } from './causes.ts'

// Whether the machine had time for this process: where it had not, it had none for the others either, and callers waited for all of them.
// `const stalls = watchStalls()`, later `stalls.stop()`.

export type Stalls = { stop: () => Span[] }

const EVERY_MS = 250
/** For so much of the time with work and no processor: somebody else had them. Where the system does not tell, by how late a timer is. */
const WAITING_SHARE = 0.5
const LATE_MS = 500

export function watchStalls(): Stalls {
  const stalls: Span[] = []
  let last = { at: Date.now(), waitedMs: readWaitedMs() }
  const watch = setInterval(() => {
    const now = { at: Date.now(), waitedMs: readWaitedMs() }
    const passedMs = now.at - last.at
    if (hadNoProcessor(passedMs, now.waitedMs - last.waitedMs)) stalls.push({ from: last.at, to: now.at })
    last = now
  }, EVERY_MS)
  return {
    stop: () => {
      clearInterval(watch)
      return stalls
    },
  }
}

function hadNoProcessor(passedMs: number, waitedMs: number): boolean {
  return Number.isNaN(waitedMs) ? passedMs > EVERY_MS + LATE_MS : waitedMs > passedMs * WAITING_SHARE
}

/** For how long this process could have gone on, and had to wait for a processor. Only Linux tells. */
function readWaitedMs(): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[1]) / 1e6
  } catch {
    return Number.NaN
  }
}
