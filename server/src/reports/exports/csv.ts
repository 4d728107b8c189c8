import { BLANK, LEAD, MEANINGS, meaningOf, QUOTE_MARK, SEPARATOR, SIGN } from './formulas.ts'

// CSV as RFC 4180 has it, out of what PostgreSQL's COPY writes: lines that end with CRLF, times as the API writes them, and an apostrophe
// where a text could start a formula.
//
// It is done here, byte by byte, since it costs little here. For a million messages PostgreSQL takes 5.2 s of a processor to write the times in
// its own form, 9.5 s by to_char(), and 8.8 s by the cheapest other expression that was found; going through the bytes takes 1.2 s, of
// another processor. Formulas cost PostgreSQL 0.6 to 1.2 µs a text by a regular expression.

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const APOSTROPHE = 0x27
const PLUS = 0x2b
const COMMA = 0x2c
const POINT = 0x2e
const ZERO = 0x30
const T = 0x54
const Z = 0x5a

const MILLISECOND_DIGITS = 3
/** In UTF-8. Excel recognizes a file as UTF-8 by it. */
export const BYTE_ORDER_MARK = Buffer.from('\ufeff')

// What is handed on at once. A piece is never written to again: it is the client's until it has been sent.
const PIECE_BYTES = 64 * 1024
const LEAST_ROOM_BYTES = 1024
// What began in the input before may need more: the end of a time 4 bytes, a character and its apostrophe 5.
const RESERVED_BYTES = 5

type Rewriting = {
  input: Buffer
  read: number
  /** How far it may read. */
  end: number
  output: Buffer
  written: number
  /** Where in the file it is: goes on from there for as long as it can. */
  step: (rewriting: Rewriting) => void
  /** Of the seconds of a time, how many there were behind the point; -1 before it. */
  digits: number
  /** Where a text goes on after a quote in it. */
  afterQuote: (rewriting: Rewriting) => void
  /** A character of several bytes: its bits so far, and how many bytes are missing. */
  codePoint: number
  missing: number
}

type Rewriter = { write: (chunk: Buffer) => void; rest: () => Buffer }

/**
 * For a file that is written by COPY, with every text in quotes and the zone UTC. Takes it cut anywhere, calls `onPiece` for every piece that
 * is full, and has the last one as `rest`. `bom`: with a byte-order mark in front, which comes with the first piece.
 */
export function createRewriter(onPiece: (piece: Buffer) => void, { bom = false } = {}): Rewriter {
  const rewriting = begin()
  let front = bom ? BYTE_ORDER_MARK : NOTHING
  return {
    write: (chunk) => {
      rewriting.input = chunk
      rewriting.read = 0
      while (rewriting.read < chunk.length) {
        if (rewriting.output.length - rewriting.written < LEAST_ROOM_BYTES) {
          if (rewriting.written > 0) onPiece(take(rewriting))
          rewriting.output = Buffer.allocUnsafeSlow(PIECE_BYTES)
          rewriting.written = front.copy(rewriting.output)
          front = NOTHING
        }
        rewrite(rewriting)
      }
    },
    rest: () => take(rewriting),
  }
}

const NOTHING = Buffer.alloc(0)

function begin(): Rewriting {
  const place = { input: NOTHING, read: 0, end: 0, output: NOTHING, written: 0 }
  return { ...place, step: copyOutside, digits: -1, afterQuote: copyText, codePoint: 0, missing: 0 }
}

function take(rewriting: Rewriting): Buffer {
  const { output, written } = rewriting
  rewriting.output = NOTHING
  rewriting.written = 0
  return output.subarray(0, written)
}

/** As much as there is room for. Nothing becomes more than twice as long but what began before, of which there is one at most. */
function rewrite(rewriting: Rewriting): void {
  const { input, read, output, written } = rewriting
  const end = Math.min(input.length, read + Math.floor((output.length - written - RESERVED_BYTES) / 2))
  rewriting.end = end
  while (rewriting.read < end) rewriting.step(rewriting)
}

/** Outside of quotes there is a space in times only. */
function copyOutside(rewriting: Rewriting): void {
  const { input, output, end } = rewriting
  let { read, written } = rewriting
  let byte = 0
  while (read < end) {
    byte = input[read] as number
    read += 1
    if (byte > QUOTE) {
      output[written] = byte
      written += 1
    } else if (byte === LF) {
      output[written] = CR
      output[written + 1] = LF
      written += 2
    } else {
      output[written] = byte === SPACE ? T : byte
      written += 1
      break
    }
  }
  rewriting.read = read
  rewriting.written = written
  if (byte === QUOTE) rewriting.step = openText
  else if (byte === SPACE) rewriting.step = copyTime
}

