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
  mark?: { of: 'ratio' | 'measured'; least?: number; most?: number }
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

/** Whether a mark is kept; undefined where there is none. What is no number keeps none. */
export function isKept(line: Line): boolean | undefined {
  if (line.mark === undefined) return undefined
  const { of, least = Number.NEGATIVE_INFINITY, most = Number.POSITIVE_INFINITY } = line.mark
  const judged = (of === 'ratio' ? ratioOf(line) : line.measured)?.value ?? Number.NaN
  return judged >= least && judged <= most
}

/** As a table of Markdown, to be read as it is and to be kept as it is. What is too short to judge by has no verdicts. */
export function tableOf(lines: Line[], isJudged: boolean): string {
  const head = ['part', 'what', 'measured', 'limit in the same run', 'ratio', 'mark', '']
  const rows = lines.map((line) => {
    const ratio = ratioOf(line)
    return [
      line.part,
      line.what,
      `${written(line.measured)} ${line.unit}`,
      line.limit === undefined ? '' : `${line.limit.what}: ${written(line.limit)}`,
      ratio === undefined ? '' : written(ratio, 2),
      markOf(line),
      isJudged ? ({ true: 'kept', false: '**MISSED**', undefined: '' }[`${isKept(line)}`] as string) : '',
    ]
  })
  const widths = head.map((title, column) => Math.max(...[head, ...rows].map((row) => (row[column] ?? title).length)))
  const write = (cells: string[]) => `| ${cells.map((cell, column) => cell.padEnd(widths[column] as number)).join(' | ')} |`
  return [write(head), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...rows.map(write)].join('\n')
}

function markOf({ mark, unit }: Line): string {
  if (mark === undefined) return ''
  const bound = mark.least === undefined ? `at most ${mark.most}` : `at least ${mark.least}`
  return mark.of === 'ratio' ? `ratio ${bound}` : `${bound} ${unit}`
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
