import { printable } from '../printable.ts'

// Everything that a command prints goes through this file. Output is a list of lines. A line break inside a line comes from a caller's or a
// recipient's text, and is escaped like every other control character.

export type Lines = string | readonly string[]

export function asText(lines: Lines): string {
  return [lines]
    .flat()
    .map((line) => `${printable(line)}\n`)
    .join('')
}

export function print(lines: Lines): void {
  process.stdout.write(asText(lines))
}

/** Prints messages to the operator. Only results go to standard output. */
export function printError(lines: Lines): void {
  process.stderr.write(asText(lines))
}

/** Splitting is safe: JSON escapes line breaks inside strings. */
export function jsonLines(value: unknown): string[] {
  return JSON.stringify(value, null, 2).split('\n')
}

/** Formats rows as columns of text, or as `None.` if there are no rows. */
export function table(columns: string[], rows: unknown[][]): string[] {
  if (rows.length === 0) return ['None.']
  const cells = [columns, ...rows.map((row) => row.map(cellText))]
  const widths = columns.map((_, index) => Math.max(...cells.map((row) => (row[index] ?? '').length)))
  return cells.map((row) => tableLine(row, widths))
}

/** Cells beyond `widths` are not padded. */
export function tableLine(cells: string[], widths: number[]): string {
  return cells
    .map((cell, index) => printable(cell).padEnd(widths[index] ?? 0))
    .join('  ')
    .trimEnd()
}

// Escapes the value before the column width is measured, since escaping makes it longer.
function cellText(value: unknown): string {
  if (value === null || value === undefined) return '-'
  return printable(value instanceof Date ? value.toISOString() : String(value))
}

/** `1 message`, `1,200 messages`. */
export function quantity(count: number, one: string, several = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : several}`
}

const CLEAR_LINE = '\r\u001b[K'

/** Shows progress as one line, which it rewrites. If standard error is not a terminal, it shows nothing or, with `each`, a new line each time. */
export function statusLine({ each = false } = {}): { show: (line: string) => void; keep: () => void; clear: () => void } {
  if (!process.stderr.isTTY) return { show: (line) => each && printError(line), keep: () => {}, clear: () => {} }
  return {
    show: (line) => process.stderr.write(`${CLEAR_LINE}${printable(line)}`),
    keep: () => process.stderr.write('\n'),
    clear: () => process.stderr.write(CLEAR_LINE),
  }
}
