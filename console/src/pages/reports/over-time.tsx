import type { Table } from '../../app/csv.ts'
import { Lines } from '../../kit/charts.tsx'
import { Empty } from '../../kit/display.tsx'
import * as say from '../../words/en-reports.ts'
import { SERIES } from '../overview/history.tsx'
import type { Interval } from './range.ts'

/** More lines than those of the overview can't be told apart. */
const IN_TABLE_ONLY = ['expired', 'clicked', 'replied'] as const
const COUNTS = [...SERIES.map(({ name }) => name), ...IN_TABLE_ONLY]

type Count = (typeof COUNTS)[number]
export type Aggregations = { interval: Interval; items: ({ period: string } & Record<Count, number>)[] }

export const aggregationsTable = ({ items }: Aggregations): Table => {
  const names = ['period', ...COUNTS] as const
  return { names, rows: items.map((item) => names.map((name) => item[name])) }
}

/** How a period is named beside the plot and in the table. */
function labelsOf({ interval, items }: Aggregations): string[] {
  const isOneYear = items[0]?.period.slice(0, 4) === items.at(-1)?.period.slice(0, 4)
  const format = new Intl.DateTimeFormat('en-GB', {
    day: 'numeric',
    month: 'short',
    timeZone: 'UTC',
    ...(!isOneYear && { year: '2-digit' }),
    ...(interval === 'hour' && { hour: '2-digit', minute: '2-digit' }),
  })
  return items.map(({ period }) => format.format(new Date(period)))
}

/** The counts of each hour or day. */
export function OverTime({ aggregations }: { aggregations: Aggregations }) {
  const { interval, items } = aggregations
  const columnOf = (name: Count) => ({ name: say.counts[name], values: items.map((item) => item[name]) })
  // An open range has no periods then; any other range has zeros.
  if (items.every((item) => COUNTS.every((name) => item[name] === 0)))
    return (
      <Empty icon="chart-column" title={say.nothing}>
        <p>{say.nothingHint}</p>
      </Empty>
    )
  return (
    <Lines
      title={say.overTime[interval]}
      labels={labelsOf(aggregations)}
      series={SERIES.map(({ name, tone }) => ({ ...columnOf(name), tone }))}
      more={IN_TABLE_ONLY.map((name) => ({ ...columnOf(name), isWide: true }))}
    />
  )
}
