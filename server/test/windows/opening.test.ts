import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Hours, nextOpening, openSpans } from '../../src/windows/opening.ts'
import { zonesOf } from '../../src/windows/places.ts'

const EVERY_DAY = [1, 2, 3, 4, 5, 6, 7]
const minutes = (time: string) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3))
const hours = (text: string, days: readonly number[] = EVERY_DAY): Hours => {
  const [from = '', to = ''] = text.split('-')
  return { from: minutes(from), to: minutes(to), days }
}
const opening = (window: Hours, place: string, at: string) => {
  const opens = nextOpening(window, zonesOf(place), Date.parse(at))
  return opens === undefined ? undefined : new Date(opens).toISOString().replace(':00.000Z', 'Z')
}

// On Thursday, 19 November 2026, at 22:00 UTC, unless a case says otherwise.
const AT = '2026-11-19T22:00:00Z'
const DAY = '09:00-20:00'

describe('the next opening', () => {
  const zones: [zone: string, opens: string][] = [
    ['UTC', '2026-11-20T09:00Z'],
    ['Europe/London', '2026-11-20T09:00Z'],
    ['Europe/Lisbon', '2026-11-20T09:00Z'],
    ['Europe/Warsaw', '2026-11-20T08:00Z'],
    ['Europe/Kiev', '2026-11-20T07:00Z'],
    ['Europe/Istanbul', '2026-11-20T06:00Z'],
    ['Africa/Cairo', '2026-11-20T07:00Z'],
    ['Africa/Johannesburg', '2026-11-20T07:00Z'],
    ['Asia/Tehran', '2026-11-20T05:30Z'],
    ['Asia/Dubai', '2026-11-20T05:00Z'],
    ['Asia/Kabul', '2026-11-20T04:30Z'],
    ['Asia/Karachi', '2026-11-20T04:00Z'],
    ['Asia/Kolkata', '2026-11-20T03:30Z'],
    ['Asia/Kathmandu', '2026-11-20T03:15Z'],
    ['Asia/Shanghai', '2026-11-20T01:00Z'],
    ['Asia/Tokyo', '2026-11-20T00:00Z'],
    ['Australia/Eucla', '2026-11-20T00:15Z'],
    ['Australia/Sydney', '2026-11-19T22:00Z'],
    ['Pacific/Auckland', '2026-11-19T22:00Z'],
    ['Pacific/Chatham', '2026-11-19T22:00Z'],
    ['Pacific/Kiritimati', '2026-11-19T22:00Z'],
    ['Pacific/Honolulu', '2026-11-19T22:00Z'],
    ['America/Los_Angeles', '2026-11-19T22:00Z'],
    ['America/New_York', '2026-11-19T22:00Z'],
    ['America/Sao_Paulo', '2026-11-19T22:00Z'],
    ['America/St_Johns', '2026-11-19T22:00Z'],
    ['Pacific/Pago_Pago', '2026-11-19T22:00Z'],
  ]
  for (const [zone, opens] of zones) test(`in ${zone}`, () => assert.equal(opening(hours(DAY), zone, AT), opens))

  // The westernmost zone opens last, and the easternmost one closes first.
  const countries: [country: string, window: string, opens: string | undefined][] = [
    ['US', DAY, '2026-11-19T22:00Z'],
    ['US', '09:00-17:00', '2026-11-20T19:00Z'],
    ['RU', DAY, '2026-11-20T07:00Z'],
    ['RU', '09:00-19:00', undefined],
    ['AU', DAY, '2026-11-20T01:00Z'],
    ['BR', DAY, '2026-11-20T14:00Z'],
    ['MX', DAY, '2026-11-19T22:00Z'],
    ['ID', DAY, '2026-11-20T02:00Z'],
    ['CA', DAY, '2026-11-19T22:00Z'],
    ['KZ', DAY, '2026-11-20T04:00Z'],
    ['ES', DAY, '2026-11-20T09:00Z'],
    ['PT', DAY, '2026-11-20T10:00Z'],
    ['CN', DAY, '2026-11-20T03:00Z'],
    ['NZ', DAY, '2026-11-19T22:00Z'],
    ['PL', DAY, '2026-11-20T08:00Z'],
    ['XK', DAY, '2026-11-20T08:00Z'],
  ]
  for (const [country, window, opens] of countries) {
    test(`in all zones of ${country}, ${window}`, () => assert.equal(opening(hours(window), `country:${country}`, AT), opens))
  }

  const cases: [what: string, window: Hours, zone: string, at: string, opens: string][] = [
    ['at once in the first minute', hours(DAY), 'Europe/Warsaw', '2026-11-20T08:00:00Z', '2026-11-20T08:00Z'],
    ['the next day at the closing time', hours(DAY), 'Europe/Warsaw', '2026-11-20T19:00:00Z', '2026-11-21T08:00Z'],
    ['after a weekend', hours(DAY, [1, 2, 3, 4, 5]), 'Europe/Warsaw', '2026-11-20T19:00:00Z', '2026-11-23T08:00Z'],
    ['a week later', hours(DAY, [4]), 'Europe/Warsaw', '2026-11-19T19:00:00Z', '2026-11-26T08:00Z'],
    ['on the local day', hours(DAY, [5]), 'Pacific/Auckland', '2026-11-19T19:00:00Z', '2026-11-19T20:00Z'],
    ['before midnight', hours('22:00-06:00', [5]), 'Europe/Warsaw', '2026-11-20T12:00:00Z', '2026-11-20T21:00Z'],
    ['at once after midnight, by the day before', hours('22:00-06:00', [5]), 'Europe/Warsaw', '2026-11-21T03:00:00Z', '2026-11-21T03:00Z'],
    ['not after midnight of another day', hours('22:00-06:00', [5]), 'Europe/Warsaw', '2026-11-20T03:00:00Z', '2026-11-20T21:00Z'],
    ['until midnight', hours('18:00-24:00'), 'Europe/Warsaw', '2026-11-20T22:59:59Z', '2026-11-20T22:59:59.000Z'],
    ['not at midnight', hours('18:00-24:00'), 'Europe/Warsaw', '2026-11-20T23:00:00Z', '2026-11-21T17:00Z'],
    ['on whole days', hours('00:00-24:00', [6]), 'Europe/Warsaw', '2026-11-20T12:00:00Z', '2026-11-20T23:00Z'],
    // In Warsaw, 02:00 becomes 03:00 on 28 March 2027, and 03:00 becomes 02:00 on 31 October 2027.
    ['by summer time', hours(DAY), 'Europe/Warsaw', '2027-03-27T20:00:00Z', '2027-03-28T07:00Z'],
    ['by winter time', hours(DAY), 'Europe/Warsaw', '2027-10-30T20:00:00Z', '2027-10-31T08:00Z'],
    ['when the clock skips the opening time', hours('02:30-05:00'), 'Europe/Warsaw', '2027-03-27T12:00:00Z', '2027-03-28T01:00Z'],
    ['a day later when the clock skips the window', hours('02:10-02:50'), 'Europe/Warsaw', '2027-03-28T00:00:00Z', '2027-03-29T00:10Z'],
    ['at the first of two opening times', hours('02:30-05:00'), 'Europe/Warsaw', '2027-10-30T12:00:00Z', '2027-10-31T00:30Z'],
    ['at the second of two opening times', hours('02:10-02:50'), 'Europe/Warsaw', '2027-10-31T00:50:00Z', '2027-10-31T01:10Z'],
    ['again when the clock repeats the closing time', hours('22:00-02:30'), 'Europe/Warsaw', '2027-10-31T00:40:00Z', '2027-10-31T01:00Z'],
    // In Cairo, the 30th of April 2027 has no midnight. In Santiago, the 3rd of April 2027 has its last hour twice.
    ['when a day has no midnight', hours('00:00-08:00'), 'Africa/Cairo', '2027-04-29T12:00:00Z', '2027-04-29T22:00Z'],
    ['when the last hour of a day is repeated', hours('23:30-24:00'), 'America/Santiago', '2027-04-04T03:00:00Z', '2027-04-04T03:30Z'],
    ['by a change of half an hour', hours(DAY), 'Australia/Lord_Howe', '2027-04-03T12:00:00Z', '2027-04-03T22:30Z'],
  ]
  for (const [what, window, zone, at, opens] of cases) {
    test(`is ${what}: ${zone}`, () => assert.equal(opening(window, zone, at), opens))
  }

  test('does not exist if the zones are never open together', () => {
    assert.equal(opening(hours('09:00-10:00'), 'Europe/Warsaw,America/New_York', AT), undefined)
  })
})

