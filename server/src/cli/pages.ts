import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { printable } from '../printable.ts'
import { asText, tableLine } from './terminal.ts'

type Pages<Item> = AsyncIterable<Item[]>

/** `widths`: the width of the widest value of each column. The last column needs none. */
type Table<Item> = { columns: string[]; widths: number[]; cells: (item: Item) => string[] }

/** Prints items as they are read, since there can be millions. */
export async function printPages<Item>(pages: Pages<Item>, { json }: { json?: boolean }, table: Table<Item>): Promise<void> {
  await pipeline(Readable.from(json ? asJson(pages) : asTable(pages, table)), process.stdout, { end: false }).catch(ignoreClosedPipe)
}

/** The reader may close the pipe early, as in `| head`. */
export function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
}

async function* asJson<Item>(pages: Pages<Item>): AsyncGenerator<string> {
  let separator = '['
  for await (const page of pages) {
    yield `${separator}\n  ${page.map((item) => printable(JSON.stringify(item))).join(',\n  ')}`
    separator = ','
  }
  yield separator === '[' ? '[]\n' : '\n]\n'
}

async function* asTable<Item>(pages: Pages<Item>, { columns, widths, cells }: Table<Item>): AsyncGenerator<string> {
  let isEmpty = true
  for await (const page of pages) {
    const rows = page.map(cells)
    if (isEmpty) rows.unshift(columns)
    isEmpty = false
    yield asText(rows.map((row) => tableLine(row, widths)))
  }
  if (isEmpty) yield asText('None.')
}
