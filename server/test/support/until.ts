import { setTimeout as sleep } from 'node:timers/promises'
import type { Executor } from '../../src/db/pool.ts'

/** Ten times what the slowest condition needs on a busy machine: only a condition that never holds reaches it. */
const TIMEOUT_MS = 120_000

/** Checks the condition every 10 ms and returns its first truthy value. Fails if none comes before the timeout. */
export async function until<T>(what: string, condition: () => Promise<T> | T, timeoutMs = TIMEOUT_MS): Promise<NonNullable<T>> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const value = await condition()
    if (value) return value
    if (performance.now() > deadline) throw new Error(`timed out after ${timeoutMs} ms waiting until ${what}`)
    await sleep(10)
  }
}

/** Times are rounded to milliseconds, so what becomes due now may be due a moment later. Until then, a claim would not find it. */
export async function untilDue(db: Executor): Promise<void> {
  await db.query('select pg_sleep(0.001)')
}
