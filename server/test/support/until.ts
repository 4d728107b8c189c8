import { setTimeout as sleep } from 'node:timers/promises'

/** Waits for a condition, not for a time: returns the first truthy value, and fails loudly where none comes. */
export async function until<T>(what: string, condition: () => Promise<T> | T, timeoutMs = 20_000): Promise<NonNullable<T>> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const value = await condition()
    if (value) return value
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain until ${what}`)
    await sleep(10)
  }
}
