import { type CsvRecord, isBlank, type Line, parseLines, sniffSeparator } from '../../../../../server/src/groups/csv-records.ts'

/** Has a header and a record of the greatest length, which are 64 KiB each, and hundreds of lines as people have them. */
const HEAD_BYTES = 256 * 1024
export const LF = 10
const UTF8_BOM = [0xef, 0xbb, 0xbf]
export const PREVIEWED = 20

/** The begin of a file, read as the import of Herald reads it. */
export type FileHead = {
  separator: string
  /** The first one may be the header. */
  records: CsvRecord[]
  /** Where the file begins behind a byte order mark. */
  start: number
  /** Where the line behind the first record begins, in bytes, and how many lines stand before it. */
  second: { at: number; linesBefore: number }
  /** How many lines the file has, at a guess. Exact if the file is short. */
  lines: { count: number; isExact: boolean }
}

/** Reads the begin of a file. Undefined: the file has nothing but blank lines. Throws if the browser can't read the file. */
export async function readHead(file: File): Promise<FileHead | undefined> {
  const bytes = new Uint8Array(await file.slice(0, HEAD_BYTES).arrayBuffer())
  const isWhole = bytes.length === file.size
  const start = UTF8_BOM.every((byte, index) => bytes[index] === byte) ? UTF8_BOM.length : 0
  const starts = lineStarts(bytes, start)
  const lines = decodeLines(bytes, starts, isWhole)
  const separator = sniffSeparator(lines.find((line) => !isBlank(line)) ?? '')
  const { records } = parseLines(lines, { separator, firstLine: 1, isLast: isWhole })
  if (records.length === 0) return undefined
  const secondLine = records[1]?.line
  return {
    separator,
    records: records.slice(0, PREVIEWED + 1),
    start,
    second:
      secondLine === undefined
        ? { at: file.size, linesBefore: lines.length }
        : { at: starts[secondLine - 1] as number, linesBefore: secondLine - 1 },
    lines: isWhole
      ? { count: records.length, isExact: true }
      : { count: Math.round((records.length * file.size) / bytes.length), isExact: false },
  }
}

export function lineStarts(bytes: Uint8Array, start: number): number[] {
  const starts = [start]
  for (let at = bytes.indexOf(LF, start); at !== -1; at = bytes.indexOf(LF, at + 1)) starts.push(at + 1)
  return starts
}

/** The lines without their line feeds. The last line of a part of a file is left out, since its end is missing. */
export function decodeLines(bytes: Uint8Array, starts: number[], isWhole: boolean): Line[] {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const ends = [...starts.slice(1).map((start) => start - 1), bytes.length]
  const lines = starts.map((start, index) => {
    try {
      return decoder.decode(bytes.subarray(start, ends[index]))
    } catch {
      return undefined
    }
  })
  const hasRest = !isWhole || lines.at(-1) === ''
  return hasRest ? lines.slice(0, -1) : lines
}
