/** Words that operators may try, and the command that they mean. */
const MEANT: Record<string, string> = {
  unpause: 'resume',
  continue: 'resume',
  stop: 'cancel',
  delete: 'remove',
  rm: 'remove',
  ls: 'list',
  new: 'create',
  edit: 'update',
  start: 'serve',
  unblock: 'remove',
}
const NEGATED = /^(un|de|dis|non-?|no-)/

/** Returns the known word that was probably meant, or undefined. Never an opposite, such as "pause" for "unpause". */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const meant = MEANT[word]
  if (meant !== undefined && known.includes(meant)) return meant
  const isOpposite = (other: string) => NEGATED.test(word) !== NEGATED.test(other)
  const near = known
    .filter((other) => !isOpposite(other))
    .map((other) => ({ other, distance: distance(word.toLowerCase(), other) }))
    .filter((one) => one.distance <= Math.max(1, Math.floor(one.other.length / 3)))
  return near.sort((a, b) => a.distance - b.distance)[0]?.other
}

/** How many letters were added, left out, changed or swapped with their neighbour. */
function distance(a: string, b: string): number {
  const rows = Array.from({ length: a.length + 1 }, (_, i) =>
    Array.from({ length: b.length + 1 }, (_, j) => (i === 0 ? j : j === 0 ? i : 0)),
  )
  const at = (i: number, j: number) => rows[i]?.[j] ?? Number.POSITIVE_INFINITY
  for (let i = 1; i <= a.length; i += 1) {
    for (let j = 1; j <= b.length; j += 1) {
      const changed = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swapped = isSwap ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY
      ;(rows[i] as number[])[j] = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, changed, swapped)
    }
  }
  return at(a.length, b.length)
}
