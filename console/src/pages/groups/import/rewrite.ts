import { MAX_LINE_BYTES, parseLines } from '../../../../../server/src/groups/csv-records.ts'
import { type Column, problemOf, quoted } from './columns.ts'
import { decodeLines, LF, lineStarts } from './file-head.ts'

const BLOCK_BYTES = 1024 * 1024

/** The header that is sent is one line. */
const FIRST_LINE = 2

/** What Herald says of an import. */
export type Imported = { imported: number; rejected: { line: number; reason: string }[] }

type Rewriting = {
  /** The file behind its header. */
  rest: Blob
  columns: Column[]
  separator: string
  signal: AbortSignal
  /** Called with the share of the file that was read. */
  onShare: (share: number) => void
}

type Rewritten = {
  /** Some MB a part, which the browser keeps outside of the memory of the page. */
  parts: Blob[]
  /** The lines that Herald would reject, and that are not sent, since nobody can tell which of their fields to leave out. */
  rejected: Imported['rejected']
}

/**
 * Empties the columns that the person leaves out, so that Herald never gets them. Every record keeps its line: a record that gets shorter is
 * followed by blank lines, which the import skips.
 */
export async function rewrite({ rest, columns, separator, signal, onShare }: Rewriting): Promise<Rewritten> {
  const result: Rewritten = { parts: [], rejected: [] }
  let lines: ReturnType<typeof decodeLines> = []
  let line = FIRST_LINE
  for await (const { bytes, isLast, read } of blocksOf(rest)) {
    signal.throwIfAborted()
    lines = lines.concat(decodeLines(bytes, lineStarts(bytes, 0), true))
    const { records, consumed } = parseLines(lines, { separator, firstLine: line, isLast })
    let text = ''
    let next = line
    for (const record of records) {
      text += '\n'.repeat(record.line - next)
      next = record.line
      const reason = problemOf(record, columns)
      if (reason !== undefined) result.rejected.push({ line: record.line, reason })
      else if ('fields' in record) {
        const written = `${record.fields.map((field, index) => (columns[index]?.use === 'none' ? '' : cell(field, separator))).join(separator)}\n`
        text += written
        next += written.split('\n').length - 1
      }
    }
    line += consumed
    lines = lines.slice(consumed)
    result.parts.push(new Blob([text, '\n'.repeat(line - next)]))
    onShare(read / rest.size)
  }
  return result
}

/** Blocks of whole lines. Of a line that is too long, only enough to show that. */
async function* blocksOf(source: Blob): AsyncGenerator<{ bytes: Uint8Array; isLast: boolean; read: number }> {
  let held: Uint8Array<ArrayBuffer> = new Uint8Array()
  for (let at = 0; at < source.size; at += BLOCK_BYTES) {
    const read = Math.min(at + BLOCK_BYTES, source.size)
    const bytes = new Uint8Array(await new Blob([held, source.slice(at, read)]).arrayBuffer())
    const isLast = read === source.size
    const end = isLast ? bytes.length : bytes.lastIndexOf(LF) + 1
    yield { bytes: bytes.subarray(0, end), isLast, read }
    held = bytes.slice(end, end + MAX_LINE_BYTES + 1)
  }
}

const cell = (text: string, separator: string) => (/["\r\n]/.test(text) || text.includes(separator) ? quoted(text) : text)
