import { BYTE_ORDER_MARK } from '../../../server/src/reports/exports/csv.ts'
import { csvOf, type Table } from './csv.ts'

const KEPT_MS = 60_000

/** Saves a table as a CSV file, which Excel reads as UTF-8. */
export function saveCsv(name: string, table: Table): void {
  const href = URL.createObjectURL(new Blob([BYTE_ORDER_MARK, csvOf(table)], { type: 'text/csv' }))
  Object.assign(document.createElement('a'), { href, download: `${name}.csv` }).click()
  // The browser may not have begun to read it.
  setTimeout(() => URL.revokeObjectURL(href), KEPT_MS)
}
