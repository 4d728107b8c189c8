import { parsePhoneNumberFromString } from 'libphonenumber-js/max'

// Of E.164. The tables of some countries have longer ones, which are for inside the country.
const MAX_DIGITS = 15

/**
 * A phone number as `+` and digits; undefined where it can't be an international one. Written with `+`, or as bare digits with the country
 * code. Judged by length only: which numbers are in use changes faster than any table, and a wrong refusal loses a message.
 */
export function normalisePhoneNumber(text: string): string | undefined {
  if (!/^\+?[0-9][0-9 ().-]{4,39}$/.test(text)) return undefined
  const number = parsePhoneNumberFromString(text.startsWith('+') ? text : `+${text}`)
  return number?.isPossible() && number.number.length <= '+'.length + MAX_DIGITS ? number.number : undefined
}
