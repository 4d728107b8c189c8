import { useMemo, useState } from 'preact/hooks'
import { nameOf, sendingAgents, useAgents } from '../../app/agents.ts'
import { type ApiProblem, post } from '../../app/api.ts'
import { draftOf, keepDraft } from '../../app/drafts.ts'
import { linkTo, type Place } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { Select, Submit, TextField } from '../../kit/controls.tsx'
import { Dialog } from '../../kit/dialog.tsx'
import { Problem, problemAt } from '../../kit/problem.tsx'
import { Reading } from '../../kit/reading.tsx'
import { outcomeOf } from '../../timeline/outcome.ts'
import * as kitWords from '../../words/en-kit.ts'
import * as sendWords from '../../words/en-send.ts'
import * as say from '../../words/en-templates.ts'
import { MessagePhone } from '../messages/message-phone.tsx'
import { StatusPills } from '../messages/status.tsx'
import { useMessage } from '../messages/use-message.ts'
import type { Values } from './variables.tsx'
import '../messages/messages.css'

type Props = { place: Place; basic: boolean; message: unknown; values: { variables?: Values }; onClose: () => void }

/** Sends the content to a number, which is kept for the next test. */
function useSend({ basic, message, values }: Props) {
  const { account, session } = useFrame()
  const kept = `test-${session.personId}-${account.accountId}`
  const [recipient, setRecipient] = useState(() => draftOf<string>(kept) ?? '')
  const [problem, setProblem] = useState<ApiProblem>()
  const [messageId, setMessageId] = useState<string>()
  const send = async (agentId: string | undefined) => {
    setProblem(undefined)
    keepDraft(kept, recipient)
    const recipients = [recipient.replace(/[\s()-]/g, '')]
    const body = { agentId, recipients, basic, message: { inline: message }, ...values }
    await post<{ items: { messageId: string }[] }>(`/accounts/${account.accountId}/messages/test`, body).then(
      ({ items }) => setMessageId(items[0]?.messageId),
      (error: ApiProblem) => setProblem(error),
    )
  }
  return { recipient, setRecipient, send, problem, messageId }
}

/** Sends what the person has written to a phone, and follows it there. */
export function SendTest(props: Props) {
  const { place, onClose } = props
  const { agents, ...read } = useAgents()
  const [chosen, setChosen] = useState<string>()
  const { recipient, setRecipient, send, problem, messageId } = useSend(props)
  const active = sendingAgents(agents ?? [])
  const agentId = chosen ?? active[0]?.agentId
  return (
    <Dialog
      title={say.testTitle}
      onClose={onClose}
      closing={kitWords.close}
      closesOutside={false}
      onSubmit={() => send(agentId)}
      actions={active.length > 0 && <Submit text={sendWords.submit} icon="send" />}
    >
      <p class="note">{agents !== undefined && active.length === 0 ? sendWords.noAgent : say.testHint}</p>
      <Reading value={agents} {...read} />
      <div class="test-fields">
        <Select
          label={sendWords.agent}
          value={agentId ?? ''}
          onChange={setChosen}
          options={active.map((agent) => ({ value: agent.agentId, text: nameOf(agent) }))}
        />
        <TextField
          label={sendWords.fields.recipient}
          value={recipient}
          onInput={setRecipient}
          placeholder="+48500100200"
          autocomplete="off"
          required
          problem={problemAt(problem, '/recipients/0')}
        />
      </div>
      {problem && <Problem problem={problem} />}
      {messageId !== undefined && <Followed key={messageId} messageId={messageId} place={place} />}
    </Dialog>
  )
}

/** The test message: how far it has got, and what the phone shows. */
function Followed({ messageId, place }: { messageId: string; place: Place }) {
  const { accountId } = useFrame().account
  const { message, items, problem, refresh } = useMessage(messageId)
  const nowMs = useMemo(() => Date.now(), [message.value, items])
  const outcome = message.value && items && outcomeOf(message.value, items, nowMs)
  return (
    <div class="test-result">
      <Reading value={message.value && items} problem={problem} reload={refresh} />
      <div role="status">
        {message.value && <StatusPills message={message.value} />}
        {outcome && (
          <p class="outcome">
            <b>{outcome.headline}</b> {outcome.more}
          </p>
        )}
      </div>
      <a href={linkTo({ accountId, path: ['messages', messageId] })}>{sendWords.follow}</a>
      {message.value && items && <MessagePhone place={place} message={message.value} items={items} />}
    </div>
  )
}
