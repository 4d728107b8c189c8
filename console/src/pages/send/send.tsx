import { useState } from 'preact/hooks'
import { type Agent, nameOf, sendingAgents, useAgents } from '../../app/agents.ts'
import { type ApiProblem, post } from '../../app/api.ts'
import { useCarriers } from '../../app/carriers.ts'
import { linkTo, type Place } from '../../app/place.ts'
import { useRun } from '../../app/run.ts'
import { useFrame, whyNotSend } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { Button, Select, TextField } from '../../kit/controls.tsx'
import { Empty, PageHead } from '../../kit/display.tsx'
import { Problem, problemAt } from '../../kit/problem.tsx'
import { Reading } from '../../kit/reading.tsx'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-send.ts'
import { SmsChoice } from '../templates/inputs.tsx'
import { ContentFields } from './content-fields.tsx'
import { bodyOf, type Draft, useDraft } from './use-draft.ts'
import './send.css'

/** Sends one message, as a caller of the API would. */
export function SendPage({ place }: { place: Place }) {
  const whyNot = whyNotSend(useFrame().account)
  const { agents, ...read } = useAgents(whyNot === undefined)
  const active = sendingAgents(agents ?? [])
  return (
    <>
      <PageHead title={pages.send} />
      {whyNot && <Empty icon="hand" title={whyNot} />}
      <Reading value={agents} {...read} />
      {agents && active.length === 0 && <Empty icon="bot" title={say.noAgent} />}
      {active.length > 0 && <SendForm agents={active} recipient={place.query.get('recipient') ?? ''} />}
    </>
  )
}

/** What the fields of the form share. */
export type FormProps = { draft: Draft; onChange: (more: Partial<Draft>) => void; problem: ApiProblem | undefined }

function SendForm({ agents, recipient }: { agents: Agent[]; recipient: string }) {
  const { account } = useFrame()
  const { simulator } = useCarriers()
  // A changed form is another message, even if the response comes after the change.
  const [sent, setSent] = useState<{ messageId: string; draft: Draft }>()
  const { run, isBusy, problem } = useRun(() => {})
  const { draft, key, change: onChange, keepForRetry, wasSent } = useDraft(agents, recipient)
  const form = { draft, onChange, problem }
  const body = bodyOf(draft)
  const submit = async (event: Event) => {
    event.preventDefault()
    if (body === undefined) return
    await run(async () => {
      setSent(undefined)
      keepForRetry()
      const { messageId } = await post<{ messageId: string }>(`/accounts/${account.accountId}/messages`, body, { 'idempotency-key': key })
      setSent({ messageId, draft })
      wasSent()
      return say.accepted
    })
  }
  return (
    <form class="card form send" onSubmit={(event) => void submit(event)}>
      <div class="send-pair">
        <Select
          label={say.agent}
          value={draft.agentId}
          onChange={(agentId) => onChange({ agentId })}
          options={agents.map((agent) => ({ value: agent.agentId, text: nameOf(agent) }))}
        />
        <DraftField {...form} name="recipient" path="/recipient" placeholder="+48500100200" required />
      </div>
      <ContentFields {...form} isWrongJson={draft.kind === 'json' && body === undefined} />
      {account.modules.includes('sms') && <SmsFields {...form} />}
      <DraftField {...form} name="reference" path="/clientReferenceId" />
      {problem && <Problem problem={problem} />}
      <div class="form-end">
        {body && <AsCurl path="messages" body={body} headers={{ 'Idempotency-Key': key }} />}
        <Button kind="primary" type="submit" icon="send" isBusy={isBusy}>
          {say.submit}
        </Button>
      </div>
      <p role="status" class="send-done">
        {body && sent?.draft === draft && (
          <Accepted messageId={sent.messageId} phone={simulator?.agentIds.includes(draft.agentId) ? body.recipient : undefined} />
        )}
      </p>
    </form>
  )
}

/** `phone`: the message goes to this phone, which the console can draw. */
function Accepted({ messageId, phone }: { messageId: string; phone: string | undefined }) {
  const { accountId } = useFrame().account
  return (
    <>
      {say.accepted} <a href={linkTo({ accountId, path: ['messages', messageId] })}>{say.follow}</a>
      {phone && (
        <>
          {' · '}
          <a href={linkTo({ accountId, path: ['phones'], query: { phone } })}>{say.seePhone}</a>
        </>
      )}
    </>
  )
}

type DraftFieldProps = FormProps & {
  name: 'recipient' | 'reference' | 'sender' | 'smsText'
  /** Of the value in the request. */
  path: string
  placeholder?: string
  required?: boolean
}

function DraftField({ draft, onChange, problem, name, path, ...rest }: DraftFieldProps) {
  return (
    <TextField
      label={say.fields[name]}
      value={draft[name]}
      onInput={(value) => onChange({ [name]: value })}
      problem={problemAt(problem, path)}
      {...rest}
    />
  )
}

function SmsFields(form: FormProps) {
  const { draft, onChange } = form
  return (
    <fieldset class="form">
      <legend class="sr">{say.sms}</legend>
      <SmsChoice hasSms={draft.hasSms} onChange={onChange} />
      {draft.hasSms && (
        <div class="send-pair">
          <DraftField {...form} name="sender" path="/smsFallback/planParams/sender" required />
          <DraftField {...form} name="smsText" path="/smsFallback/smsMessagesPlan/0/content" required />
        </div>
      )}
    </fieldset>
  )
}
