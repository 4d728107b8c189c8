import { HOLD_MS, type Limiter } from './limits.ts'

/** The turns of a caller's requests, in order. Turns before the index `oldest` have left the window. */
type Window = { turns: number[]; oldest: number; windowMs: number }

const SWEEP_EVERY_MS = 10_000

/**
 * Exact sliding windows of one process, with the turn of every request that still counts. A turn is the time when a request may pass: fewer than
 * `quota` turns are in the window before it. A turn exactly one window earlier no longer counts. `now` is monotonic: it never jumps when the
 * machine's clock is set.
 */
export function createMemoryLimiter(now: () => number = () => performance.now()): Limiter {
  const windows = new Map<string, Window>()
  let nextSweepAt = now() + SWEEP_EVERY_MS

  // Removes the windows of callers without recent requests, so that memory grows with the callers of the last minute, not with all callers.
  function sweep(time: number): void {
    nextSweepAt = time + SWEEP_EVERY_MS
    for (const [key, { turns, windowMs }] of windows) {
      if ((turns.at(-1) ?? 0) <= time - windowMs) windows.delete(key)
    }
  }

  return async ({ name, quota, windowMs }, subject) => {
    const time = now()
    if (time >= nextSweepAt) sweep(time)
    const key = `${name} ${subject}`
    const window = windows.get(key) ?? { turns: [], oldest: 0, windowMs }
    windows.set(key, window)
    dropExpired(window, time)

    const { turns } = window
    // The turn that must leave the window before this request may pass; undefined if the window has room.
    const before = turns.length - window.oldest < quota ? undefined : turns[turns.length - quota]
    const turn = before === undefined ? time : Math.max(time, before + windowMs)
    const allowed = turn - time <= HOLD_MS
    if (allowed) turns.push(turn)
    const nextToLeave = turns[Math.max(window.oldest, turns.length - quota)] as number
    return {
      allowed,
      waitMs: allowed ? turn - time : 0,
      remaining: Math.max(0, quota - (turns.length - window.oldest)),
      resetMs: nextToLeave + windowMs - time,
    }
  }
}

function dropExpired(window: Window, time: number): void {
  const { turns, windowMs } = window
  while (window.oldest < turns.length && (turns[window.oldest] as number) <= time - windowMs) window.oldest += 1
  // Removed in bulk, since a shift() for each turn would move the whole array every time.
  if (window.oldest > 64 && window.oldest * 2 > turns.length) {
    turns.splice(0, window.oldest)
    window.oldest = 0
  }
}
