const TIME = /^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d)(\d\d)([+\-R])$/
const QUARTER_HOUR_MS = 900_000
const MAX_QUARTERS = 48

/** Parses a time in SMPP's sixteen characters, YYMMDDhhmmsstnnp. Returns milliseconds since 1970; undefined if the time is invalid. */
export function timeOf(text: string): number | undefined {
  const match = TIME.exec(text)
  if (match === null) return undefined
  const [years = 0, months = 0, days = 0, hours = 0, minutes = 0, seconds = 0, tenths = 0, quarters = 0] = match.slice(1, 9).map(Number)
  if (match[9] === 'R') return tenths + quarters === 0 ? later(years, months, days, hours * 3600 + minutes * 60 + seconds) : undefined
  const at = new Date(Date.UTC(2000 + years, months - 1, days, hours, minutes, seconds, tenths * 100))
  // Date reads a day that does not exist, such as 30 February, as another one.
  const exists = at.toISOString().replace(/\D/g, '').slice(2, 14) === text.slice(0, 12)
  if (!exists || quarters > MAX_QUARTERS) return undefined
  return at.getTime() - (match[9] === '+' ? quarters : -quarters) * QUARTER_HOUR_MS
}

function later(years: number, months: number, days: number, seconds: number): number {
  const at = new Date()
  at.setUTCFullYear(at.getUTCFullYear() + years, at.getUTCMonth() + months, at.getUTCDate() + days)
  return at.getTime() + seconds * 1000
}
