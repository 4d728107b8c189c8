import { setTimeout as sleep } from 'node:timers/promises'

/** Waits for a condition and returns its first truthy value. The limit is for a condition that never holds, not for a busy machine. */
export async function until<T>(what: string, condition: () => Promise<T> | T, timeoutMs = 120_000): Promise<NonNullable<T>> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const value = await condition()
    if (value) return value
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain until: ${what}`)
    await sleep(5)
  }
}
