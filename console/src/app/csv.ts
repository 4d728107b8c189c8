import { defused } from '../../../server/src/reports/exports/csv.ts'

export type Cell = string | number | null
export type Table = { names: readonly string[]; rows: Cell[][] }

/** A spreadsheet must not run a text as a formula. A phone number begins like one, and is harmless. */
function cellOf(value: Cell): string {
  const text = String(value ?? '').replaceAll('"', '""')
  const safe = typeof value === 'string' && !/^\+\d+$/.test(text) ? defused(text) : text
  return /[",\r\n]/.test(safe) ? `"${safe}"` : safe
}

/** A table as in RFC 4180, with the names of its columns in the first line. */
export const csvOf = ({ names, rows }: Table) => [names, ...rows].map((cells) => `${cells.map(cellOf).join(',')}\r\n`).join('')
