import { BLANK, LEAD, MEANINGS, meaningOf, QUOTE_MARK, SEPARATOR, SIGN } from './formulas.ts'

// Turns the output of PostgreSQL's COPY into CSV by RFC 4180: lines that end with CRLF, times as the API writes them, and an apostrophe where a
// text could start a formula.
//
// It works byte by byte, since that is cheap here. For a million messages PostgreSQL takes 5.2 s of CPU time to write the times in its own form,
// 9.5 s by to_char(), and 8.8 s by the cheapest other expression; this takes 1.2 s, of another CPU. A regular expression for formulas would
// cost PostgreSQL 0.6 to 1.2 µs for each text.

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const APOSTROPHE = 0x27
const PLUS = 0x2b
const COMMA = 0x2c
const T = 0x54

const TIME_BYTES = ' 19:00:00'.length
/** What follows the seconds. A time that has a fraction gets the rest. */
const TIME_END = Buffer.from('.000Z')
/** In UTF-8. Excel recognizes a file as UTF-8 by it. */
export const BYTE_ORDER_MARK = Buffer.from('\ufeff')
const NOTHING = Buffer.alloc(0)

// The size of a piece. A piece is never written to again: it belongs to the client until it has been sent.
const PIECE_BYTES = 64 * 1024
const LEAST_ROOM_BYTES = 1024
// Room for a time or a character, which are never split.
const RESERVED_BYTES = 32

type Rewriting = {
  input: Buffer
  read: number
  output: Buffer
  written: number
  /** Goes on up to `end`, from where in the file it is. Reads nothing where the input is cut within a time, a character or a pair of quotes. */
  step: (rewriting: Rewriting, end: number) => void
}

type Rewriter = { write: (chunk: Buffer) => void; rest: () => Buffer }

/**
 * For a file that is written by COPY, with every text in quotes and the zone UTC. Takes it cut anywhere, calls `onPiece` for every piece that
 * is full, and has the last one as `rest`. `bom`: with a byte-order mark in front, which comes with the first piece.
 */
export function createRewriter(onPiece: (piece: Buffer) => void, { bom = false } = {}): Rewriter {
  const rewriting: Rewriting = { input: NOTHING, read: 0, output: NOTHING, written: 0, step: copyOutside }
  let front = bom ? BYTE_ORDER_MARK : NOTHING
  let unread = NOTHING

  const piece = () => rewriting.output.subarray(0, rewriting.written)
  const makeRoom = () => {
    if (rewriting.output.length - rewriting.written >= LEAST_ROOM_BYTES) return
    if (rewriting.written > 0) onPiece(piece())
    rewriting.output = Buffer.allocUnsafeSlow(PIECE_BYTES)
    rewriting.written = front.copy(rewriting.output)
    front = NOTHING
  }
  return {
    write: (chunk) => {
      rewriting.input = unread.length === 0 ? chunk : Buffer.concat([unread, chunk])
      rewriting.read = 0
      do makeRoom()
      while (rewrite(rewriting))
      // Copied, since the driver uses the memory of a chunk again.
      unread = rewriting.read < rewriting.input.length ? Buffer.from(rewriting.input.subarray(rewriting.read)) : NOTHING
    },
    rest: () => Buffer.concat([piece(), unread]),
  }
}

/** As much as there is room for: nothing becomes more than twice as long. Returns whether it can go on. */
function rewrite(rewriting: Rewriting): boolean {
  const { input, read, output, written } = rewriting
  const end = Math.min(input.length, read + Math.floor((output.length - written - RESERVED_BYTES) / 2))
  while (rewriting.read < end) {
    const before = rewriting.read
    rewriting.step(rewriting, end)
    if (rewriting.read === before) return false
  }
  return end < input.length
}

/** Outside of quotes there is a space in times only. */
function copyOutside(rewriting: Rewriting, end: number): void {
  const { input, output } = rewriting
  let { read, written } = rewriting
  let byte = 0
  while (read < end) {
    byte = input[read] as number
    if (byte === SPACE || byte === QUOTE) break
    if (byte === LF) output[written++] = CR
    output[written++] = byte
    read += 1
  }
  rewriting.read = read
  rewriting.written = written
  if (byte === QUOTE) openText(rewriting)
  else if (byte === SPACE) copyTime(rewriting)
}

