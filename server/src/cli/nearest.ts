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
  reactivate: 'activate',
  reassign: 'assign',
  people: 'user',
  invite: 'create',
  password: 'link',
  log: 'audit',
}
/** Words with another meaning in a group of commands. Elsewhere, an unblock must not suggest a removal. */
const MEANT_IN: Record<string, Record<string, string>> = { 'opt-out': { unblock: 'remove' }, webhook: { unblock: 'enable' } }

/** Beginnings that make opposites of two words: "unassign" and "assign", "disable" and "enable". */
const OPPOSITES = [
  ...['un', 'de', 'dis', 'in', 'non-', 'no-'].map((negated) => [negated, '']),
  ...[
    ['dis', 'en'],
    ['de', 'en'],
    ['de', 're'],
    ['un', 're'],
    ['ex', 'in'],
  ],
] as [string, string][]

/**
 * Returns the known word that was probably meant, or undefined. Never an opposite, such as "pause" for "unpause". `group`: the name of the command
 * that has the known ones.
 */
export function nearest(typed: string, known: readonly string[], group = ''): string | undefined {
  const word = typed.toLowerCase()
  const meant = MEANT_IN[group]?.[word] ?? MEANT[word]
  if (meant !== undefined && known.includes(meant)) return meant
  const near = known
    .map((other) => ({ other, distance: distance(word, other) }))
    .filter((one) => one.distance <= Math.max(1, Math.floor(one.other.length / 3)))
    .filter(({ other }) => oppositesOf(other).every((opposite) => isNearer(word, other, opposite)))
  return near.sort((a, b) => a.distance - b.distance)[0]?.other
}

/** The opposites that a word may have, whether they are commands or not. */
function oppositesOf(word: string): string[] {
  return OPPOSITES.flatMap(([one, other]) => [
    ...(word.startsWith(one) ? [other + word.slice(one.length)] : []),
    ...(word.startsWith(other) ? [one + word.slice(other.length)] : []),
  ])
}

/** If a mistyped word is as near to both, the first letter decides: it is rarely the wrong one. */
function isNearer(word: string, one: string, other: string): boolean {
  const difference = distance(word, other) - distance(word, one)
  return difference > 0 || (difference === 0 && word[0] === one[0] && word[0] !== other[0])
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
