import { parsePhoneNumberFromString } from 'libphonenumber-js/max'

/**
 * A phone number as `+` and digits; undefined where it can't be an international one. Written with `+`, or as bare digits with the country
 * code. Judged by length only: which numbers are in use changes faster than any table, and a wrong refusal loses a message.
 */
export function normalisePhoneNumber(text: string): string | undefined {
  if (!/^\+?[0-9][0-9 ().-]{4,39}$/.test(text)) return undefined
  const number = parsePhoneNumberFromString(text.startsWith('+') ? text : `+${text}`)
  return number?.isPossible() ? number.number : undefined
}
