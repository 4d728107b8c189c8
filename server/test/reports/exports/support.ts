import assert from 'node:assert/strict'
import { crc32, inflateRawSync } from 'node:zlib'
import { parse } from 'csv-parse/sync'

/** Reads a file by RFC 4180: a header, lines that end with CRLF, the same number of cells in each, no byte-order mark. */
export function readCsv(text: string): Record<string, string>[] {
  assert.ok(text.endsWith('\r\n') && !text.startsWith('\ufeff'))
  const rows = parse(text, { record_delimiter: '\r\n', relax_column_count: false, bom: false }) as string[][]
  const [names = [], ...lines] = rows
  return lines.map((cells) => Object.fromEntries(names.map((name, index) => [name, cells[index] as string])))
}

const BLANKS =
  '\\x01-\\x20\\x7f-\\xa0\\xad\\u061c\\u115f\\u1160\\u1680\\u180e\\u2000-\\u200f\\u2028-\\u202f\\u205f-\\u206f\\u2800\\u3000\\u3164\\ufeff\\uffa0\\u034f\\ufe00-\\ufe0f\\u{e0000}-\\u{e0fff}'
const SIGNS = '=+\\-@\\ufe62\\ufe63\\ufe66\\ufe6b\\uff0b\\uff0d\\uff1d\\uff20'
const FORMULA = new RegExp(`((?:^|[;,|\\t-\\r\\x1c-\\x1e])[${BLANKS}"]*)([${SIGNS}])`, 'gu')

/** A text as exports write it, by a regular expression, which is another way than that of the exports. */
export function defused(text: string): string {
  return (/^[\t\r\n]/.test(text) ? "'" : '') + text.replace(FORMULA, "$1'$2")
}

const STARTS_A_FORMULA = new RegExp(`^[${BLANKS}]*[${SIGNS}]`, 'u')

export function startsFormula(cell: string): boolean {
  return STARTS_A_FORMULA.test(cell)
}

/**
 * The cells of a file as Excel reads it where `separator` separates them: quotes count at the beginning of a cell only, and what follows the
 * closing one belongs to the cell.
 */
export function cellsBy(separator: string, file: string): string[] {
  const cells: string[] = []
  let at = 0
  while (at < file.length) {
    let cell = ''
    if (file[at] === '"') {
      at += 1
      while (at < file.length && (file[at] !== '"' || file[at + 1] === '"')) {
        cell += file[at]
        at += file[at] === '"' ? 2 : 1
      }
      at += 1
    }
    while (at < file.length && file[at] !== separator && file[at] !== '\n' && file[at] !== '\r') {
      cell += file[at]
      at += 1
    }
    at += 1
    cells.push(cell)
  }
  return cells
}

const END = 0x06054b50
const ENTRY = 0x02014b50

/** The files of an archive, by its directory, each held against its checksum. For small archives: `npm run chaos -- exports` reads large ones. */
export function readZip(archive: Buffer): Map<string, string> {
  const end = archive.lastIndexOf(Buffer.from(Uint32Array.of(END).buffer))
  assert.ok(end >= 0, 'a complete archive has an end record')
  const files = new Map<string, string>()
  let at = archive.readUInt32LE(end + 16)
  for (let left = archive.readUInt16LE(end + 10); left > 0; left -= 1) {
    assert.equal(archive.readUInt32LE(at), ENTRY)
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((field) => archive.readUInt16LE(at + field)) as [
      number,
      number,
      number,
    ]
    const name = archive.toString('utf8', at + 46, at + 46 + nameLength)
    const local = archive.readUInt32LE(at + 42)
    const begin = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28)
    const content = inflateRawSync(archive.subarray(begin, begin + archive.readUInt32LE(at + 20)))
    assert.equal(crc32(content), archive.readUInt32LE(at + 16), `the checksum of ${name}`)
    files.set(name, content.toString('utf8'))
    at += 46 + nameLength + extraLength + commentLength
  }
  return files
}
