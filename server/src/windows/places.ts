import { type CountryCode, getCountries, getCountryCallingCode, parsePhoneNumberFromString } from 'libphonenumber-js/max'

// The place of a recipient, and its time zones. A place is a text: time zones, separated by commas, or `country:PL`, or `code:44` for all countries
// of a calling code, or `nowhere`.

const NOWHERE = 'nowhere'
// Three countries that the platform does not know.
const OTHER_ZONES: Partial<Record<CountryCode, string[]>> = {
  AC: ['Atlantic/St_Helena'],
  TA: ['Atlantic/St_Helena'],
  XK: ['Europe/Belgrade'],
}

// Created on first use.
let byCallingCode: Map<string, CountryCode[]> | undefined

/** The place of a number, `+` and digits. The library is asked only for calling codes of several countries: it takes 10 µs and more. */
export function placeOfNumber(phone: string): string {
  byCallingCode ??= Map.groupBy(getCountries(), (country) => getCountryCallingCode(country) as string)
  const code = [1, 2, 3].map((digits) => phone.slice(1, 1 + digits)).find((code) => byCallingCode?.has(code))
  if (code === undefined) return NOWHERE
  const [only, ...others] = byCallingCode.get(code) as CountryCode[]
  if (others.length === 0) return `country:${only}`
  return code === '1' ? placeByAreaCode(phone) : placeByLibrary(phone, code)
}

const byAreaCode = new Map<string, string>()

/** The area code and the next digit tell the country of a number in North America. The library takes 90 µs for each. */
function placeByAreaCode(phone: string): string {
  const area = phone.slice(2, 6)
  const known = byAreaCode.get(area) ?? placeByLibrary(phone, '1')
  byAreaCode.set(area, known)
  return known
}

function placeByLibrary(phone: string, code: string): string {
  const country = parsePhoneNumberFromString(phone)?.country
  return country === undefined ? `code:${code}` : `country:${country}`
}

const zonesByPlace = new Map<string, string[]>()

export function zonesOf(place: string): string[] {
  const known = zonesByPlace.get(place)
  if (known !== undefined) return known
  const zones = readZones(place)
  // Zones of members may be any list; countries and calling codes are few.
  if (place.includes(':')) zonesByPlace.set(place, zones)
  return zones
}

function readZones(place: string): string[] {
  // A number of no country, such as +800.
  if (place === NOWHERE) return ['UTC']
  const [kind, name = ''] = place.split(':')
  if (kind === 'country') return zonesOfCountry(name as CountryCode)
  if (kind === 'code') {
    const countries = getCountries().filter((country) => getCountryCallingCode(country) === name)
    return [...new Set(countries.flatMap(zonesOfCountry))]
  }
  return place.split(',')
}

const zonesOfCountry = (country: CountryCode): string[] => OTHER_ZONES[country] ?? new Intl.Locale(`und-${country}`).getTimeZones() ?? []
