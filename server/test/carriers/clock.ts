import type { TestContext } from 'node:test'

/**
 * Stops `performance.now()`, by which carriers measure pauses and timeouts. They end only when the test moves the clock, however long the
 * machine takes.
 */
export function stopClock(t: TestContext): { move: (ms: number) => void } {
  // Whole milliseconds, so that sums with it are exact.
  let now = Math.ceil(performance.now())
  t.mock.method(performance, 'now', () => now)
  return {
    move: (ms) => {
      now += ms
    },
  }
}
