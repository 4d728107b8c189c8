import { useMemo } from 'preact/hooks'
import { linkHere, type Place } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { CodeButton } from '../../kit/code-button.tsx'
import { ButtonLink } from '../../kit/controls.tsx'
import { Crumbs } from '../../kit/crumbs.tsx'
import { Loading, Pill } from '../../kit/display.tsx'
import { grouped } from '../../kit/phone-number.ts'
import { Problem } from '../../kit/problem.tsx'
import { EndpointsContext, useHosts } from '../../timeline/endpoints.ts'
import { explain } from '../../timeline/explain.ts'
import { lanesOf } from '../../timeline/lanes.ts'
import { LanesChart } from '../../timeline/lanes-chart.tsx'
import { outcomeOf } from '../../timeline/outcome.ts'
import { Timeline } from '../../timeline/timeline.tsx'
import type { Message, TimelineItem } from '../../timeline/types.ts'
import * as say from '../../words/en-messages.ts'
import * as timelineWords from '../../words/en-timeline.ts'
import { CancelButton } from './cancel.tsx'
import { MessageFacts } from './facts.tsx'
import { MessagePhone } from './message-phone.tsx'
import { meaningsOf } from './query.ts'
import { StatusPills } from './status.tsx'
import { useMessage } from './use-message.ts'

/** One message: what became of it, and why. */
export function MessageView({ place, messageId }: { place: Place; messageId: string }) {
  const { message, items, problem, refresh } = useMessage(messageId)
  return (
    <>
      <Crumbs page="messages" id={messageId} />
      {problem && (
        <Problem problem={problem} onRetry={refresh}>
          {problem.code === 'RCS_MESSAGE_NOT_FOUND' && <OtherMeanings id={messageId} />}
        </Problem>
      )}
      {message.value !== undefined && items !== undefined ? (
        <Loaded place={place} message={message.value} items={items} onChange={refresh} />
      ) : (
        <h1 class={problem === undefined ? 'sr' : ''}>{say.message}</h1>
      )}
      {message.value === undefined && problem === undefined && <Loading />}
    </>
  )
}

/** An id that is no message may be a reference or a campaign. */
function OtherMeanings({ id }: { id: string }) {
  const { campaignId } = meaningsOf(id)
  return (
    <>
      <ButtonLink icon="search" href={linkHere(['messages'], { clientReferenceId: id })}>
        {say.asReference}
      </ButtonLink>
      {campaignId && (
        <ButtonLink icon="megaphone" href={linkHere(['campaigns', campaignId])}>
          {say.asCampaign}
        </ButtonLink>
      )}
    </>
  )
}

type Props = { place: Place; message: Message; items: TimelineItem[]; onChange: () => void }

function Loaded({ place, message, items, onChange }: Props) {
  const { account } = useFrame()
  const nowMs = useMemo(() => Date.now(), [message, items])
  const { steps, others } = useMemo(() => explain(message, items), [message, items])
  const lanes = useMemo(() => lanesOf(message, items, nowMs), [message, items, nowMs])
  const outcome = outcomeOf(message, items, nowMs)
  const endpoints = useHosts(
    account.accountId,
    items.some(({ step }) => step === 'webhook-attempt'),
  )
  return (
    <>
      <Head message={message} items={items} onChange={onChange} />
      <p class={`outcome tone-${outcome.tone}`} role="status">
        <b>{outcome.headline}</b> {outcome.more}
      </p>
      <div class="message-grid">
        <div class="message-story">
          <section class="card lanes-card">
            <LanesChart {...lanes} />
          </section>
          <section class="card" aria-label={timelineWords.title}>
            <h2 class="sr">{timelineWords.title}</h2>
            {endpoints.problem && <Problem problem={endpoints.problem} onRetry={endpoints.reload} />}
            <EndpointsContext.Provider value={endpoints.hosts}>
              <Timeline steps={steps} others={others} onReplay={onChange} />
            </EndpointsContext.Provider>
          </section>
        </div>
        <aside class="message-side" aria-label={say.idsAndFacts}>
          <MessagePhone place={place} message={message} items={items} />
          <MessageFacts message={message} />
        </aside>
      </div>
    </>
  )
}

function Head({ message, items, onChange }: Omit<Props, 'place'>) {
  return (
    <div class="title-row">
      <h1>{grouped(message.recipient)}</h1>
      <StatusPills message={message} />
      {message.test && <Pill tone="info">{say.test}</Pill>}
      <span class="spring" />
      <CancelButton message={message} onDone={onChange} />
      <CodeButton text={say.asJson} code={() => JSON.stringify({ ...message, timeline: items }, undefined, 2)} />
      <AsCurl path={`messages/${message.messageId}/timeline`} />
    </div>
  )
}
