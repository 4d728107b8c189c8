/** Days in UTC, both inclusive. An absent end is open. */
export type Range = { from?: string | undefined; to?: string | undefined }

const DAY_MS = 86_400_000
const LAST_DAY = '9999-12-31'

/** Returns the range as times for PostgreSQL: from the first, inclusive, to the second, exclusive. */
export function timesOf({ from, to }: Range): [since: string, before: string] {
  const before = to === undefined || to === LAST_DAY ? 'infinity' : new Date(Date.parse(to) + DAY_MS).toISOString()
  return [from === undefined ? '-infinity' : new Date(from).toISOString(), before]
}

/** Returns the range as days for PostgreSQL. */
export function daysOf({ from, to }: Range): [first: string, last: string] {
  return [from ?? '-infinity', to ?? 'infinity']
}

/** The bounds of the ids of rows: from the first, inclusive, to the second, exclusive. */
export type Bounds = { firstId: string; endId: string }

/**
 * Returns the bounds of the ids of rows created in the range, since an id begins with its time; no id is before 1970. Ids from before Herald had
 * reports have a truncated time, not a rounded one, so a row of the first millisecond of a day can have an id of the day before.
 */
export function boundsOf({ from, to }: Range): Bounds {
  const endId = to === undefined ? 'ffffffff-ffff-ffff-ffff-ffffffffffff' : lowestId(Date.parse(to) + DAY_MS)
  return { firstId: lowestId(from === undefined ? 0 : Date.parse(from) - 1), endId }
}

/** The same as uuid_v7_from() in the database. */
function lowestId(timeMs: number): string {
  const hex = Math.max(timeMs, 0).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`
}
