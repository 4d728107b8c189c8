import { useFresh } from '../../app/fresh.ts'
import { useResource } from '../../app/resource.ts'
import { Lines } from '../../kit/charts.tsx'
import * as say from '../../words/en-campaign.ts'
import { Part } from '../overview/part.tsx'
import { type Campaign, pathOfCampaign } from './campaign.ts'

const MINUTE_MS = 60_000
/** The API counts an hour. A little less, so that the minutes of the last receipts are in it. */
const SHOWN_MS = 55 * MINUTE_MS
/** The API reads all events of the hour each time. */
const FRESH = { everyMs: 15_000, restMs: 15_000 }

const SERIES = [
  ['read', 'good'],
  ['delivered', 'info'],
  ['sent', 'plain'],
  ['failed', 'bad'],
] as const

type Counts = Record<(typeof SERIES)[number][0], number>
type Minute = { minute: string } & Counts

/** What happened in each minute: since the campaign started; of a long one, in the last hour in which it ran. */
export function Minutes({ accountId, campaign }: { accountId: number; campaign: Campaign }) {
  const minutes = useResource<{ items: Minute[] }>(pathOfCampaign(accountId, campaign.campaignId, `/minutes${queryOf(campaign)}`))
  useFresh(minutes.reload, FRESH)
  return (
    <Part title={say.minutes} resource={minutes}>
      {({ items }) => {
        if (items.length === 0) return <p class="soft">{say.noMinutes}</p>
        const [times, byTime] = everyMinute(items)
        return (
          <Lines
            title={say.minutes}
            labels={times.map(say.clock)}
            series={SERIES.map(([name, tone]) => ({ name: say.steps[name], tone, values: times.map((at) => byTime.get(at)?.[name] ?? 0) }))}
          />
        )
      }}
    </Part>
  )
}

/** From when on. Without it, the API returns the last hour. It stays the same, so that the chart stays while it is read again. */
function queryOf({ startedAt = '', completedAt, cancelledAt }: Campaign): string {
  const endedAt = completedAt ?? cancelledAt
  const lastMs = (endedAt === undefined ? Date.now() : Date.parse(endedAt)) - SHOWN_MS
  if (lastMs < Date.parse(startedAt)) return `?from=${startedAt}`
  return endedAt === undefined ? '' : `?from=${new Date(lastMs).toISOString()}`
}

/** The API leaves out minutes without events. The first minute has one before it, so that a short campaign has a line, too. */
function everyMinute(items: Minute[]): [times: number[], byTime: Map<number, Counts>] {
  const byTime = new Map(items.map((item) => [Date.parse(item.minute), item]))
  const times = [...byTime.keys()]
  const [first, last] = [Math.min(...times) - MINUTE_MS, Math.max(...times)]
  return [Array.from({ length: (last - first) / MINUTE_MS + 1 }, (_, index) => first + index * MINUTE_MS), byTime]
}
