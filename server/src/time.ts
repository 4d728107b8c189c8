// Times that callers write: strictly ISO 8601, and only such as exist.

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/
const TIMESTAMP =
  /^(\d{4}-\d{2}-\d{2})T([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?(?:Z|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)$/

/** A day of the calendar, from the year 100 on; the 30th of February is none. */
export function isRealDate(text: string): boolean {
  return utcMidnight(text) !== undefined
}

// An offset can lead out of the years that a text, and PostgreSQL, can name.
const FIRST_MS = Date.UTC(100, 0, 1)
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** The time that a text with a zone names, to the millisecond; undefined where it names none, or leaves the zone open. */
export function parseTimestamp(text: string): Date | undefined {
  const [whole, date = '', hours, minutes, seconds = '0', fraction = '', sign, offsetHours = '0', offsetMinutes = '0'] =
    TIMESTAMP.exec(text) ?? []
  const midnight = utcMidnight(date)
  if (whole === undefined || midnight === undefined) return undefined
  const offset = (Number(offsetHours) * 60 + Number(offsetMinutes)) * (sign === '-' ? -1 : 1)
  const minutesOfDay = Number(hours) * 60 + Number(minutes) - offset
  const time = midnight + minutesOfDay * 60_000 + Number(seconds) * 1_000 + Number(fraction.slice(0, 3).padEnd(3, '0'))
  return time < FIRST_MS || time > LAST_MS ? undefined : new Date(time)
}

function utcMidnight(date: string): number | undefined {
  const [, year, month, day] = (DATE.exec(date) ?? []).map(Number)
  if (year === undefined || month === undefined || day === undefined) return undefined
  const time = new Date(Date.UTC(year, month - 1, day))
  // JavaScript takes the 30th of February for the 2nd of March, and the year 5 for 1905.
  return time.getUTCFullYear() === year && time.getUTCMonth() === month - 1 && time.getUTCDate() === day ? time.getTime() : undefined
}
