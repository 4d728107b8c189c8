import { type CountryCode, getCountries, getCountryCallingCode, Metadata, parsePhoneNumberFromString } from 'libphonenumber-js/max'

// Normalises a phone number to `+` and digits; undefined if it can't be an international number. Callers write it with `+`, or as bare digits
// with the country code. Only its length is checked: which numbers are in use changes faster than any table, and a wrong refusal loses a
// message.
//
// The library takes 10 µs for a number. Almost all numbers are digits, with or without a `+`. The library checks the length of such a number by
// its country, and changes the number only if it begins with a national prefix. If a table can settle both, its look-up takes a
// thirtieth of the time. All other numbers, and texts with other characters, go to the library.

type CallingCode = {
  digits: number
  /** By the length of the national number: true if all countries of this code allow it, false if none does, absent if only some do. */
  byLength: Map<number, boolean>
  /** Matches a number that may begin with the national prefix of any of its countries. */
  prefix: RegExp | undefined
}

type Plan = { possibleLengths: () => number[]; nationalPrefixForParsing: () => string | undefined }

const BARE_DIGITS = /^\+?[1-9][0-9]{5,14}$/
// The limit of E.164. Some countries have longer numbers, which work only inside the country.
const MAX_DIGITS = 15

// Created on first use: most commands do not need it.
let callingCodes: Map<string, CallingCode> | undefined

function readCallingCodes(): Map<string, CallingCode> {
  const byCode = Map.groupBy(getCountries(), (country) => getCountryCallingCode(country) as string)
  return new Map([...byCode].map(([code, countries]) => [code, describe(code, countries)]))
}

function describe(code: string, countries: CountryCode[]): CallingCode {
  const metadata = new Metadata()
  const plans = countries.map((country) => {
    metadata.selectNumberingPlan(country)
    // The package's types lack the second method of Plan; a test compares the results for every country.
    return metadata.numberingPlan as unknown as Plan
  })
  const byLength = new Map<number, boolean>()
  for (let length = 0; length <= MAX_DIGITS; length += 1) {
    const results = new Set(plans.map((plan) => plan.possibleLengths().includes(length)))
    if (results.size === 1) byLength.set(length, results.has(true))
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

/** Normalises a phone number in a query, where "+" means a space: a number that was not encoded begins with one. */
export function phoneNumberInQuery(text: string): string | undefined {
  return normalisePhoneNumber(text.replace(/^ /, '+'))
}

/** Returns the same as `normalisePhoneNumber` for every text. A test compares the two. */
export function normaliseByLibrary(text: string): string | undefined {
  if (!/^\+?[0-9][0-9 ().-]{4,39}$/.test(text)) return undefined
  const number = parsePhoneNumberFromString(text.startsWith('+') ? text : `+${text}`)
  return number?.isPossible() && number.number.length <= '+'.length + MAX_DIGITS ? number.number : undefined
}
