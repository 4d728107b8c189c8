// Cc and Cf are the characters that control a terminal (ESC, CSI), or that reorder or hide the rest of a line (bidi overrides, soft hyphens,
// tags); Zl and Zp break it. ZWNJ and ZWJ stay: Persian, Indic scripts and emoji need them, and they move no other character.
const UNPRINTABLE = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/**
 * Escapes a line of text for a terminal: control and format characters, line breaks included, become escapes such as `\u000a`. The notation is
 * that of JSON, so that the same function works for JSON, and escaping twice changes nothing.
 */
export function printable(line: string): string {
  return line.replace(UNPRINTABLE, (character) =>
    // By UTF-16 unit, as JSON requires: the tag characters are beyond U+FFFF.
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )
}
