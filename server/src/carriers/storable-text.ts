/** Replaces NUL, which PostgreSQL cannot store, and lone surrogates, which JSON cannot, with U+FFFD. A recipient's text may hold both. */
export function storableText(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed()
}
