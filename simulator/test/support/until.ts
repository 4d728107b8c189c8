import { setTimeout as sleep } from 'node:timers/promises'

/** Waits for a condition, not for a time: returns the first value that is something, and fails loudly where none comes. */
export async function until<T>(what: string, condition: () => Promise<T> | T, patienceMs = 10_000): Promise<NonNullable<T>> {
  const giveUpAt = performance.now() + patienceMs
  for (;;) {
    const value = await condition()
    if (value) return value
    if (performance.now() > giveUpAt) throw new Error(`waited ${patienceMs} ms in vain until ${what}`)
    await sleep(5)
  }
}
