import { useState } from 'preact/hooks'
import { ButtonLink, Submit, TextField } from '../kit/controls.tsx'
import { Dialog } from '../kit/dialog.tsx'
import { Problem } from '../kit/problem.tsx'
import * as say from '../words/en-sign-in.ts'
import { ApiProblem, post, urlOf } from './api.ts'
import type { Session } from './session.tsx'

type Waiting = { repeat: () => void; cancel: () => void }

/**
 * Runs a request that may need the password again. If it does, a dialog asks the person for the password, and the request is repeated. Rejects
 * if the person closes the dialog.
 */
export type WithPassword = <T>(run: () => Promise<T>) => Promise<T>

export function usePassword(session: Session) {
  const [waiting, setWaiting] = useState<Waiting>()
  const withPassword: WithPassword = async (run) => {
    try {
      return await run()
    } catch (error) {
      if (!(error instanceof ApiProblem) || error.code !== 'RCS_PASSWORD_REQUIRED') throw error
      await new Promise<void>((repeat, reject) => setWaiting({ repeat, cancel: () => reject(error) }))
      return await run()
    }
  }
  const dialog = waiting && (
    <PasswordDialog
      session={session}
      onGiven={() => {
        setWaiting(undefined)
        waiting.repeat()
      }}
      onClose={() => {
        setWaiting(undefined)
        waiting.cancel()
      }}
    />
  )
  return { withPassword, dialog }
}

function PasswordDialog({ session, onGiven, onClose }: { session: Session; onGiven: () => void; onClose: () => void }) {
  const [password, setPassword] = useState('')
  const [problem, setProblem] = useState<ApiProblem>()
  const submit = async () => {
    setProblem(undefined)
    await post('/session/confirm', { password }).then(onGiven, (error: ApiProblem) => setProblem(error))
  }
  if (!session.hasPassword) {
    const toProvider = (
      <ButtonLink kind="primary" href={urlOf('/oidc/confirm')}>
        {say.withOrganization}
      </ButtonLink>
    )
    return (
      <Dialog title={say.confirmTitle} onClose={onClose} actions={toProvider}>
        <p>{say.atProvider}</p>
      </Dialog>
    )
  }
  return (
    <Dialog title={say.confirmTitle} onClose={onClose} onSubmit={submit} actions={<Submit text={say.confirm} />}>
      <p>{say.confirmWhy}</p>
      <TextField label={say.password} type="password" autocomplete="current-password" required value={password} onInput={setPassword} />
      {problem && <Problem problem={problem} />}
    </Dialog>
  )
}
