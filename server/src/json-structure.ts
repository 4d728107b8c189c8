// Checks the structure of a JSON text before it is parsed. JSON.parse of Node 26.10 corrupts memory on 100 KB of nested brackets followed by a
// text with thousands of names, which ends the process, so neither may reach it. Parsing also costs 10 to 60 ms for 256 KiB of brackets or
// names. This scan costs a fraction of a millisecond, and ends at the first limit that the text exceeds.

/** The deepest valid body has nine levels. */
const MAX_DEPTH = 32
/** The largest valid body, a carousel of ten cards with all their buttons, has 500 values. */
const MAX_VALUES = 1_000
/** The longest name in the API has 22 characters. Error paths repeat names, so names must not be long. */
const MAX_NAME_LENGTH = 100
// Each value has at most a name, two brackets, a colon and a comma. A body with more marks is not JSON, or has too many values.
const MARKS_PER_VALUE = 6
// An escaped character takes six bytes, such as \u0041.
const MAX_NAME_BYTES = 6 * MAX_NAME_LENGTH

const QUOTE = 0x22
const BACKSLASH = 0x5c

// KINDS has the kind of each byte: four comparisons for each byte took three times as long as a look-up.
const BLANK = 0
const OTHER = 1
const STRING = 2
const COMMA = 3
const COLON = 4
const OPEN = 5
const CLOSE = 6
const KINDS = new Uint8Array(256).fill(OTHER).fill(BLANK, 0, 0x21)
for (const [text, kind] of [
  ['"', STRING],
  [',', COMMA],
  [':', COLON],
  ['[{', OPEN],
  [']}', CLOSE],
] as const) {
  for (const byte of Buffer.from(text)) KINDS[byte] = kind
}

const tooMany = (maxValues: number) => `The body holds more than ${maxValues} values.`
const TOO_DEEP = `The body is nested deeper than ${MAX_DEPTH} levels.`
const TOO_LONG = `The body has a property whose name is over ${MAX_NAME_LENGTH} characters long.`

type Scan = { body: Buffer; maxValues: number; at: number; values: number; depth: number; marks: number; nameStart: number }

/**
 * Returns a sentence that names the limit which the body exceeds, or undefined. The body need not be valid JSON: the parser checks that, and
 * these limits bound its work.
 */
export function structureProblem(body: Buffer, maxValues = MAX_VALUES): string | undefined {
  const scan: Scan = { body, maxValues, at: 0, values: 1, depth: 0, marks: 0, nameStart: 0 }
  let before = BLANK
  for (; scan.at < body.length; scan.at += 1) {
    scan.at = nextMark(body, scan.at, before)
    const kind = KINDS[body[scan.at] ?? 0] as number
    // An empty container holds no value; any other one holds one more than it has commas.
    if (before === OPEN && kind !== CLOSE) scan.values += 1
    before = kind
    const problem = kind <= OTHER ? undefined : visit(scan, kind)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Skips blanks, and the rest of a number or literal that has begun. */
function nextMark(body: Buffer, from: number, before: number): number {
  const skipped = before === OTHER ? OTHER : BLANK
  let at = from
  while (at < body.length && (KINDS[body[at] as number] as number) <= skipped) at += 1
  return at
}

/** Counts one mark of JSON's syntax, and moves to the end of a string. */
function visit(scan: Scan, kind: number): string | undefined {
  scan.marks += 1
  if (kind === STRING) {
    scan.nameStart = scan.at
    scan.at = endOfString(scan.body, scan.at)
  } else if (kind === COMMA) scan.values += 1
  else if (kind === OPEN) scan.depth += 1
  else if (kind === CLOSE) scan.depth -= 1
  else if (isLongName(scan.body, scan.nameStart, scan.at)) return TOO_LONG
  else scan.nameStart = scan.at
  if (scan.depth > MAX_DEPTH) return TOO_DEEP
  const { values, marks, maxValues } = scan
  return values > maxValues || marks > MARKS_PER_VALUE * maxValues ? tooMany(maxValues) : undefined
}

/** The index of the closing quote, or the end of a body that has none. */
function endOfString(body: Buffer, start: number): number {
  let at = start + 1
  while (at < body.length && body[at] !== QUOTE) at += body[at] === BACKSLASH ? 2 : 1
  return at
}

/** `start` is the index of the last string, `colon` that of the colon after it. Almost every name is short enough in bytes. */
function isLongName(body: Buffer, start: number, colon: number): boolean {
  if (colon - start <= MAX_NAME_LENGTH) return false
  const end = endOfString(body, start) + 1
  const bytes = end - start - 2
  if (bytes <= MAX_NAME_LENGTH) return false
  if (bytes > MAX_NAME_BYTES) return true
  try {
    return (JSON.parse(body.toString('utf8', start, end)) as string).length > MAX_NAME_LENGTH
  } catch {
    // Not a valid string. The scan ends here: thousands of such names would cost an exception each.
    return true
  }
}
