/** A whole number that a person typed, perhaps with commas or spaces between its digits. Undefined: it is none. */
export function asNumber(text: string): number | undefined {
  const digits = text.replace(/[\s,\u00a0\u202f]/g, '')
  return /^\d{1,15}$/.test(digits) ? Number(digits) : undefined
}
