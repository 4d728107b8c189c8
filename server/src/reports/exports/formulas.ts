// Where a text could start a formula. A spreadsheet that separates cells by `;` does not see our quotes, which begin behind a comma: there,
// each separator and each line break within a text starts a cell.

/** What a byte of a text means where a spreadsheet looks for a formula. */
export const PLAIN = 0
export const SIGN = 1
export const BLANK = 2
/** Starts a cell, in a spreadsheet that separates by it. */
export const SEPARATOR = 3
export const QUOTE_MARK = 4
/** The first byte of a character that is not ASCII. */
export const LEAD = 5

const FIRST_LEAD = 0xc2
const LAST_CONTROL = 0x20
const DELETE = 0x7f

export const MEANINGS = meaningsOfBytes()

function meaningsOfBytes(): Uint8Array {
  const meanings = new Uint8Array(256)
  meanings.fill(BLANK, 0, LAST_CONTROL + 1)
  meanings[DELETE] = BLANK
  meanings.fill(LEAD, FIRST_LEAD)
  const set = (characters: string, meaning: number) => {
    for (const byte of Buffer.from(characters, 'latin1')) meanings[byte] = meaning
  }
  set(';,|\t\n\v\f\r\x1c\x1d\x1e', SEPARATOR)
  set('=+-@', SIGN)
  set('"', QUOTE_MARK)
  return meanings
}

// What a spreadsheet skips at the beginning of a cell, or a person does not see: controls, all blanks, characters without a width.
const OTHER_BLANKS =
  /[\u034f\ufe00-\ufe0f\u0080-\u00a0\u00ad\u061c\u115f\u1160\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufeff\uffa0\u{e0000}-\u{e0fff}]/u
// The small and full-width forms of = + - @.
const OTHER_SIGNS = /[\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20]/

/** What a character that is not ASCII means. */
export function meaningOf(character: string): typeof PLAIN | typeof SIGN | typeof BLANK {
  if (OTHER_SIGNS.test(character)) return SIGN
  return OTHER_BLANKS.test(character) ? BLANK : PLAIN
}
