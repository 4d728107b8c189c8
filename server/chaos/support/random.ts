/** From 0 up to 1. */
export type Random = () => number

/** The same numbers for the same seed (mulberry32). */
export function randomFrom(seed: number): Random {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Each name has a stream of its own: how much is drawn from one changes nothing in the others. */
export function streamOf(seed: number, name: string): Random {
  let mixed = seed | 0
  for (const character of name) mixed = Math.imul(mixed ^ character.charCodeAt(0), 0x01000193)
  return randomFrom(mixed)
}

export function between(random: Random, least: number, most: number): number {
  return least + random() * (most - least)
}

export function oneOf<T>(random: Random, choices: readonly T[]): T {
  return choices[Math.floor(random() * choices.length)] as T
}
