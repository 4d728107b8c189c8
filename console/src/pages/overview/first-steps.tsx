import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { sendingAgents, useAgents } from '../../app/agents.ts'
import { post } from '../../app/api.ts'
import { useCarriers } from '../../app/carriers.ts'
import { linkTo, type Place } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useRun } from '../../app/run.ts'
import { useFrame, whyNotSend } from '../../app/session.tsx'
import { Button, ButtonLink } from '../../kit/controls.tsx'
import { Empty, Loading } from '../../kit/display.tsx'
import { Icon, type IconName } from '../../kit/icon.tsx'
import { Problem } from '../../kit/problem.tsx'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-first-steps.ts'
import * as sendWords from '../../words/en-send.ts'
import * as webhookWords from '../../words/en-webhooks.ts'
import { OnePhone } from '../phones/one-phone.tsx'
import type { PhoneSummary } from '../phones/phone.ts'
import { CARD } from '../send/samples.ts'
import { NewEndpoint } from '../webhooks/new-endpoint.tsx'
import '../phones/phones.css'

/** A phone of the simulated network that gets and reads everything. */
const FIRST_PHONE = '+48500100200'

const FIRST = { recipient: FIRST_PHONE, message: { inline: CARD } }

/** What to do first in an account that has sent nothing yet: beside a phone, if the network is simulated. */
export function FirstSteps({ place }: { place: Place }) {
  const { carriers, simulator, problem, reload } = useCarriers()
  if (problem) return <Problem problem={problem} onRetry={reload} />
  if (carriers === undefined) return <Loading />
  if (carriers.length === 0) return <Empty icon="bot" title={sendWords.noAgent} />
  return simulator === undefined ? <RealSteps /> : <PhoneSteps agentIds={simulator.agentIds} place={place} />
}

/** `agentIds`: the agents in the simulated network. In a real network, the numbers may belong to somebody. */
function PhoneSteps({ agentIds, place }: { agentIds: string[]; place: Place }) {
  const { accountId } = useFrame().account
  const phone = useResource<PhoneSummary>(`/accounts/${accountId}/phones/${encodeURIComponent(FIRST_PHONE)}`)
  const { agents, ...read } = useAgents()
  const agentId = agents && (sendingAgents(agents).find((agent) => agentIds.includes(agent.agentId))?.agentId ?? null)
  return (
    <>
      {read.problem && <Problem problem={read.problem} onRetry={read.reload} />}
      <div class="phones">
        <ol class="first-steps is-column" aria-label={say.label}>
          <Step icon="send" title={say.send} text={say.sendHint} isDone={Boolean(phone.value?.last)}>
            <SendButton agentId={agentId} />
          </Step>
          <Step icon="mouse-pointer-click" title={say.tap} text={say.tapHint} isDone={useReplied()} />
          <WebhookStep />
        </ol>
        {phone.problem && <Problem problem={phone.problem} onRetry={phone.reload} />}
        {phone.value && <OnePhone phone={phone.value} place={place} onChange={phone.reload} />}
      </div>
    </>
  )
}

/** Sends the first message, or says why that is impossible. `agentId`: undefined until it is known. Null: there is none. */
function SendButton({ agentId }: { agentId: string | null | undefined }) {
  const { account } = useFrame()
  const { run, isBusy, problem } = useRun(() => {})
  // One key for one message: if a response is lost, the next attempt sends nothing twice.
  const key = useRef(crypto.randomUUID())
  const send = async () => {
    await post(`/accounts/${account.accountId}/messages`, { agentId, ...FIRST }, { 'idempotency-key': key.current })
    key.current = crypto.randomUUID()
    return ''
  }
  const whyNot = whyNotSend(account) ?? (agentId === null ? say.noAgent : undefined)
  if (whyNot !== undefined) return <p class="why-not">{whyNot}</p>
  return (
    <>
      <Button kind="primary" icon="send" isBusy={isBusy} disabled={agentId === undefined} onClick={() => void run(send)}>
        {say.sendNow}
      </Button>
      {problem && <Problem problem={problem} />}
    </>
  )
}

/** Real phones can't be shown, and nothing is sent to a number that the person has not given. */
function RealSteps() {
  const { account } = useFrame()
  const whyNot = whyNotSend(account)
  return (
    <ol class="first-steps" aria-label={say.label}>
      <Step icon="send" title={pages.send} text={say.sendRealHint}>
        {whyNot === undefined ? (
          <ButtonLink kind="primary" icon="send" href={linkTo({ accountId: account.accountId, path: ['send'] })}>
            {pages.send}
          </ButtonLink>
        ) : (
          <p class="why-not">{whyNot}</p>
        )}
      </Step>
      <WebhookStep />
    </ol>
  )
}

function WebhookStep() {
  const { accountId } = useFrame().account
  const endpoints = useResource<{ items: object[] }>(`/accounts/${accountId}/webhook-endpoints?limit=1`)
  const [isAdding, setAdding] = useState(false)
  const close = () => {
    setAdding(false)
    endpoints.reload()
  }
  return (
    <Step icon="webhook" title={say.webhook} text={say.webhookHint} isDone={Boolean(endpoints.value?.items.length)}>
      <Button icon="plus" onClick={() => setAdding(true)}>
        {webhookWords.add}
      </Button>
      {endpoints.problem && <Problem problem={endpoints.problem} onRetry={endpoints.reload} />}
      {isAdding && <NewEndpoint onClose={close} />}
    </Step>
  )
}

/** Whether a recipient has replied, tapped or clicked since the page is open. */
function useReplied(): boolean {
  const { listen } = useFrame()
  const [hasReplied, setReplied] = useState(false)
  useEffect(
    () => listen((event) => event.name === 'event' && /^message\.(replied|clicked)$/.test(event.data.type) && setReplied(true)),
    [listen],
  )
  return hasReplied
}

type StepProps = { icon: IconName; title: string; text: string; isDone?: boolean; children?: ComponentChildren }

function Step({ icon, title, text, isDone = false, children }: StepProps) {
  return (
    <li class={`card ${isDone ? 'is-done' : ''}`}>
      <Icon name={isDone ? 'check' : icon} size={22} />
      <h2>
        {title}
        {isDone && <span class="sr"> ({say.done})</span>}
      </h2>
      <p>{text}</p>
      {children}
    </li>
  )
}
