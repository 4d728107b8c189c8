/** Of the verdict. `figures`: both sides. `wrong`: a sentence with the ids concerned for each fault. */
export type Line = { promise: string; figures: string; wrong: string[] }

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
