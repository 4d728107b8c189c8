import { useState } from 'preact/hooks'
import { type ApiProblem, post } from '../../app/api.ts'
import { useFrame } from '../../app/session.tsx'
import { Button } from '../../kit/controls.tsx'
import { Dialog } from '../../kit/dialog.tsx'
import { Problem } from '../../kit/problem.tsx'
import type { Message } from '../../timeline/types.ts'
import { words } from '../../words/words.ts'

const say = words.messages.cancel

/** Cancels a message that waits to be handed to the network, after a question that says what this does. */
export function CancelButton({ message, onDone }: { message: Message; onDone: () => void }) {
  const { account } = useFrame()
  const [isOpen, setOpen] = useState(false)
  const isWaiting = message.status === 'ACCEPTED' || message.status === 'SENDING'
  // The dialog stays if the message was sent meanwhile: it says so.
  if (account.role === 'viewer' || !(isWaiting || isOpen)) return null
  return (
    <>
      <Button icon="ban" kind="danger" onClick={() => setOpen(true)}>
        {say.button}
      </Button>
      {isOpen && <CancelDialog message={message} onClose={() => setOpen(false)} onDone={onDone} />}
    </>
  )
}

function CancelDialog({ message, onClose, onDone }: { message: Message; onClose: () => void; onDone: () => void }) {
  const { account } = useFrame()
  const [problem, setProblem] = useState<ApiProblem>()
  const cancel = async () => {
    setProblem(undefined)
    await post(`/accounts/${account.accountId}/messages/${message.messageId}/cancel`).then(onClose, (error: ApiProblem) =>
      setProblem(error),
    )
    onDone()
  }
  const actions = (
    <Button icon="ban" kind="danger" type="submit">
      {say.confirm}
    </Button>
  )
  return (
    <Dialog title={say.title} onClose={onClose} onSubmit={cancel} closing={say.keep} actions={actions}>
      <p>{say.body}</p>
      {message.smsFallback !== undefined && <p>{say.sms}</p>}
      {message.status === 'SENDING' && <p>{say.unknown}</p>}
      {problem && <Problem problem={problem} />}
    </Dialog>
  )
}