/** Whether the window is open by the clocks on the walls, which Intl reads. */
function isOpenByWall({ from, to, days }: Hours, zone: string, at: number): boolean {
  const parts = new Intl.DateTimeFormat('en-US', { timeZone: zone, weekday: 'short', hour: 'numeric', minute: 'numeric', hourCycle: 'h23' })
  const read = Object.fromEntries(parts.formatToParts(at).map(({ type, value }) => [type, value]))
  const now = Number(read.hour) * 60 + Number(read.minute)
  const day = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'].indexOf(read.weekday as string) + 1
  const dayBefore = day === 1 ? 7 : day - 1
  if (from < to) return now >= from && now < to && days.includes(day)
  return (now >= from && days.includes(day)) || (now < to && days.includes(dayBefore))
}

describe('the open times equal those of the clocks on the walls, minute by minute,', () => {
  const CHANGES = ['2027-03-13', '2027-03-27', '2027-04-03', '2027-10-02', '2027-10-30', '2027-11-06']
  const WINDOWS = [
    hours(DAY, [1, 3, 6, 7]),
    hours('22:00-02:30', [6]),
    hours('02:15-02:45'),
    hours('00:30-00:15', [7]),
    hours('00:00-24:00', [7]),
  ]
  const ZONES = ['Europe/Warsaw', 'America/New_York', 'Australia/Lord_Howe', 'America/St_Johns', 'Africa/Casablanca', 'Pacific/Chatham']
  for (const zone of ZONES) {
    test(`in ${zone}`, () => {
      for (const change of CHANGES) {
        const range = { start: Date.parse(`${change}T06:00:00Z`), end: Date.parse(`${change}T06:00:00Z`) + 2 * 86_400_000 }
        for (const window of WINDOWS) {
          const spans = openSpans(window, [zone], range)
          for (let at = range.start; at < range.end; at += 5 * 60_000) {
            const isOpen = spans.some(({ start, end }) => at >= start && at < end)
            assert.equal(isOpen, isOpenByWall(window, zone, at), `${JSON.stringify(window)} at ${new Date(at).toISOString()}`)
          }
        }
      }
    })
  }
})
