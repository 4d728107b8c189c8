import { execFileSync } from 'node:child_process'
import { cpus, totalmem } from 'node:os'

/** A figure, the limit that was measured in the same run, and what is promised of the two. */
export type Line = {
  part: string
  what: string
  value: number
  unit: string
  limit?: { what: string; value: number }
  /** Of `value` to the limit's, or of `value` itself where there is none. */
  mark?: { least: number } | { most: number }
}

export function ratioOf({ value, limit }: Line): number | undefined {
  return limit === undefined ? undefined : value / limit.value
}

/** Whether a mark is kept; undefined where there is none. */
export function isKept(line: Line): boolean | undefined {
  if (line.mark === undefined) return undefined
  const judged = ratioOf(line) ?? line.value
  return 'least' in line.mark ? judged >= line.mark.least : judged <= line.mark.most
}

/** As a table of Markdown, to be read as it is and to be kept. */
export function tableOf(lines: Line[]): string {
  const head = ['part', 'what', 'measured', 'limit in the same run', 'ratio', 'mark', '']
  const rows = lines.map((line) => [
    line.part,
    line.what,
    `${written(line.value)} ${line.unit}`,
    line.limit === undefined ? '' : `${line.limit.what}: ${written(line.limit.value)}`,
    ratioOf(line)?.toFixed(2) ?? '',
    line.mark === undefined ? '' : 'least' in line.mark ? `at least ${line.mark.least}` : `at most ${line.mark.most}`,
    { true: 'kept', false: 'MISSED', undefined: '' }[`${isKept(line)}`] as string,
  ])
  const widths = head.map((title, column) => Math.max(...[head, ...rows].map((row) => (row[column] ?? title).length)))
  const write = (cells: string[]) => `| ${cells.map((cell, column) => cell.padEnd(widths[column] as number)).join(' | ')} |`
  return [write(head), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...rows.map(write)].join('\n')
}

function written(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

export type Machine = { cpu: string; cores: number; memoryGiB: number; system: string; node: string; commit: string }

export function describeMachine(): Machine {
  const [first] = cpus()
  return {
    cpu: first?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${process.platform} ${process.arch}`,
    node: process.version,
    commit: currentCommit(),
  }
}

/** Empty where the program was not taken from a repository. */
function currentCommit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: import.meta.dirname, stdio: ['ignore', 'pipe', 'ignore'] })
      .toString()
      .trim()
  } catch {
    return ''
  }
}
