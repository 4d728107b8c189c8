export type Line = { text: string; is: 'same' | 'added' | 'removed' }

/** The lines of two texts: what both have, and what one of them has alone. */
export function diffOf(before: string, after: string): Line[] {
  const [old, now] = [before.split('\n'), after.split('\n')]
  const common = commonLengths(old, now)
  const lines: Line[] = []
  let [row, column] = [0, 0]
  while (row < old.length || column < now.length) {
    const [gone, come] = [old[row], now[column]]
    if (gone !== undefined && gone === come) {
      lines.push({ text: gone, is: 'same' })
      row += 1
      column += 1
    } else if (gone !== undefined && (come === undefined || lengthAt(common, row + 1, column) >= lengthAt(common, row, column + 1))) {
      lines.push({ text: gone, is: 'removed' })
      row += 1
    } else {
      lines.push({ text: come as string, is: 'added' })
      column += 1
    }
  }
  return lines
}

const lengthAt = (common: number[][], row: number, column: number) => common[row]?.[column] ?? 0

/** For each pair of places, how many lines both texts have in common from there to their ends. */
function commonLengths(old: string[], now: string[]): number[][] {
  const common: number[][] = []
  for (let row = old.length - 1; row >= 0; row -= 1) {
    const lengths: number[] = []
    for (let column = now.length - 1; column >= 0; column -= 1) {
      const isSame = old[row] === now[column]
      lengths[column] = isSame
        ? lengthAt(common, row + 1, column + 1) + 1
        : Math.max(lengthAt(common, row + 1, column), lengths[column + 1] ?? 0)
    }
    common[row] = lengths
  }
  return common
}
