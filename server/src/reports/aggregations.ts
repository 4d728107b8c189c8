import type { Executor } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { NO_CAMPAIGN } from '../ids.ts'
import type { Counts } from './counters.ts'
import { type Range, timesOf } from './range.ts'
import { COUNTERS, SUMS } from './summary.ts'

export const INTERVALS = ['hour', 'day'] as const
type Interval = (typeof INTERVALS)[number]

/** The counters of each period. */
export const AGGREGATED = ['sent', 'delivered', 'read', 'failed', 'expired', 'clicked', 'replied'] as const
type Period = { period: string } & Pick<Counts, (typeof AGGREGATED)[number]>
type Aggregations = { interval: Interval; items: Period[] }

const LENGTH_MS = { hour: 3_600_000, day: 86_400_000 }
// 27 years of days, or over a year of hours.
export const MAX_PERIODS = 10_000

/** Reads the counts of each period, including periods without any. An open end of the range is the first or last period that has counts. */
export async function readAggregations(
  db: Executor,
  accountId: number,
  campaignId: string | undefined,
  range: Range,
  interval: Interval,
): Promise<Aggregations> {
  const { rows } = await db.query<Counts & { start: Date }>({
    name: `read-aggregations ${interval}`,
    text: `select date_trunc('${interval}', hour, 'UTC') as start, ${SUMS} from (${COUNTERS}) as counted group by 1 order by 1`,
    values: [accountId, campaignId ?? NO_CAMPAIGN, ...timesOf(range)],
  })
  const found = new Map(rows.map(({ start, ...counts }) => [start.getTime(), counts]))
  const length = LENGTH_MS[interval]
  const first = range.from === undefined ? rows[0]?.start.getTime() : Date.parse(range.from)
  const last = range.to === undefined ? rows.at(-1)?.start.getTime() : lastStart(range.to, interval)
  if (first === undefined || last === undefined) return { interval, items: [] }
  const periods = countPeriods(first, last, range, interval)
  return { interval, items: Array.from({ length: periods }, (_, index) => toPeriod(first + index * length, interval, found)) }
}

/** Checks a range with both ends before the database is queried. */
export function checkPeriods(range: Range, interval: Interval): void {
  const { from, to } = range
  if (from !== undefined && to !== undefined) countPeriods(Date.parse(from), lastStart(to, interval), range, interval)
}

const lastStart = (day: string, interval: Interval) => Date.parse(day) + LENGTH_MS.day - LENGTH_MS[interval]

function countPeriods(first: number, last: number, { from, to }: Range, interval: Interval): number {
  const periods = (last - first) / LENGTH_MS[interval] + 1
  if (periods <= MAX_PERIODS) return periods
  const path = to !== undefined ? '/to' : from !== undefined ? '/from' : '/interval'
  const shorter = interval === 'hour' ? 'a shorter range, or interval=day' : 'a shorter range'
  const reason = `gives ${periods} periods, but the maximum is ${MAX_PERIODS}: use ${shorter}`
  throw new ApiError('RCS_INVALID_REQUEST', { details: [{ path, reason }] })
}

function toPeriod(start: number, interval: Interval, found: Map<number, Counts>): Period {
  const text = new Date(start).toISOString()
  const counts = AGGREGATED.map((name) => [name, found.get(start)?.[name] ?? 0])
  return { period: interval === 'day' ? text.slice(0, 10) : text, ...Object.fromEntries(counts) }
}
