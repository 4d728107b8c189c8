import { linkTo } from '../../app/place.ts'
import type { Resource } from '../../app/resource.ts'
import { Funnel } from '../../kit/charts.tsx'
import { sentence, shortOf } from '../../timeline/outcome.ts'
import * as say from '../../words/en-campaign.ts'
import * as overviewWords from '../../words/en-overview.ts'
import * as timelineWords from '../../words/en-timeline.ts'
import { number } from '../../words/numbers.ts'
import { Part } from '../overview/part.tsx'
import type { Summary } from '../overview/report.ts'

export type CampaignSummary = Summary & { clicked: number; replied: number }
export type Failures = { items: { reason: string; messages: number; bySms: number; smsWaiting: number }[]; isMore: boolean }

const STEPS = [
  ['sent', 'plain'],
  ['delivered', 'info'],
  ['read', 'good'],
  ['clicked', 'good'],
  ['replied', 'good'],
] as const

/** How many messages got how far, as the reports count them. */
export function HowFar({ summary }: { summary: Resource<CampaignSummary> }) {
  return (
    <Part title={say.funnel} resource={summary}>
      {(counts) => (
        <Funnel
          steps={[
            ...STEPS.map(([step, tone]) => ({ name: say.steps[step], value: counts[step], tone })),
            { name: say.steps.bySms, value: counts.smsFallback.sent, tone: 'warn' },
          ]}
        />
      )}
    </Part>
  )
}

type FailuresProps = { accountId: number; campaignId: string; failures: Resource<Failures> }

/** Why messages failed, and what their recipients got instead. */
export function WhyFailed({ accountId, campaignId, failures }: FailuresProps) {
  return (
    <Part
      title={<a href={linkTo({ accountId, path: ['messages'], query: { campaignId, status: 'FAILED' } })}>{say.why}</a>}
      resource={failures}
    >
      {({ items, isMore }) => (
        <>
          {items.length === 0 && <p class="soft">{overviewWords.noFailures}</p>}
          {items.length > 0 && (
            <table class="camp-why" aria-label={say.why}>
              <thead>
                <tr>
                  <th scope="col">{say.reason}</th>
                  <th scope="col" class="num">
                    {say.messages}
                  </th>
                  <th scope="col">{say.instead}</th>
                </tr>
              </thead>
              <tbody>
                {items.map(({ reason, messages, bySms, smsWaiting }) => (
                  <tr>
                    <td>
                      <code>{reason}</code> <span class="soft">{sentence(shortOf(timelineWords.failures, reason))}</span>
                    </td>
                    <td class="num">{number.format(messages)}</td>
                    <td class="soft">
                      {bySms > 0 ? say.bySms(bySms) : say.noSms}
                      {smsWaiting > 0 && `, ${say.smsWaiting(smsWaiting)}`}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
          {isMore && <p class="hint">{overviewWords.ofLast(items.reduce((sum, { messages }) => sum + messages, 0))}</p>}
        </>
      )}
    </Part>
  )
}
