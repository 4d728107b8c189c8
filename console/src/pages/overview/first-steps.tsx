import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { useCarriers } from '../../app/carriers.ts'
import { go, linkTo, type Place } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame, whyNotSend } from '../../app/session.tsx'
import { Button, ButtonLink } from '../../kit/controls.tsx'
import { Empty, Loading } from '../../kit/display.tsx'
import { Icon, type IconName } from '../../kit/icon.tsx'
import { Problem } from '../../kit/problem.tsx'
import { words } from '../../words/words.ts'
import { OnePhone } from '../phones/one-phone.tsx'
import type { PhoneSummary } from '../phones/phone.ts'
import { NewEndpoint } from '../webhooks/new-endpoint.tsx'
import { FIRST_PHONE, useFirstSends } from './first-sends.ts'
import '../phones/phones.css'

const say = words.overview.steps

/** What to do first in an account that has sent nothing yet: beside a phone, if the network is simulated. */
export function FirstSteps({ place }: { place: Place }) {
  const { carriers, simulator, problem, reload } = useCarriers()
  if (problem) return <Problem problem={problem} onRetry={reload} />
  if (carriers === undefined) return <Loading />
  if (carriers.length === 0) return <Empty icon="bot" title={words.send.noAgent} />
  return simulator === undefined ? <RealSteps /> : <PhoneSteps agentIds={simulator.agentIds} place={place} />
}

function PhoneSteps({ agentIds, place }: { agentIds: string[]; place: Place }) {
  const { account } = useFrame()
  const { accountId } = account
  const phone = useResource<PhoneSummary>(`/accounts/${accountId}/phones/${encodeURIComponent(FIRST_PHONE)}`)
  const sends = useFirstSends(agentIds)
  const isSent = Boolean(phone.value?.last)
  const hasReplied = useReplied()
  const fallBack = async () => {
    const messageId = await sends.send('fallback')
    if (messageId !== undefined) go({ accountId, path: ['messages', messageId] })
  }
  return (
    <>
      {sends.problem && <Problem problem={sends.problem} />}
      {sends.agentsProblem && <Problem problem={sends.agentsProblem} onRetry={sends.reload} />}
      <div class="phones">
        <ol class="first-steps is-column" aria-label={say.label}>
          <Step icon="send" title={say.send} text={say.sendHint} isDone={isSent}>
            <SendButton sends={sends} which="first" isPrimary={!isSent} onClick={() => void sends.send('first')} />
          </Step>
          <Step icon="mouse-pointer-click" title={say.tap} text={say.tapHint} isDone={hasReplied} />
          <WebhookStep hint={say.webhookHint} />
          {account.modules.includes('sms') && (
            <Step icon="corner-down-right" title={say.fallback} text={say.fallbackHint}>
              <SendButton sends={sends} which="fallback" onClick={() => void fallBack()} />
            </Step>
          )}
        </ol>
        {phone.problem && <Problem problem={phone.problem} onRetry={phone.reload} />}
        {phone.value && <OnePhone phone={phone.value} place={place} onChange={phone.reload} />}
      </div>
    </>
  )
}

type SendButtonProps = {
  sends: ReturnType<typeof useFirstSends>
  which: 'first' | 'fallback'
  isPrimary?: boolean
  onClick: () => void
}

/** Sends a message of the first steps, or says why that is impossible. */
function SendButton({ sends: { whyNot, isReady, busy }, which, isPrimary = false, onClick }: SendButtonProps) {
  if (whyNot !== undefined) return <p class="why-not">{whyNot}</p>
  return (
    <Button kind={isPrimary ? 'primary' : 'plain'} icon="send" isBusy={busy === which} disabled={!isReady} onClick={onClick}>
      {which === 'first' ? say.sendNow : say.fallbackNow}
    </Button>
  )
}

/** Real phones can't be shown, and nothing is sent to a number that the person has not given. */
function RealSteps() {
  const { account } = useFrame()
  const { accountId } = account
  const whyNot = whyNotSend(account)
  return (
    <ol class="first-steps" aria-label={say.label}>
      <Step icon="send" title={say.sendReal} text={say.sendRealHint}>
        {whyNot !== undefined && <p class="why-not">{whyNot}</p>}
        {whyNot === undefined && (
          <ButtonLink kind="primary" icon="send" href={linkTo({ accountId, path: ['send'] })}>
            {words.pages.send}
          </ButtonLink>
        )}
      </Step>
      <WebhookStep hint={say.webhookRealHint} />
    </ol>
  )
}

function WebhookStep({ hint }: { hint: string }) {
  const { accountId } = useFrame().account
  const endpoints = useResource<{ items: object[] }>(`/accounts/${accountId}/webhook-endpoints?limit=1`)
  const [isAdding, setAdding] = useState(false)
  const close = () => {
    setAdding(false)
    endpoints.reload()
  }
  return (
    <Step icon="webhook" title={say.webhook} text={hint} isDone={(endpoints.value?.items.length ?? 0) > 0}>
      <Button icon="plus" onClick={() => setAdding(true)}>
        {words.webhooks.add}
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
    () =>
      listen((event) => {
        if (event.name === 'event' && (event.data.type === 'message.replied' || event.data.type === 'message.clicked')) setReplied(true)
      }),
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
