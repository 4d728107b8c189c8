import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { ApiProblem } from '../app/api.ts'
import * as say from '../words/en-kit.ts'
import { Button, TextField } from './controls.tsx'
import { Dialog } from './dialog.tsx'
import { Problem } from './problem.tsx'

type Props = {
  title: string
  /** What will happen, and to how many. */
  children: ComponentChildren
  /** The text of the button. */
  action: string
  /** The text of the button that closes the dialog, where `Cancel` could be misread. */
  closing?: string
  /** What the person has to type first, for what can't be undone and affects many. */
  typed?: string
  /** The dialog stays open until it has ended, and shows what went wrong. */
  run: () => Promise<unknown>
  onDone: () => void
  onClose: () => void
}

/** Asks before something is lost. */
export function Sure({ title, children, action, closing, typed, run, onDone, onClose }: Props) {
  const [problem, setProblem] = useState<ApiProblem>()
  const [text, setText] = useState('')
  const submit = async () => {
    setProblem(undefined)
    await run().then(onDone, (error: ApiProblem) => setProblem(error))
  }
  const actions = (
    <Button kind="danger" type="submit" disabled={typed !== undefined && text !== typed}>
      {action}
    </Button>
  )
  return (
    <Dialog title={title} onClose={onClose} onSubmit={submit} actions={actions} {...(closing !== undefined && { closing })}>
      {children}
      {typed !== undefined && <TextField label={say.typeToConfirm(typed)} value={text} onInput={setText} autocomplete="off" />}
      {problem && <Problem problem={problem} />}
    </Dialog>
  )
}
