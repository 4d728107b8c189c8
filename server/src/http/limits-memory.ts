import type { Limiter } from './limits.ts'

type Window = { times: number[]; oldest: number; windowMs: number }

const SWEEP_EVERY_MS = 10_000

/**
 * Exact sliding windows of one process: the time of every request that still counts. A request passes when fewer than `quota` lie in
 * the span (now - window, now]; so one exactly a window after another does not count against it, and evenly spaced requests at the limit
 * all pass. `now` never jumps, whatever is done to the machine's clock.
 */
export function createMemoryLimiter(now: () => number = () => performance.now()): Limiter {
  const windows = new Map<string, Window>()
  let nextSweepAt = now() + SWEEP_EVERY_MS

  // Callers who have gone silent are forgotten, so that memory follows the callers of the last minute, not of all time.
  function sweep(time: number): void {
    nextSweepAt = time + SWEEP_EVERY_MS
    for (const [key, { times, windowMs }] of windows) {
      if ((times.at(-1) ?? 0) <= time - windowMs) windows.delete(key)
    }
  }

  return async ({ name, quota, windowMs }, subject) => {
    const time = now()
    if (time >= nextSweepAt) sweep(time)

    const key = `${name} ${subject}`
    let window = windows.get(key)
    if (window === undefined) {
      window = { times: [], oldest: 0, windowMs }
      windows.set(key, window)
    }
    const { times } = window
    while (window.oldest < times.length && (times[window.oldest] as number) <= time - windowMs) window.oldest += 1
    // The times that have left are cut off in bulk: a shift for each would cost as much as the window is long.
    if (window.oldest > 64 && window.oldest * 2 > times.length) {
      times.splice(0, window.oldest)
      window.oldest = 0
    }

    const allowed = times.length - window.oldest < quota
    if (allowed) times.push(time)
    return {
      allowed,
      remaining: quota - (times.length - window.oldest),
      // Never more than the window, which sums of fractions can come to by a hair.
      resetMs: Math.min(windowMs, (times[window.oldest] as number) + windowMs - time),
    }
  }
}
