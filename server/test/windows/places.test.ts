import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { getCountries, parsePhoneNumberFromString } from 'libphonenumber-js/max'
import { opensAt } from '../../src/windows/gate.ts'
import { placeOfNumber, zonesOf } from '../../src/windows/places.ts'
import { hoursOf, textFor, textOf, windowOf } from '../../src/windows/window.ts'

describe('the place of a number', () => {
  const places: [phone: string, place: string][] = [
    ['+48500100200', 'country:PL'],
    ['+14155552671', 'country:US'],
    ['+14165552671', 'country:CA'],
    ['+12684641234', 'country:AG'],
    ['+16715551234', 'country:GU'],
    ['+79161234567', 'country:RU'],
    ['+77011234567', 'country:KZ'],
    ['+61412345678', 'country:AU'],
    ['+5511987654321', 'country:BR'],
    ['+447700900123', 'code:44'],
    ['+447624123456', 'country:IM'],
    ['+38344123456', 'country:XK'],
    ['+80012345678', 'nowhere'],
    ['+88123456789', 'nowhere'],
    ['+9991234567', 'nowhere'],
  ]
  for (const [phone, place] of places) test(`of ${phone} is ${place}`, () => assert.equal(placeOfNumber(phone), place))

  test('is that of the library for every area code of +1', () => {
    // 523 and 524 are numbers for personal use, of which some belong to no country.
    const areas = Array.from({ length: 800 }, (_, index) => index + 200).filter((area) => area !== 523 && area !== 524)
    const phones = areas.flatMap((area) => [2, 5, 8].flatMap((next) => ['012345', '734521'].map((end) => `+1${area}${next}${end}`)))
    const byLibrary = (phone: string) => parsePhoneNumberFromString(phone)?.country
    const differing = phones.filter((phone) => placeOfNumber(phone) !== (byLibrary(phone) ? `country:${byLibrary(phone)}` : 'code:1'))
    assert.deepEqual(differing, [])
  })
})

describe('the zones of a place', () => {
  test('exist for every country', () => {
    for (const country of getCountries()) {
      const zones = zonesOf(`country:${country}`)
      assert.ok(zones.length > 0, country)
      for (const zone of zones) assert.ok(Temporal.Now.zonedDateTimeISO(zone).hour >= 0, zone)
    }
  })

  test('are those of all countries of a calling code', () => {
    assert.deepEqual(new Set(zonesOf('code:44')), new Set(['Europe/London', 'Europe/Guernsey', 'Europe/Isle_of_Man', 'Europe/Jersey']))
    const ofCode = new Set(zonesOf('code:1'))
    for (const zone of ['America/New_York', 'Pacific/Honolulu', 'America/Toronto', 'America/Jamaica', 'Pacific/Guam'])
      assert.ok(ofCode.has(zone), zone)
  })

  test('are UTC for a number of no country, and those of the member if there are several', () => {
    assert.deepEqual(zonesOf('nowhere'), ['UTC'])
    assert.deepEqual(zonesOf('Europe/Warsaw,America/New_York'), ['Europe/Warsaw', 'America/New_York'])
  })
})

describe('the text of a window', () => {
  test('is read back with every default', () => {
    const text = textOf({ from: '22:00', to: '06:30', days: ['FRI', 'MON'], timeZone: 'europe/warsaw' })
    assert.equal(text, '22:00-06:30 15 Europe/Warsaw')
    assert.deepEqual(windowOf(text), { from: '22:00', to: '06:30', days: ['MON', 'FRI'], timeZone: 'Europe/Warsaw' })
    assert.equal(textOf({ from: '09:00', to: '24:00' }), '09:00-24:00 1234567 recipient')
    assert.deepEqual(hoursOf(text), { from: 1320, to: 390, days: [1, 5], place: 'Europe/Warsaw' })
  })

  test('has the place of the recipient, which callers do not see', () => {
    const text = textFor(textOf({ from: '09:00', to: '20:00', days: ['MON'] }), 'country:PL')
    assert.equal(hoursOf(text).place, 'country:PL')
    assert.deepEqual(windowOf(text), { from: '09:00', to: '20:00', days: ['MON'], timeZone: 'recipient' })
  })

  test('opens at the same times however often and in which order they are asked for', () => {
    const text = textFor(textOf({ from: '09:00', to: '20:00' }), 'country:PL')
    const times = [
      '2026-11-20T12:00Z',
      '2026-11-20T22:00Z',
      '2026-12-24T22:00Z',
      '2026-11-19T07:59:59Z',
      '2027-06-01T03:00Z',
      '2026-11-20T19:00Z',
    ]
    const opens = [
      '2026-11-20T12:00Z',
      '2026-11-21T08:00Z',
      '2026-12-25T08:00Z',
      '2026-11-19T08:00Z',
      '2027-06-01T07:00Z',
      '2026-11-21T08:00Z',
    ]
    for (let round = 0; round < 2; round += 1) {
      times.forEach((time, index) => {
        assert.equal(opensAt(text, Date.parse(time)), Date.parse(opens[index] as string), time)
      })
    }
  })

  test('is to be looked at again after a week if it never opens', () => {
    const at = Date.parse('2026-11-20T12:00Z')
    assert.equal(opensAt('09:00-10:00 1234567 recipient Europe/Warsaw,America/New_York', at), at + 7 * 86_400_000)
  })
})
