import * as messageWords from '../../words/en-messages.ts'
import { number } from '../../words/numbers.ts'
import type { Campaign } from './campaign.ts'

const PARTS = [
  ['READ', 'good'],
  ['DELIVERED', 'info'],
  ['SENT', 'plain'],
  ['EXPIRED', 'warn'],
  ['FAILED', 'bad'],
] as const

/** How far a campaign is: a part for each status of its messages. What still waits is empty. */
export function ProgressBar({ campaign: { counts, recipients }, label }: { campaign: Campaign; label: string }) {
  const parts = PARTS.map(([status, tone]) => {
    const value = counts[status]
    return { tone, value, text: `${number.format(value)} ${messageWords.statuses[status]}` }
  }).filter(({ value }) => value > 0)
  return (
    <span class="camp-bar" role="img" aria-label={`${label}: ${parts.map(({ text }) => text).join(', ')}`}>
      {parts.map(({ tone, value, text }) => (
        <i class={`tone-${tone}`} title={text} style={{ width: `${(value / Math.max(1, recipients)) * 100}%` }} />
      ))}
    </span>
  )
}
