import { printable } from '../printable.ts'

// Everything that a command prints goes through this file. Output is a list of lines. A line break inside a line came with the text of a caller
// or recipient, and is escaped like every other control character.

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

/** Messages to the operator: only results go to the output. */
export function printError(lines: Lines): void {
  process.stderr.write(asText(lines))
}

/** The only line breaks of JSON are those between its lines: those of texts are escaped by JSON itself. */
export function jsonLines(value: unknown): string[] {
  return JSON.stringify(value, null, 2).split('\n')
}

/** Columns for people; says so where there are no rows. */
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

// Escaped before it is measured, since escaping makes it wider.
function cellText(value: unknown): string {
  if (value === null || value === undefined) return '-'
  return printable(value instanceof Date ? value.toISOString() : String(value))
}

/** `1 message`, `1,200 messages`. */
export function counted(count: number, one: string, several = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : several}`
}

const FROM_THE_START = '\r\u001b[K'

/** Progress: one line on a terminal, rewritten each time. Where the error stream is not a terminal, nothing; with `each`, a line each time. */
export function statusLine({ each = false } = {}): { show: (line: string) => void; keep: () => void; clear: () => void } {
  if (!process.stderr.isTTY) return { show: (line) => each && printError(line), keep: () => {}, clear: () => {} }
  return {
    show: (line) => process.stderr.write(`${FROM_THE_START}${printable(line)}`),
    keep: () => process.stderr.write('\n'),
    clear: () => process.stderr.write(FROM_THE_START),
  }
}
