/** Replaces NUL, which PostgreSQL can't store, and lone surrogates, which JSON can't hold, with U+FFFD. A recipient's text may have both. */
export function storableText(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed()
}
