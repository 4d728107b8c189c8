import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { getCountries, getCountryCallingCode } from 'libphonenumber-js/max'
import { normaliseByLibrary, normalisePhoneNumber } from '../../src/phone-numbers.ts'

const seed = Date.now() % 2 ** 31
const CODES = [
  ...new Set(getCountries().map((country) => getCountryCallingCode(country) as string)),
  '800',
  '870',
  '881',
  '979',
  '999',
  '210',
]
const digits = (minLength: number, maxLength: number) =>
  fc.array(fc.integer({ min: 0, max: 9 }), { minLength, maxLength }).map((array) => array.join(''))

describe(`phone numbers (fast-check, seed ${seed})`, () => {
  test('are accepted, changed or rejected as by the library, in all countries', () => {
    const written = fc.tuple(fc.constantFrom('', '+'), fc.constantFrom(...CODES), digits(2, 15)).map((parts) => parts.join(''))
    fc.assert(
      fc.property(written, (text) => assert.equal(normalisePhoneNumber(text), normaliseByLibrary(text))),
      { numRuns: 15_000, seed },
    )
  })

  test('equal those of the library for each calling code, first digits and length', () => {
    for (const code of CODES) {
      for (let first = 0; first < 100; first += 7) {
        for (let length = 4; length <= 13; length += 1) {
          const text = `+${code}${String(first).padStart(2, '0')}${'2345678901234'.slice(0, length - 2)}`
          assert.equal(normalisePhoneNumber(text), normaliseByLibrary(text), text)
        }
      }
    }
  })

  test('equal those of the library in any other notation', () => {
    const other = fc.oneof(fc.string({ maxLength: 45 }), fc.stringMatching(/^\+?[0-9 ().-]{0,42}$/))
    fc.assert(
      fc.property(other, (text) => assert.equal(normalisePhoneNumber(text), normaliseByLibrary(text))),
      { numRuns: 3_000, seed },
    )
  })
})
