// Parses CSV records as in RFC 4180, and numbers them by the physical line that they begin on. The service and the console share this file, so
// that the preview of an import shows what the import will read.

export type CsvRecord = { line: number; fields: string[] } | { line: number; problem: string }

export const MAX_LINE_BYTES = 64 * 1024

const SEPARATORS = [',', ';', '\t']

const TOO_LONG = `the line is longer than ${MAX_LINE_BYTES / 1024} KiB`
const NOT_UTF8 = 'the line is not UTF-8'
const UNCLOSED = 'a quote is opened and never closed'

/** Without its line feed; undefined if it is not UTF-8. */
export type Line = string | undefined

/** The separator that occurs most often in the header, outside quotes. */
export function sniffSeparator(header: string): string {
  const unquoted = header.replace(/"[^"]*"/g, '')
  const counts = SEPARATORS.map((separator) => unquoted.split(separator).length)
  return SEPARATORS[counts.indexOf(Math.max(...counts))] as string
}

type Parsing = { separator: string; firstLine: number; isLast: boolean }

/** `consumed`: the number of lines that the records use up. The remaining lines begin a record that ends in the next block. */
export function parseLines(lines: Line[], { separator, firstLine, isLast }: Parsing): { records: CsvRecord[]; consumed: number } {
  const records: CsvRecord[] = []
  let index = 0
  while (index < lines.length) {
    const parsed = parseRecord(lines, index, separator, isLast)
    if (parsed === 'unfinished') break
    const line = firstLine + index
    if ('problem' in parsed) records.push({ line, problem: parsed.problem })
    else if (!isBlank(lines[index])) records.push({ line, fields: parsed.fields })
    index += parsed.lines
  }
  return { records, consumed: index }
}

/** The current position while reading a record. */
type Cursor = { lines: Line[]; index: number; text: string; at: number; bytesLeft: number; isLast: boolean }
type Parsed = { fields: string[]; lines: number } | { problem: string; lines: 1 } | 'unfinished'

/** After a problem, parsing continues on the second line of the record: a stray quote costs one line, not the file. */
function parseRecord(lines: Line[], index: number, separator: string, isLast: boolean): Parsed {
  const text = lines[index]
  if (text === undefined) return { problem: NOT_UTF8, lines: 1 }
  if (isTooLong(text)) return { problem: TOO_LONG, lines: 1 }
  if (!text.includes('"')) return { fields: withoutReturn(text).split(separator), lines: 1 }
  return parseQuoted({ lines, index, text, at: 0, bytesLeft: MAX_LINE_BYTES - byteLengthOf(text), isLast }, separator)
}

export function isBlank(line: Line): boolean {
  return line === '' || line === '\r'
}

/** Skips the byte count for most lines: a UTF-16 code unit takes at most 3 bytes. */
function isTooLong(text: string): boolean {
  return text.length * 3 > MAX_LINE_BYTES && byteLengthOf(text) > MAX_LINE_BYTES
}

/** The bytes of a text in UTF-8. The text has no lone surrogate, since it was decoded from UTF-8. */
function byteLengthOf(text: string): number {
  let bytes = text.length
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index)
    if (unit < 0x80) continue
    // Four bytes of a surrogate pair are two for each half.
    const isHalf = unit >= 0xd800 && unit < 0xe000
    bytes += unit < 0x800 || isHalf ? 1 : 2
  }
  return bytes
}

function withoutReturn(text: string): string {
  return text.endsWith('\r') ? text.slice(0, -1) : text
}

function parseQuoted(cursor: Cursor, separator: string): Parsed {
  const start = cursor.index
  const fields: string[] = []
  for (;;) {
    const field = cursor.text[cursor.at] === '"' ? readQuotedField(cursor, separator) : readPlainField(cursor, separator)
    if (field === 'unfinished') return field
    if ('problem' in field) return { problem: field.problem, lines: 1 }
    fields.push(field.value)
    if (field.isLast) return { fields, lines: cursor.index - start + 1 }
  }
}

type Field = { value: string; isLast: boolean } | { problem: string } | 'unfinished'

function readPlainField(cursor: Cursor, separator: string): Field {
  const end = cursor.text.indexOf(separator, cursor.at)
  const value = end === -1 ? withoutReturn(cursor.text.slice(cursor.at)) : cursor.text.slice(cursor.at, end)
  if (value.includes('"')) return { problem: 'there is a quote inside a field that does not begin with one' }
  cursor.at = end + 1
  return { value, isLast: end === -1 }
}

function readQuotedField(cursor: Cursor, separator: string): Field {
  let value = ''
  cursor.at += 1
  for (;;) {
    const quote = cursor.text.indexOf('"', cursor.at)
    if (quote === -1) {
      value += `${cursor.text.slice(cursor.at)}\n`
      const stop = toNextLine(cursor)
      if (stop !== undefined) return stop
    } else if (cursor.text[quote + 1] === '"') {
      value += cursor.text.slice(cursor.at, quote + 1)
      cursor.at = quote + 2
    } else {
      value += cursor.text.slice(cursor.at, quote)
      cursor.at = quote + 2
      return afterQuote(value, cursor.text.slice(quote + 1), separator)
    }
  }
}

function afterQuote(value: string, rest: string, separator: string): Field {
  if (rest.startsWith(separator)) return { value, isLast: false }
  return rest === '' || rest === '\r' ? { value, isLast: true } : { problem: 'there is text after a closing quote' }
}

function toNextLine(cursor: Cursor): 'unfinished' | { problem: string } | undefined {
  cursor.index += 1
  if (cursor.index >= cursor.lines.length) return cursor.isLast ? { problem: UNCLOSED } : 'unfinished'
  const next = cursor.lines[cursor.index]
  if (next === undefined) return { problem: `${UNCLOSED}, or continues in a line that is not UTF-8` }
  cursor.bytesLeft -= 1 + byteLengthOf(next)
  if (cursor.bytesLeft < 0) return { problem: `${UNCLOSED} within ${MAX_LINE_BYTES / 1024} KiB` }
  cursor.text = next
  cursor.at = 0
  return undefined
}
