import { isAboutMessages } from '../../app/fresh.ts'
import { useFrame } from '../../app/session.tsx'
import { Funnel, Lines } from '../../kit/charts.tsx'
import * as overviewWords from '../../words/en-overview.ts'
import { Part } from './part.tsx'
import { useRefreshed } from './refreshed.ts'
import { dayAgo, type Summary } from './report.ts'

const DAYS = 14
/** Two weeks change slowly; the numbers of today follow each event. */
const OFTEN = { everyMs: 5_000, isAbout: isAboutMessages }

type Period = { period: string; sent: number; delivered: number; read: number; failed: number }

/** The lines of a plot of messages. */
export const SERIES = [
  { name: 'sent', tone: 'plain' },
  { name: 'delivered', tone: 'info' },
  { name: 'read', tone: 'good' },
  { name: 'failed', tone: 'bad' },
] as const

const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** The last two weeks: a chart by day, and how many messages got how far. */
export function History() {
  const { account } = useFrame()
  const range = `from=${dayAgo(DAYS - 1)}&to=${dayAgo(0)}`
  const reports = { days: `reports/messages/aggregations?${range}`, summary: `reports/messages/summary?${range}` }
  const days = useRefreshed<{ items: Period[] }>(`/accounts/${account.accountId}/${reports.days}`, OFTEN)
  const summary = useRefreshed<Summary>(`/accounts/${account.accountId}/${reports.summary}`, OFTEN)
  return (
    <>
      <Part title={overviewWords.history} resource={days} report={reports.days}>
        {({ items }) => (
          <Lines
            title={overviewWords.history}
            labels={items.map(({ period }) => DAY.format(new Date(period)))}
            series={SERIES.map(({ name, tone }) => ({ name: overviewWords.counts[name], tone, values: items.map((item) => item[name]) }))}
          />
        )}
      </Part>
      <Part title={overviewWords.funnel} resource={summary} report={reports.summary}>
        {(all) => (
          <Funnel
            steps={[
              { name: overviewWords.counts.accepted, value: all.accepted, tone: 'plain' },
              ...SERIES.slice(0, 3).map(({ name, tone }) => ({ name: overviewWords.counts[name], value: all[name], tone })),
              { name: overviewWords.bySms, value: all.smsFallback.delivered, tone: 'warn' as const },
            ]}
          />
        )}
      </Part>
    </>
  )
}
