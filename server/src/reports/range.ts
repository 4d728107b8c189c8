/** Days of UTC, both inclusive; an end that is left out is open. */
export type Range = { from?: string | undefined; to?: string | undefined }

const DAY_MS = 86_400_000
const LAST_DAY = '9999-12-31'

/** As times, for PostgreSQL: from the first on, and before the second. */
export function timesOf({ from, to }: Range): [since: string, before: string] {
  return [from === undefined ? '-infinity' : midnight(from).toISOString(), to === undefined || to === LAST_DAY ? 'infinity' : dayAfter(to)]
}

/** As days, for PostgreSQL. */
export function daysOf({ from, to }: Range): [first: string, last: string] {
  return [from ?? '-infinity', to ?? 'infinity']
}

/**
 * The ids of what was made in the range lie between these, since an id begins with its time; none is from before 1970. Those from before there
 * were reports had their time cut, not rounded: what is of the first millisecond of a day can have an id of the one before.
 */
export function idsOf({ from, to }: Range): [first: string, end: string] {
  const end = to === undefined ? 'ffffffff-ffff-ffff-ffff-ffffffffffff' : leastId(midnight(to).getTime() + DAY_MS)
  return [leastId(from === undefined ? 0 : midnight(from).getTime() - 1), end]
}

const midnight = (day: string) => new Date(`${day}T00:00:00.000Z`)
const dayAfter = (day: string) => new Date(midnight(day).getTime() + DAY_MS).toISOString()

/** As the database's own uuid_v7_from() has it. */
function leastId(timeMs: number): string {
  const hex = Math.max(timeMs, 0).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`
}
