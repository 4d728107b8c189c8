import { useState } from 'preact/hooks'
import { type ApiProblem, post } from '../../app/api.ts'
import { type Role, useFrame } from '../../app/session.tsx'
import { TextField } from '../../kit/controls.tsx'
import { Dialog } from '../../kit/dialog.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import { Problem } from '../../kit/problem.tsx'
import * as say from '../../words/en-people.ts'
import * as signInWords from '../../words/en-sign-in.ts'
import { ShownLink, useNewLink } from './link.tsx'
import { usePaths } from './person.ts'
import { AccountField, RoleField } from './role-fields.tsx'

type Added = { personId: number; name: string; hasPassword: boolean }
type Result = Added & { link?: string; problem?: ApiProblem }

/** Adds a person, and shows the link with which they set a password. */
export function NewPerson({ onClose }: { onClose: () => void }) {
  const [result, setResult] = useState<Result>()
  if (result === undefined) return <Form onAdded={setResult} onClose={onClose} />
  const title = say.added(result.name)
  if (result.link !== undefined) return <ShownLink title={title} link={result.link} onClose={onClose} />
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{result.problem === undefined ? say.hadPassword : say.noLink}</p>
      {result.problem && <Problem problem={result.problem} />}
    </Dialog>
  )
}

function Form({ onAdded, onClose }: { onAdded: (result: Result) => void; onClose: () => void }) {
  const { account, withPassword } = useFrame()
  const { isOperator, members } = usePaths()
  const makeLink = useNewLink()
  const [given, setGiven] = useState({ email: '', name: '', role: 'viewer' as Role, accountId: account.accountId })
  const set = (change: Partial<typeof given>) => setGiven({ ...given, ...change })
  const { accountId, role, ...person } = given
  const add = async () => {
    const added = await withPassword(() =>
      role === 'operator' ? post<Added>('/people', { ...person, isOperator: true }) : post<Added>(members(accountId), { ...person, role }),
    )
    // A person who has used Herald before, in another account.
    if (added.hasPassword) return onAdded(added)
    await makeLink(added.personId).then(
      (link) => onAdded({ ...added, link }),
      (problem: ApiProblem) => onAdded({ ...added, problem }),
    )
  }
  return (
    <FormDialog title={say.add} run={add} onClose={onClose}>
      {(wrongAt) => (
        <>
          <TextField
            label={say.name}
            value={given.name}
            onInput={(name) => set({ name })}
            autocomplete="off"
            required
            problem={wrongAt('/name')}
          />
          <TextField
            label={signInWords.email}
            type="email"
            value={given.email}
            onInput={(email) => set({ email })}
            autocomplete="off"
            required
            problem={wrongAt('/email')}
          />
          <RoleField role={role} hasOperator={isOperator} hints={say.roleHints} onChange={(role) => set({ role })} />
          {isOperator && role !== 'operator' && <AccountField accountId={accountId} onChange={(accountId) => set({ accountId })} />}
        </>
      )}
    </FormDialog>
  )
}