/** 19:00:00.12+00, with as many digits as there are, becomes 19:00:00.120Z. */
function copyTime(rewriting: Rewriting): void {
  const { input, output, read } = rewriting
  let { written } = rewriting
  let plus = read + TIME_BYTES
  while ((input[plus] as number) > PLUS) plus += 1
  let next = plus
  while (next < input.length && input[next] !== COMMA && input[next] !== LF) next += 1
  if (next >= input.length) return
  output[written++] = T
  for (let at = read + 1; at < plus; at += 1) output[written++] = input[at] as number
  const fractionBytes = plus - read - TIME_BYTES
  for (let at = Math.min(fractionBytes, TIME_END.length - 1); at < TIME_END.length; at += 1) output[written++] = TIME_END[at] as number
  rewriting.read = next
  rewriting.written = written
}

/** A text that begins with a tab or a line break gets an apostrophe in front, too: some spreadsheets skip these. */
function openText(rewriting: Rewriting): void {
  const { input, output } = rewriting
  const first = input[rewriting.read + 1]
  if (first === undefined) return
  rewriting.read += 1
  output[rewriting.written++] = QUOTE
  if (first === TAB || first === LF || first === CR) output[rewriting.written++] = APOSTROPHE
  rewriting.step = copyCellStart
}

/** Up to the next place where a cell could start, or to a quote. */
function copyText(rewriting: Rewriting, end: number): void {
  const { input, output } = rewriting
  let { read, written } = rewriting
  let meaning = 0
  while (read < end && meaning !== SEPARATOR) {
    const byte = input[read] as number
    meaning = MEANINGS[byte] as number
    if (meaning === QUOTE_MARK) break
    read += 1
    output[written++] = byte
  }
  rewriting.read = read
  rewriting.written = written
  if (meaning === SEPARATOR) rewriting.step = copyCellStart
  else if (meaning === QUOTE_MARK) copyQuote(rewriting)
}

/**
 * Where a cell could start: a sign gets an apostrophe in front, also behind blanks, further separators, and quotes. A quote counts as nothing,
 * since `;""=1` starts a cell that is =1 where `;` separates.
 */
function copyCellStart(rewriting: Rewriting, end: number): void {
  const { input, output } = rewriting
  let { read, written } = rewriting
  let meaning: number = BLANK
  while (read < end && (meaning === BLANK || meaning === SEPARATOR)) {
    const byte = input[read] as number
    meaning = MEANINGS[byte] as number
    if (meaning === LEAD || meaning === QUOTE_MARK) break
    read += 1
    if (meaning === SIGN) output[written++] = APOSTROPHE
    output[written++] = byte
  }
  rewriting.read = read
  rewriting.written = written
  if (meaning === QUOTE_MARK) copyQuote(rewriting)
  else if (meaning === LEAD) copyCharacter(rewriting)
  else if (meaning !== BLANK && meaning !== SEPARATOR) rewriting.step = copyText
}

/** A quote within a text is written twice; one by itself ends the text. */
function copyQuote(rewriting: Rewriting): void {
  const { input, output, read } = rewriting
  const next = input[read + 1]
  if (next === undefined) return
  output[rewriting.written++] = QUOTE
  if (next === QUOTE) output[rewriting.written++] = QUOTE
  else rewriting.step = copyOutside
  rewriting.read = read + (next === QUOTE ? 2 : 1)
}

/** A character that is not ASCII. In UTF-8, its first byte says how many there are. */
function copyCharacter(rewriting: Rewriting): void {
  const { input, output, read } = rewriting
  const lead = input[read] as number
  const next = read + (lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2)
  if (next > input.length) return
  const character = input.toString('utf8', read, next)
  const meaning = meaningOf(character)
  if (meaning === SIGN) output[rewriting.written++] = APOSTROPHE
  rewriting.written += output.write(character, rewriting.written)
  rewriting.read = next
  rewriting.step = meaning === BLANK ? copyCellStart : copyText
}
