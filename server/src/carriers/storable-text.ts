/** What people write may hold anything; PostgreSQL stores no NUL, and JSON no half of a surrogate pair. Both become U+FFFD. */
export function storableText(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed()
}
