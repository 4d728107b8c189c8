import type { History } from '../history/history.ts'

/** `compared`: how much there was to compare; with nothing, nothing is proved. `wrong`: a sentence with the ids for each difference. */
export type Outcome = { compared: number; wrong: string[]; note?: string }

/** Takes plain data, and knows nothing of how it came about. */
export type Check = (history: History) => Outcome

export type Result = Outcome & { check: string }

export function countBy<T>(items: Iterable<T>, keyOf: (item: T) => string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1)
  return counts
}

/** The most frequent first. */
export function listCounts(counts: Map<string, number>): string {
  return [...counts]
    .toSorted(([, one], [, other]) => other - one)
    .map(([what, count]) => `${what} ${count}`)
    .join(', ')
}

/** What the two sides do not have equally often, and how often each side has it. */
export function unequal(one: Iterable<string>, other: Iterable<string>): { what: string; counts: [number, number] }[] {
  const [ours, theirs] = [countBy(one, (what) => what), countBy(other, (what) => what)]
  return [...new Set([...ours.keys(), ...theirs.keys()])]
    .map((what) => ({ what, counts: [ours.get(what) ?? 0, theirs.get(what) ?? 0] as [number, number] }))
    .filter(({ counts: [here, there] }) => here !== there)
}

/** The side that had least to compare. */
export const least = (counts: readonly number[]): number => (counts.length === 0 ? 0 : Math.min(...counts))

export const duplicates = <T>(items: Iterable<T>, keyOf: (item: T) => string) => [...countBy(items, keyOf)].filter(([, count]) => count > 1)
