import { useState } from 'preact/hooks'
import { Button } from '../../kit/controls.tsx'
import * as accountWords from '../../words/en-accounts.ts'
import { AccountDialog } from './account-dialog.tsx'

/** What an operator sees when Herald has no account: there is nothing else to see. */
export function FirstAccount({ onCreated }: { onCreated: () => Promise<void> }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <p>{accountWords.firstHint}</p>
      <Button kind="primary" icon="plus" onClick={() => setOpen(true)}>
        {accountWords.add}
      </Button>
      {isOpen && <AccountDialog onDone={onCreated} onClose={() => setOpen(false)} />}
    </>
  )
}
