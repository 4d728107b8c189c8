/** What was measured in rounds: the figure of each round, and the value that stands for them all. */
export type Figure = { value: number; rounds: number[] }

/** The bound of a ratio, or of what was measured. */
export type Target = { of: 'ratio' | 'measured'; least?: number; most?: number }

export type Line = {
  what: string
  unit: string
  measured: Figure
  /** A figure of the same run. If it has as many rounds, each ran next to the round of the same index. */
  limit?: (Figure & { what: string }) | undefined
  target?: Target | undefined
}

/** Several figures in a row, without a target. */
export type Table = { title: string; head: string[]; rows: string[][] }

export const atMost = (most: number): Target => ({ of: 'measured', most })
export const atLeast = (least: number): Target => ({ of: 'measured', least })
export const ratioAtMost = (most: number): Target => ({ of: 'ratio', most })
export const ratioAtLeast = (least: number): Target => ({ of: 'ratio', least })

export function median(numbers: number[]): number {
  return percentile(numbers, 0.5)
}

export function percentile(numbers: number[], share: number): number {
  return numbers.toSorted((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * share))] as number
}

export function byMedian(rounds: number[]): Figure {
  return { value: median(rounds), rounds }
}

export function once(value: number): Figure {
  return { value, rounds: [value] }
}

/** The percentile of all times together. The spread is that of single rounds. */
export function percentileOf(rounds: number[][], share: number): Figure {
  return { value: percentile(rounds.flat(), share), rounds: rounds.map((times) => percentile(times, share)) }
}

/** The median of the ratios of pairs of rounds: other work on the machine affects both rounds of a pair. */
export function ratioOf({ measured, limit }: Line): Figure | undefined {
  if (limit === undefined) return undefined
  const { rounds } = limit
  if (rounds.length !== measured.rounds.length) return once(measured.value / limit.value)
  return byMedian(measured.rounds.map((value, round) => value / (rounds[round] as number)))
}

/** Undefined without a target. A figure that is not a number meets no target. */
export function isMet(line: Line): boolean | undefined {
  if (line.target === undefined) return undefined
  const { of, least = Number.NEGATIVE_INFINITY, most = Number.POSITIVE_INFINITY } = line.target
  const checked = (of === 'ratio' ? ratioOf(line) : line.measured)?.value ?? Number.NaN
  return checked >= least && checked <= most
}

/** As a table of Markdown. `isChecked`: false in a quick run, which checks no target. */
export function tableOf(lines: (Line & { part: string })[], isChecked: boolean): string {
  const head = ['part', 'what', 'measured', 'limit in the same run', 'ratio', 'target', '']
  const rows = lines.map((line) => {
    const ratio = ratioOf(line)
    return [
      line.part,
      line.what,
      `${written(line.measured)} ${line.unit}`,
      line.limit === undefined ? '' : `${line.limit.what}: ${written(line.limit)}`,
      ratio === undefined ? '' : written(ratio, 2),
      targetOf(line),
      isChecked ? ({ true: 'met', false: '**MISSED**', undefined: '' }[`${isMet(line)}`] as string) : '',
    ]
  })
  return markdownOf(head, rows)
}

export function markdownOf(head: string[], rows: string[][]): string {
  const widths = head.map((title, column) => Math.max(...[head, ...rows].map((row) => (row[column] ?? title).length)))
  const write = (cells: string[]) => `| ${cells.map((cell, column) => cell.padEnd(widths[column] as number)).join(' | ')} |`
  return [write(head), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...rows.map(write)].join('\n')
}

function targetOf({ target, unit }: Line): string {
  if (target === undefined) return ''
  const bound = target.least === undefined ? `at most ${target.most}` : `at least ${target.least}`
  return target.of === 'ratio' ? `ratio ${bound}` : `${bound} ${unit}`
}

/** With the least and the most of the rounds, if there were several. */
function written({ value, rounds }: Figure, digits?: number): string {
  const spread = rounds.length < 2 ? '' : ` (${number(Math.min(...rounds), digits)} to ${number(Math.max(...rounds), digits)})`
  return `${number(value, digits)}${spread}`
}

function number(value: number, fixed?: number): string {
  const digits = fixed ?? (Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2)
  return Number.isNaN(value) ? 'unknown' : value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

/** `1000000` is `1,000,000`. */
export function grouped(count: number): string {
  return Math.round(count).toLocaleString('en')
}

export function labelled(label: string, what: string): string {
  return label === '' ? what : `${label}: ${what}`
}
