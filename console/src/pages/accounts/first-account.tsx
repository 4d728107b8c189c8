import { useState } from 'preact/hooks'
import { Button } from '../../kit/controls.tsx'
import { words } from '../../words/words.ts'
import { AccountDialog } from './account-dialog.tsx'

/** What an operator sees when Herald has no account: there is nothing else to see. */
export function FirstAccount({ onCreated }: { onCreated: () => Promise<void> }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <p>{words.accounts.firstHint}</p>
      <Button kind="primary" icon="plus" onClick={() => setOpen(true)}>
        {words.accounts.add}
      </Button>
      {isOpen && <AccountDialog onDone={onCreated} onClose={() => setOpen(false)} />}
    </>
  )
}
