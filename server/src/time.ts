// Parses the times that callers send: strictly ISO 8601, and only times that exist.

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/
const TIMESTAMP =
  /^(\d{4})-(\d{2})-(\d{2})T([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?(?:Z|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)$/

/** Whether a text is a date that exists, from the year 100 on. The 30th of February does not exist. */
export function isRealDate(text: string): boolean {
  const found = DATE.exec(text)
  return found !== null && utcMidnight(Number(found[1]), Number(found[2]), Number(found[3])) !== undefined
}

// An offset can move a time out of the years that this format and PostgreSQL can represent.
const FIRST_MS = Date.UTC(100, 0, 1)
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** Parses a time with a zone, to the millisecond. Returns undefined if the text is not a time, or has no zone. */
export function parseTimestamp(text: string): Date | undefined {
  // The groups are read by index: destructuring them took as long as matching them.
  const found = TIMESTAMP.exec(text)
  if (found === null) return undefined
  const midnight = utcMidnight(Number(found[1]), Number(found[2]), Number(found[3]))
  if (midnight === undefined) return undefined
  const offset = (Number(found[9] ?? 0) * 60 + Number(found[10] ?? 0)) * (found[8] === '-' ? -1 : 1)
  const minutesOfDay = Number(found[4]) * 60 + Number(found[5]) - offset
  const ms = Number((found[7] ?? '').slice(0, 3).padEnd(3, '0'))
  const time = midnight + minutesOfDay * 60_000 + Number(found[6] ?? 0) * 1_000 + ms
  return time < FIRST_MS || time > LAST_MS ? undefined : new Date(time)
}

/** Ids of messages and of log pages begin with the time since 1970, so an earlier time counts as 1970. */
export function timeInIds(time: Date): Date {
  return new Date(Math.max(time.getTime(), 0))
}

const DAY_MS = 86_400_000

/** Reads the start of a range: the first moment of a day in UTC, or a time. `text` must be valid. */
export function startOf(text: string): Date | undefined {
  return isRealDate(text) ? new Date(`${text}T00:00:00Z`) : parseTimestamp(text)
}

/** Reads the end of a range: the first moment after a day in UTC, or a time. `text` must be valid. */
export function endOf(text: string): Date | undefined {
  return isRealDate(text) ? new Date(Date.parse(text) + DAY_MS) : parseTimestamp(text)
}

const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** Returns undefined for a date that does not exist: Date.UTC reads the 30th of February as the 2nd of March, and the year 5 as 1905. */
function utcMidnight(year: number, month: number, day: number): number | undefined {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  const days = month === 2 && isLeap ? 29 : (DAYS[month - 1] ?? 0)
  return year < 100 || day < 1 || day > days ? undefined : Date.UTC(year, month - 1, day)
}
