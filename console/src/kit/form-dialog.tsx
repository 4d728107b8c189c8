import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { ApiProblem } from '../app/api.ts'
import { Submit } from './controls.tsx'
import { Dialog } from './dialog.tsx'
import { Problem, problemAt } from './problem.tsx'

type Props = {
  title: string
  /** The text of the button. By default, the title. */
  action?: string
  /** The fields. `wrongAt`: what is wrong with a field, by its path in the body. */
  children: (wrongAt: (path: string) => string | undefined) => ComponentChildren
  /** Sends the form. The dialog stays open until it has ended, and shows what went wrong. */
  run: () => Promise<unknown>
  onClose: () => void
}

/** A form in a dialog. What is wrong stands at its field, or below the fields. */
export function FormDialog({ title, action = title, children, run, onClose }: Props) {
  const [problem, setProblem] = useState<ApiProblem>()
  const submit = async () => {
    setProblem(undefined)
    await run().catch((error: ApiProblem) => setProblem(error))
  }
  let isAtField = false
  const fields = children((path) => {
    const wrong = problemAt(problem, path)
    isAtField ||= wrong !== undefined
    return wrong
  })
  return (
    <Dialog title={title} onClose={onClose} onSubmit={submit} actions={<Submit text={action} />}>
      {fields}
      {problem && !isAtField && <Problem problem={problem} />}
    </Dialog>
  )
}
