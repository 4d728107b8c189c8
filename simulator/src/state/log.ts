import { closeSync, fstatSync, ftruncateSync, openSync, readSync, writeFileSync } from 'node:fs'

const NEWLINE = 10
const CHUNK_BYTES = 1_048_576
const FIRST_READ_BYTES = 4096

/**
 * An append-only file of lines. Lines come in batches, and an empty line ends each batch. Lines after the last empty line belong to a batch that
 * was not written completely; opening the file removes them. The offset of its first byte identifies a line.
 */
export type Log = {
  /** Adds a line to the batch and returns its offset. Nothing is written yet. */
  append: (line: string) => number
  /** Writes the batch, and ends it. */
  commit: () => void
  /** Returns the offset at which the last complete batch ends. */
  end: () => number
  read: (offset: number) => string
  /** Yields the lines of complete batches from an offset on. */
  lines: (from: number) => Generator<[offset: number, line: string]>
  close: () => void
}

export function openLog(path: string): Log {
  const file = openSync(path, 'a+', 0o600)
  let end = cutTornBatch(file)
  let written = end
  let pending = ''
  let next = end
  let buffer = Buffer.allocUnsafe(FIRST_READ_BYTES)

  /** Writes the lines of the batch so far, without ending it, so that they can be read. */
  function flush(): void {
    if (pending === '') return
    writeFileSync(file, pending)
    pending = ''
    written = next
  }

  return {
    append: (line) => {
      const offset = next
      next += Buffer.byteLength(line) + 1
      pending += `${line}\n`
      return offset
    },
    commit: () => {
      if (next === end) return
      pending += '\n'
      next++
      flush()
      end = next
    },
    end: () => end,
    read: (offset) => {
      if (offset >= written) flush()
      for (;;) {
        const bytes = readSync(file, buffer, 0, buffer.length, offset)
        const length = buffer.subarray(0, bytes).indexOf(NEWLINE)
        if (length !== -1) return buffer.toString('utf8', 0, length)
        if (bytes < buffer.length) throw new Error(`There is no line at ${offset} of the log.`)
        buffer = Buffer.allocUnsafe(buffer.length * 4)
      }
    },
    lines: (from) => linesOf(file, from, end),
    close: () => closeSync(file),
  }
}

function* linesOf(file: number, from: number, to: number): Generator<[offset: number, line: string]> {
  let offset = from
  let buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, to - from))
  while (offset < to) {
    const bytes = readSync(file, buffer, 0, Math.min(buffer.length, to - offset), offset)
    let at = 0
    for (let lineEnd = 0; ; at = lineEnd + 1) {
      lineEnd = buffer.indexOf(NEWLINE, at)
      if (lineEnd === -1 || lineEnd >= bytes) break
      if (lineEnd > at) yield [offset + at, buffer.toString('utf8', at, lineEnd)]
    }
    // A line that is longer than the buffer.
    if (at === 0) buffer = Buffer.allocUnsafe(buffer.length * 4)
    offset += at
  }
}

/** Removes an incomplete batch. Returns the offset at which the last complete batch ends. */
function cutTornBatch(file: number): number {
  const { size } = fstatSync(file)
  let end = 0
  for (let from = size; from > 0 && end === 0; ) {
    // Chunks overlap by one byte: the two newlines may be on both sides of a border.
    const to = Math.min(from + 1, size)
    from = Math.max(0, from - CHUNK_BYTES)
    const chunk = Buffer.alloc(to - from)
    readSync(file, chunk, 0, chunk.length, from)
    const at = chunk.lastIndexOf('\n\n')
    if (at !== -1) end = from + at + 2
  }
  if (end < size) ftruncateSync(file, end)
  return end
}
