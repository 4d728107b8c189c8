/** Of the verdict. `figures`: both sides. `wrong`: a sentence with the ids concerned for each fault. */
export type Line = { promise: string; figures: string; wrong: string[] }

/** `compared`: how much there was to hold against something. Where there was nothing, nothing was proved. */
export type Comparison = Line & { compared: number }

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

/** Each that the two sides do not have equally often, with how often each of them has it. */
export function unequal(one: Iterable<string>, other: Iterable<string>): { what: string; counts: [number, number] }[] {
  const [ours, theirs] = [countBy(one, (what) => what), countBy(other, (what) => what)]
  return [...new Set([...ours.keys(), ...theirs.keys()])]
    .map((what) => ({ what, counts: [ours.get(what) ?? 0, theirs.get(what) ?? 0] as [number, number] }))
    .filter(({ counts: [here, there] }) => here !== there)
}

/** Of several sides, the one that had least to compare. */
export const least = (counts: readonly number[]): number => (counts.length === 0 ? 0 : Math.min(...counts))
