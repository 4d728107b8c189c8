import { useState } from 'preact/hooks'
import { post } from '../../app/api.ts'
import { useFrame } from '../../app/session.tsx'
import { Button } from '../../kit/controls.tsx'
import { Sure } from '../../kit/sure.tsx'
import type { Message } from '../../timeline/types.ts'
import * as say from '../../words/en-messages.ts'

/** Cancels a message that waits to be handed to the network, after a question that says what this does. */
export function CancelButton({ message, onDone }: { message: Message; onDone: () => void }) {
  const { account } = useFrame()
  const [isOpen, setOpen] = useState(false)
  const { status, messageId, smsFallback } = message
  const isWaiting = status === 'ACCEPTED' || status === 'SENDING'
  // The dialog stays if the message was sent meanwhile: it says so.
  if (account.role === 'viewer' || !(isWaiting || isOpen)) return null
  const close = () => setOpen(false)
  const cancel = () => post(`/accounts/${account.accountId}/messages/${messageId}/cancel`).finally(onDone)
  return (
    <>
      <Button icon="ban" kind="danger" onClick={() => setOpen(true)}>
        {say.cancel}
      </Button>
      {isOpen && (
        <Sure title={say.cancelTitle} action={say.cancel} closing={say.keep} run={cancel} onDone={close} onClose={close}>
          <p>{say.cancelBody}</p>
          {smsFallback && <p>{say.cancelSms}</p>}
          {status === 'SENDING' && <p>{say.cancelUnknown}</p>}
        </Sure>
      )}
    </>
  )
}