/** A text that begins with a tab or a line break gets an apostrophe in front, too: some spreadsheets skip these. */
function openText(rewriting: Rewriting): void {
  const { input, read, output, written } = rewriting
  const byte = input[read]
  if (byte === TAB || byte === LF || byte === CR) {
    output[written] = APOSTROPHE
    rewriting.written = written + 1
  }
  rewriting.step = copyCellStart
}

/** Up to the next place where a cell could start, or to a quote. */
function copyText(rewriting: Rewriting): void {
  const { input, output, end } = rewriting
  let { read, written } = rewriting
  let meaning = 0
  while (read < end && meaning !== SEPARATOR && meaning !== QUOTE_MARK) {
    const byte = input[read] as number
    read += 1
    output[written] = byte
    written += 1
    meaning = MEANINGS[byte] as number
  }
  rewriting.read = read
  rewriting.written = written
  if (meaning === SEPARATOR) rewriting.step = copyCellStart
  else if (meaning === QUOTE_MARK) leaveQuotes(rewriting, copyText)
}

/**
 * Where a cell could start: a sign gets an apostrophe in front, also behind blanks, further separators, and quotes. A quote counts as nothing,
 * since `;""=1` starts a cell that is =1 where `;` separates.
 */
function copyCellStart(rewriting: Rewriting): void {
  const { input, output, end } = rewriting
  let { read, written } = rewriting
  let meaning: number = BLANK
  while (read < end && (meaning === BLANK || meaning === SEPARATOR)) {
    const byte = input[read] as number
    meaning = MEANINGS[byte] as number
    if (meaning === LEAD) break
    read += 1
    if (meaning === SIGN) output[written++] = APOSTROPHE
    output[written++] = byte
  }
  rewriting.read = read
  rewriting.written = written
  if (meaning === QUOTE_MARK) leaveQuotes(rewriting, copyCellStart)
  else if (meaning === LEAD) rewriting.step = beginCharacter
  else if (meaning !== BLANK && meaning !== SEPARATOR) rewriting.step = copyText
}

/** A quote within a text is written twice, and so leads out and back in. */
function leaveQuotes(rewriting: Rewriting, afterQuote: Rewriting['step']): void {
  rewriting.afterQuote = afterQuote
  rewriting.step = copyAfterQuote
}

function copyAfterQuote(rewriting: Rewriting): void {
  if (rewriting.input[rewriting.read] !== QUOTE) {
    rewriting.step = copyOutside
    return
  }
  rewriting.output[rewriting.written] = QUOTE
  rewriting.read += 1
  rewriting.written += 1
  rewriting.step = rewriting.afterQuote
}

/** In UTF-8, the first byte of a character says how many follow it. */
function beginCharacter(rewriting: Rewriting): void {
  const lead = rewriting.input[rewriting.read] as number
  rewriting.read += 1
  rewriting.missing = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1
  rewriting.codePoint = lead & (0x3f >> rewriting.missing)
  rewriting.step = endCharacter
}

/** Written when it is whole, since the apostrophe goes before it. */
function endCharacter(rewriting: Rewriting): void {
  const { input, output, end } = rewriting
  while (rewriting.read < end && rewriting.missing > 0) {
    rewriting.codePoint = (rewriting.codePoint << 6) | ((input[rewriting.read] as number) & 0x3f)
    rewriting.read += 1
    rewriting.missing -= 1
  }
  if (rewriting.missing > 0) return
  const meaning = meaningOf(rewriting.codePoint)
  if (meaning === SIGN) output[rewriting.written++] = APOSTROPHE
  rewriting.written += output.write(String.fromCodePoint(rewriting.codePoint), rewriting.written)
  rewriting.step = meaning === BLANK ? copyCellStart : copyText
}

/** 19:00:00.12+00, with as many digits as there are, becomes 19:00:00.120Z. */
function copyTime(rewriting: Rewriting): void {
  const { input, output, end } = rewriting
  let { read, written, digits } = rewriting
  let byte = 0
  while (read < end) {
    byte = input[read] as number
    read += 1
    if (byte === PLUS) break
    if (byte === POINT || digits >= 0) digits += 1
    output[written] = byte
    written += 1
  }
  rewriting.digits = digits
  rewriting.read = read
  rewriting.written = written
  if (byte === PLUS) endTime(rewriting)
}

function endTime(rewriting: Rewriting): void {
  const { output, digits } = rewriting
  let { written } = rewriting
  if (digits === -1) output[written++] = POINT
  for (let count = Math.max(digits, 0); count < MILLISECOND_DIGITS; count += 1) output[written++] = ZERO
  output[written++] = Z
  rewriting.written = written
  rewriting.digits = -1
  rewriting.step = skipZone
}

function skipZone(rewriting: Rewriting): void {
  const { input, end } = rewriting
  let { read } = rewriting
  while (read < end && input[read] !== COMMA && input[read] !== LF) read += 1
  rewriting.read = read
  if (read < end) rewriting.step = copyOutside
}
