import type { Span } from './causes.ts'

// Whether the machine had time for this process: where it had not, it had none for the others either, and callers waited for all of them.
// `const stalls = watchStalls()`, later `stalls.stop()`.

export type Stalls = { stop: () => Span[] }

const EVERY_MS = 100
/** Later than that, and somebody else had the processors. */
const LATE_MS = 500

export function watchStalls(): Stalls {
  const stalls: Span[] = []
  let lastAt = Date.now()
  const watch = setInterval(() => {
    const now = Date.now()
    if (now - lastAt > EVERY_MS + LATE_MS) stalls.push({ from: lastAt, to: now })
    lastAt = now
  }, EVERY_MS)
  return {
    stop: () => {
      clearInterval(watch)
      return stalls
    },
  }
}
