import { printable } from '../printable.ts'
import type { FoundRows } from './find.ts'

/** Writes rows as they are read: a test number can be in millions of them. `onRows`: called with the number of rows of each batch. */
export async function* asJson(
  phone: string,
  found: AsyncIterable<FoundRows>,
  onRows: (rows: number) => void = () => {},
): AsyncGenerator<string> {
  yield `{\n  "phone": "${phone}",\n  "exportedAt": "${new Date().toISOString()}"`
  let current: string | undefined
  for await (const { place, rows } of found) {
    if (place !== current) yield `${current === undefined ? '' : '\n  ]'},\n  "${place}": [`
    yield rows.map((row, index) => `${place === current || index > 0 ? ',' : ''}\n    ${printable(JSON.stringify(row))}`).join('')
    current = place
    onRows(rows.length)
  }
  yield current === undefined ? '\n}\n' : '\n  ]\n}\n'
}
