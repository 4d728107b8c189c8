import { useState } from 'preact/hooks'
import { type Agent, nameOf, sendingAgents, useAgents } from '../../app/agents.ts'
import { type ApiProblem, post } from '../../app/api.ts'
import { useCarriers } from '../../app/carriers.ts'
import { linkTo, type Place } from '../../app/place.ts'
import { useFrame, whyNotSend } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { Button, Choice, Select, TextField } from '../../kit/controls.tsx'
import { Empty, Loading, PageHead } from '../../kit/display.tsx'
import { Problem, problemAt } from '../../kit/problem.tsx'
import { words } from '../../words/words.ts'
import { ContentFields } from './content-fields.tsx'
import { bodyOf, type Draft } from './draft.ts'
import { useDraft } from './use-draft.ts'
import './send.css'

/** Sends one message, as a caller of the API would. */
export function SendPage({ place }: { place: Place }) {
  const whyNot = whyNotSend(useFrame().account)
  return (
    <>
      <PageHead title={words.pages.send} />
      {whyNot === undefined ? <SendByAgent recipient={place.query.get('recipient') ?? ''} /> : <Empty icon="hand" title={whyNot} />}
    </>
  )
}

function SendByAgent({ recipient }: { recipient: string }) {
  const { agents, problem, isLoading, reload } = useAgents()
  const active = sendingAgents(agents ?? [])
  return (
    <>
      {problem && <Problem problem={problem} onRetry={reload} />}
      {agents === undefined && isLoading && <Loading />}
      {agents && active.length === 0 && <Empty icon="bot" title={words.send.noAgent} />}
      {active.length > 0 && <SendForm agents={active} recipient={recipient} />}
    </>
  )
}

function SendForm({ agents, recipient }: { agents: Agent[]; recipient: string }) {
  const { account } = useFrame()
  const { simulator, problem: carriersProblem, reload: reloadCarriers } = useCarriers()
  const [problem, setProblem] = useState<ApiProblem>()
  const [sent, setSent] = useState<{ messageId: string; recipient: string }>()
  const [isBusy, setBusy] = useState(false)
  const { draft, key, change: changeDraft, keepForRetry, wasSent } = useDraft(agents, recipient)
  const change = (more: Partial<Draft>) => {
    changeDraft(more)
    setSent(undefined)
  }
  const body = bodyOf(draft)
  const submit = async (event: Event) => {
    event.preventDefault()
    if (body === undefined) return
    setBusy(true)
    setProblem(undefined)
    setSent(undefined)
    keepForRetry()
    const headers = { 'idempotency-key': key }
    await post<{ messageId: string }>(`/accounts/${account.accountId}/messages`, body, headers).then(
      ({ messageId }) => {
        setSent({ messageId, recipient: body.recipient })
        wasSent()
      },
      (error: ApiProblem) => setProblem(error),
    )
    setBusy(false)
  }
  return (
    <form class="card form send" onSubmit={(event) => void submit(event)}>
      <div class="send-pair">
        <Select
          label={words.send.agent}
          value={draft.agentId}
          onChange={(agentId) => change({ agentId })}
          options={agents.map((agent) => ({ value: agent.agentId, text: nameOf(agent) }))}
        />
        <TextField
          label={words.send.recipient}
          value={draft.recipient}
          onInput={(value) => change({ recipient: value })}
          placeholder="+48500100200"
          required
          hint={words.send.recipientHint}
          problem={problemAt(problem, '/recipient')}
        />
      </div>
      <ContentFields draft={draft} onChange={change} problem={problem} isWrongJson={body === undefined} />
      {account.modules.includes('sms') && <SmsFields draft={draft} onChange={change} problem={problem} />}
      <ReferenceField draft={draft} onChange={change} problem={problem} />
      {problem && <Problem problem={problem} />}
      <div class="form-end">
        {body && <AsCurl path="messages" body={body} headers={{ 'Idempotency-Key': key }} />}
        <Button kind="primary" type="submit" icon="send" isBusy={isBusy}>
          {words.send.submit}
        </Button>
      </div>
      {carriersProblem && <Problem problem={carriersProblem} onRetry={reloadCarriers} />}
      <p role="status" class="send-done">
        {sent && <Accepted {...sent} isOnPhone={simulator?.agentIds.includes(draft.agentId) === true} />}
      </p>
    </form>
  )
}

/** `isOnPhone`: the message goes to a phone that the console can draw. */
function Accepted({ messageId, recipient, isOnPhone }: { messageId: string; recipient: string; isOnPhone: boolean }) {
  const { accountId } = useFrame().account
  return (
    <>
      {words.send.accepted} <a href={linkTo({ accountId, path: ['messages', messageId] })}>{words.send.follow}</a>
      {isOnPhone && (
        <>
          {' · '}
          <a href={linkTo({ accountId, path: ['phones'], query: { phone: recipient } })}>{words.send.seePhone}</a>
        </>
      )}
    </>
  )
}

type FieldProps = { draft: Draft; onChange: (more: Partial<Draft>) => void; problem: ApiProblem | undefined }

function SmsFields({ draft, onChange, problem }: FieldProps) {
  return (
    <fieldset class="form">
      <legend class="sr">{words.send.sms}</legend>
      <Choice
        label={words.send.sms}
        value={draft.hasSms ? 'yes' : 'no'}
        onChange={(value) => onChange({ hasSms: value === 'yes' })}
        options={[
          { value: 'no', text: words.send.noSms },
          { value: 'yes', text: words.send.withSms },
        ]}
      />
      {draft.hasSms && (
        <div class="send-pair">
          <TextField
            label={words.send.sender}
            value={draft.sender}
            onInput={(sender) => onChange({ sender })}
            required
            problem={problemAt(problem, '/smsFallback/planParams/sender')}
          />
          <TextField
            label={words.send.smsText}
            value={draft.smsText}
            onInput={(smsText) => onChange({ smsText })}
            required
            problem={problemAt(problem, '/smsFallback/smsMessagesPlan/0/content')}
          />
        </div>
      )}
    </fieldset>
  )
}

function ReferenceField({ draft, onChange, problem }: FieldProps) {
  return (
    <TextField
      label={words.send.reference}
      value={draft.reference}
      onInput={(reference) => onChange({ reference })}
      hint={words.send.referenceHint}
      problem={problemAt(problem, '/clientReferenceId')}
    />
  )
}
