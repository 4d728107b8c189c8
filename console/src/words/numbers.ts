export const number = new Intl.NumberFormat('en')
const percent = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 })
const plural = new Intl.PluralRules('en')

/** `count(2, 'message')` is `2 messages`. */
export const count = (value: number, one: string, other = `${one}s`) =>
  `${number.format(value)} ${plural.select(value) === 'one' ? one : other}`

const COUNTED_UP_TO = 10_000
const AT_LEAST = `${number.format(COUNTED_UP_TO)} or more`

/** For waiting and failed events, which the API counts only up to 10,000. */
export const upTo = (value: number) => (value >= COUNTED_UP_TO ? AT_LEAST : number.format(value))

export const countUpTo = (value: number, one: string, other = `${one}s`) =>
  value >= COUNTED_UP_TO ? `${AT_LEAST} ${other}` : count(value, one, other)

/** `share(0.125)` is `12.5%`. */
export const share = (value: number) => percent.format(value)

const list = new Intl.ListFormat('en')

/** `listed(['1', '2', '3'])` is `1, 2, and 3`. */
export const listed = (items: string[]) => list.format(items)

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const

/** A duration as people say it, with at most two units: `5.3 seconds`, `2 hours 5 minutes`. */
export function duration(ms: number): string {
  if (ms < 1_000) return count(Math.round(ms), 'millisecond')
  if (ms < 60_000) return count(Math.round(ms / 100) / 10, 'second')
  const first = UNITS.findIndex(([, size]) => ms >= size)
  const [[one, size], [smaller, part]] = [UNITS[first], UNITS[first + 1]] as [(typeof UNITS)[number], (typeof UNITS)[number]]
  // Rounded to the smaller unit first, so that there are never 60 seconds left.
  const parts = Math.round(ms / part)
  const rest = parts % (size / part)
  return [count(Math.floor(parts / (size / part)), one), ...(rest === 0 ? [] : [count(rest, smaller)])].join(' ')
}

/** The same, for a label: `64 ms`, `5.3 s`, `2 h 5 min`. */
export const shortDuration = (ms: number) =>
  duration(ms)
    .replace(/milliseconds?/, 'ms')
    .replace(/minutes?/, 'min')
    .replace(/(second|hour|day)s?/g, (unit) => unit.slice(0, 1))

const moment = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', hour: '2-digit', minute: '2-digit', second: '2-digit' })

const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' })
const exact = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' })

/** A day of the browser's zone, such as `18 Nov 2026`. */
export const dayOf = (at: string | number | Date) => day.format(new Date(at))

/** A time with its date and zone, for the text on hover: `18 Nov 2026, 09:30:00 CET`. */
export const exactTimeOf = (at: string | number | Date) => exact.format(new Date(at))

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 })

/** A time of a day, such as `09:30:00.250`. */
export const clockOf = (at: string | number) => clock.format(new Date(at))

/** A time of the browser's zone, such as `18 November at 09:30:00`. */
export const momentOf = (at: string | number) => moment.format(new Date(at))

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/

/** Quotes the text of a person in a sentence. Arabic and Hebrew are isolated, so that the words beside them keep their direction. */
export const isolated = (text: string) => (RIGHT_TO_LEFT.test(text) ? `\u2068${text}\u2069` : text)
