import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useCarriers } from '../../app/carriers.ts'
import * as say from '../../words/en-campaign.ts'
import * as campaignWords from '../../words/en-campaigns.ts'
import { statuses } from '../../words/en-messages.ts'
import { number, share, shortDuration } from '../../words/numbers.ts'
import type { Summary } from '../overview/report.ts'
import { ProgressBar } from './bar.tsx'
import { type Campaign, handedOver, processed, rateOf, type Sample, waiting, withSample } from './campaign.ts'

type Props = { campaign: Campaign; summary: Summary | undefined }

/** How far the campaign is, how fast, and how long it will take. */
export function Figures({ campaign, summary }: Props) {
  const { counts, recipients } = campaign
  const left = waiting(campaign)
  const isGrowing = useGrowing(campaign)
  const done = handedOver(campaign)
  const ofAll = (value: number) => share(value / Math.max(1, recipients))
  const bySms = summary?.smsFallback.sent ?? 0
  return (
    <section class="card camp-figures" aria-label={campaignWords.progress}>
      <ProgressBar campaign={campaign} label={campaignWords.progress} />
      <dl>
        <Figure name={say.handedOver} note={ofAll(done)}>
          {number.format(done)}
        </Figure>
        <Figure name={say.left} note={isGrowing && say.growing}>
          {number.format(left)}
        </Figure>
        <Pace campaign={campaign} left={isGrowing ? 0 : left} />
        <Figure name={say.steps.failed} note={`${ofAll(counts.FAILED)}${bySms > 0 ? `, ${say.bySms(bySms)}` : ''}`}>
          {number.format(counts.FAILED)}
        </Figure>
        {counts.EXPIRED > 0 && (
          <Figure name={statuses.EXPIRED} note={ofAll(counts.EXPIRED)}>
            {number.format(counts.EXPIRED)}
          </Figure>
        )}
      </dl>
    </section>
  )
}

function Figure({ name, note, children }: { name: string; note?: string | false; children?: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {children} {note && <small>{note}</small>}
      </dd>
    </div>
  )
}

const GROWN_MS = 3_000

/** Whether Herald still creates messages: then nobody knows yet how many there will be. */
function useGrowing({ status, recipients }: Campaign): boolean {
  const last = useRef({ recipients, grewMs: 0 })
  if (recipients > last.current.recipients) last.current = { recipients, grewMs: Date.now() }
  return status === 'RUNNING' && Date.now() - last.current.grewMs < GROWN_MS
}

/** The API has no rate: it is what this page has seen in the last half minute. A campaign that is over has a duration instead. */
function Pace({ campaign, left }: { campaign: Campaign; left: number }) {
  const { status, startedAt = '', completedAt } = campaign
  const [samples, setSamples] = useState<Sample[]>([])
  useLayoutEffect(() => {
    const sample = { atMs: Date.now(), processed: processed(campaign) }
    setSamples((last) => (status === 'RUNNING' ? withSample(last, sample) : []))
  }, [campaign, status])
  const limit = useLimit(campaign.agentId)
  if (completedAt !== undefined) return <Figure name={say.took}>{shortDuration(Date.parse(completedAt) - Date.parse(startedAt))}</Figure>
  if (status !== 'RUNNING') return null
  const perSecond = rateOf(samples)
  if (perSecond === undefined) return <Figure name={say.rate} note={say.measuring} />
  const leftMs = (left / perSecond) * 1_000
  return (
    <>
      <Figure name={say.rate} note={say.rateNote(limit)}>
        {say.rateOf(perSecond)}
      </Figure>
      {left > 0 && perSecond > 0.05 && <Figure name={say.done}>{say.doneIn(leftMs)}</Figure>}
    </>
  )
}

/** How many messages a second the carrier takes from this agent. Infinity: the carrier has no limit, or it is not known yet. */
function useLimit(agentId: string): number {
  const { carriers } = useCarriers()
  const carrier = carriers?.find(({ agentIds }) => agentIds.includes(agentId))
  return Math.min(carrier?.messagesPerSecond ?? Infinity, carrier?.messagesPerSecondPerAgent ?? Infinity)
}
