import { useLayoutEffect, useRef } from 'preact/hooks'
import { nameOf, useAgents } from '../../app/agents.ts'
import { filter, type Place } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { Choice } from '../../kit/controls.tsx'
import { Empty, Loading } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'
import { colorOf, type Platform } from '../../phone/drawn.ts'
import { Phone } from '../../phone/phone.tsx'
import { PlatformChoice, platformOf } from '../../phone/platform-choice.tsx'
import type { Message, TimelineItem } from '../../timeline/types.ts'
import * as say from '../../words/en-messages.ts'
import { arrived, meant, type Received, type SentContent, type Shown } from './content.ts'

/** What the recipient got, or what was meant for them, on both kinds of phone. The choice is in the address. */
export function MessagePhone({ place, message, items }: { place: Place; message: Message; items: TimelineItem[] }) {
  const { content, received } = useContent(message)
  const isMeant = place.query.get('show') === 'meant'
  const platform = platformOf(place.query.get('phone'))
  const got = content.value && received.value && arrived(message, items, content.value, received.value)
  // What was read before the message was delivered does not say that the message is gone.
  const current = got?.is === 'gone' && received.isLoading ? undefined : got
  const shown = isMeant ? content.value && meant(message, content.value) : current
  // What was meant does not need the network.
  const problem = content.problem ?? (isMeant ? undefined : received.problem)
  const reload = content.problem === undefined ? received.reload : content.reload
  return (
    <section class="message-phone" aria-label={say.thePhone}>
      <div class="phone-tools">
        <Choice
          label={say.whatToShow}
          value={isMeant ? 'meant' : 'got'}
          options={[
            { value: 'got', text: say.got },
            { value: 'meant', text: say.meant },
          ]}
          onChange={(show) => filter(place, { show: show === 'got' ? undefined : show })}
        />
        <PlatformChoice platform={platform} onChange={(phone) => filter(place, { phone })} />
      </div>
      {problem && <Problem problem={problem} onRetry={reload} />}
      {shown ? <Screen message={message} shown={shown} platform={platform} /> : problem === undefined && <Loading />}
      {shown?.is === 'entry' && !isMeant && isAsSent(shown, received.value) && <p class="soft">{say.asSent}</p>}
    </section>
  )
}

/** Whether the phone shows what Herald sent, since the network does not say what arrived. */
const isAsSent = ({ entry }: Shown & { is: 'entry' }, received: Received | undefined) =>
  received !== undefined && (!received.isSimulated || (entry.from === 'sms' && received.sms === undefined))

/**
 * Reads the content once. Reads what the network received again when the state of the message has changed and, until something has arrived, with
 * each read of the message: its receipts may be lost.
 */
function useContent(message: Message) {
  const { messageId, status, smsFallback } = message
  const { account } = useFrame()
  const path = `/accounts/${account.accountId}/messages/${messageId}`
  const content = useResource<SentContent>(`${path}/content`)
  const received = useResource<Received>(`${path}/received`)
  const state = `${status} ${smsFallback?.status}`
  const lastState = useRef(state)
  const hasArrived = received.value?.deliveredAt !== undefined || received.value?.sms !== undefined
  // Before the page is drawn again: what was read earlier must not seem to be the state of now.
  useLayoutEffect(() => {
    const isNews = state !== lastState.current || (!hasArrived && received.value?.isSimulated)
    lastState.current = state
    if (isNews) received.reload()
  }, [message])
  return { content, received }
}

const TITLES = { nothing: say.nothing, 'nothing-yet': say.nothingYet, gone: say.gone }

function Screen({ message, shown, platform }: { message: Message; shown: Shown; platform: Platform }) {
  const { agents = [] } = useAgents()
  if (shown.is !== 'entry')
    return (
      <div class="card">
        <Empty icon="smartphone" title={TITLES[shown.is]} />
      </div>
    )
  const agent = agents.find(({ agentId }) => agentId === message.agentId)
  const name = shown.sender ?? (agent ? nameOf(agent) : message.agentId)
  const isVerified = shown.sender === undefined
  const sender = { name, isVerified, color: colorOf(isVerified ? message.agentId : name) }
  return <Phone platform={platform} sender={sender} entries={[shown.entry]} height={560} isPreview />
}
