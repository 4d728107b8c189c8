import { type CountryCode, getCountries, getCountryCallingCode, Metadata, parsePhoneNumberFromString } from 'libphonenumber-js/max'

// A phone number as `+` and digits; undefined where it can't be an international one. Written with `+`, or as bare digits with the country
// code. Judged by length only: which numbers are in use changes faster than any table, and a wrong refusal loses a message.
//
// The library takes 10 µs for a number. Almost all are digits, with or without a `+`: such a one is judged by the lengths of its country, and
// changed only where it begins with what is dialled before a number inside that country. So a number of which neither is in doubt needs no
// more than a look at a table, which takes a thirtieth; any other one, and any with other characters, is the library's.

type CallingCode = {
  digits: number
  /** By the length of the national number: whether it is possible in all countries of this code, or in none. Neither: it depends. */
  byLength: Map<number, boolean>
  /** What might be a national prefix, in any of its countries. */
  prefix: RegExp | undefined
}

type Plan = { possibleLengths: () => number[]; nationalPrefixForParsing: () => string | undefined }

const BARE_DIGITS = /^\+?[1-9][0-9]{5,14}$/
// Of E.164. The tables of some countries have longer ones, which are for inside the country.
const MAX_DIGITS = 15

// Made when it is first needed: most commands need none of it.
let callingCodes: Map<string, CallingCode> | undefined

function readCallingCodes(): Map<string, CallingCode> {
  const byCode = Map.groupBy(getCountries(), (country) => getCountryCallingCode(country) as string)
  return new Map([...byCode].map(([code, countries]) => [code, describe(code, countries)]))
}

function describe(code: string, countries: CountryCode[]): CallingCode {
  const metadata = new Metadata()
  const plans = countries.map((country) => {
    metadata.selectNumberingPlan(country)
    // The package's types lack the second of the two methods; a test compares the outcome for every country.
    return metadata.numberingPlan as unknown as Plan
  })
  const byLength = new Map<number, boolean>()
  for (let length = 0; length <= MAX_DIGITS; length += 1) {
    const answers = new Set(plans.map((plan) => plan.possibleLengths().includes(length)))
    if (answers.size === 1) byLength.set(length, answers.has(true))
  }
  const prefixes = new Set(plans.map((plan) => plan.nationalPrefixForParsing()).filter(Boolean))
  return { digits: code.length, byLength, prefix: prefixes.size > 0 ? new RegExp(`^(?:${[...prefixes].join('|')})`) : undefined }
}

export function normalisePhoneNumber(text: string): string | undefined {
  if (!BARE_DIGITS.test(text)) return normaliseByLibrary(text)
  const number = text.startsWith('+') ? text : `+${text}`
  callingCodes ??= readCallingCodes()
  const code = callingCodes.get(number.slice(1, 2)) ?? callingCodes.get(number.slice(1, 3)) ?? callingCodes.get(number.slice(1, 4))
  if (code === undefined) return normaliseByLibrary(text)
  const national = number.slice(1 + code.digits)
  const isPossible = code.byLength.get(national.length)
  if (isPossible === undefined || code.prefix?.test(national)) return normaliseByLibrary(text)
  return isPossible ? number : undefined
}

/** The same for every text, which a test holds against it. */
export function normaliseByLibrary(text: string): string | undefined {
  if (!/^\+?[0-9][0-9 ().-]{4,39}$/.test(text)) return undefined
  const number = parsePhoneNumberFromString(text.startsWith('+') ? text : `+${text}`)
  return number?.isPossible() && number.number.length <= '+'.length + MAX_DIGITS ? number.number : undefined
}
