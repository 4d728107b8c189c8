// Cc and Cf hold what a terminal obeys (ESC, CSI) and what reorders or hides the rest of a line (bidi overrides, soft hyphens, tags); Zl and
// Zp break it. ZWNJ and ZWJ stay: Persian, Indic scripts and emoji are spelled with them, and they move no other character.
const UNPRINTABLE = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/**
 * One line of text as it may be printed to a terminal: control and format characters are written out, a line break included (`\u000a`). The
 * notation is JSON's, so that the same function serves JSON, and doing it twice changes nothing.
 */
export function printable(line: string): string {
  return line.replace(UNPRINTABLE, (character) =>
    // By UTF-16 unit, as JSON needs it: the tag characters are beyond U+FFFF.
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )
}
