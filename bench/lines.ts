import { median } from './measure.ts'

/** What was measured: in rounds, each of which gave a figure, and the one that stands for them all. */
export type Figure = { value: number; rounds: number[] }

export type Line = {
  part: string
  what: string
  unit: string
  measured: Figure
  /** Of the same run. Where it has as many rounds, each ran next to the one of the same place. */
  limit?: Figure & { what: string }
  /** What is promised: of the ratio to the limit, or of what was measured. */
  target?: { of: 'ratio' | 'measured'; least?: number; most?: number }
}

/** Takes a line as soon as it is known: what comes after it may fail. */
export type Report = (line: Line) => void

export function byMedian(rounds: number[]): Figure {
  return { value: median(rounds), rounds }
}

export function once(value: number): Figure {
  return { value, rounds: [value] }
}

/** The median of the pairs' ratios: what else the machine did fell on both of a pair. */
export function ratioOf({ measured, limit }: Line): Figure | undefined {
  if (limit === undefined) return undefined
  const { rounds } = limit
  if (rounds.length !== measured.rounds.length) return once(measured.value / limit.value)
  return byMedian(measured.rounds.map((value, round) => value / (rounds[round] as number)))
}

/** Whether a target is met; undefined where there is none. A figure that is not a number meets none. */
export function isKept(line: Line): boolean | undefined {
  if (line.target === undefined) return undefined
  const { of, least = Number.NEGATIVE_INFINITY, most = Number.POSITIVE_INFINITY } = line.target
  const checked = (of === 'ratio' ? ratioOf(line) : line.measured)?.value ?? Number.NaN
  return checked >= least && checked <= most
}

/** As a table of Markdown. A quick run checks no target. */
export function tableOf(lines: Line[], isChecked: boolean): string {
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
      isChecked ? ({ true: 'kept', false: '**MISSED**', undefined: '' }[`${isKept(line)}`] as string) : '',
    ]
  })
  return markdownOf(head, rows)
}

/** What has more than one figure in a row, and no target. */
export type Table = { title: string; head: string[]; rows: string[][] }
export type ReportTable = (table: Table) => void

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

/** With the least and the most of the rounds, where there were several. */
function written({ value, rounds }: Figure, digits?: number): string {
  const spread = rounds.length < 2 ? '' : ` (${number(Math.min(...rounds), digits)} to ${number(Math.max(...rounds), digits)})`
  return `${number(value, digits)}${spread}`
}

function number(value: number, fixed?: number): string {
  const digits = fixed ?? (Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2)
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}
