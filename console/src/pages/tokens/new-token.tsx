import { useState } from 'preact/hooks'
import { post } from '../../app/api.ts'
import { type Role, useFrame } from '../../app/session.tsx'
import { TextField } from '../../kit/controls.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import { ShownOnce } from '../../kit/shown-once.tsx'
import { TimeField } from '../../kit/time-field.tsx'
import * as peopleWords from '../../words/en-people.ts'
import * as say from '../../words/en-tokens.ts'
import { RoleField } from '../people/role-fields.tsx'

const MONTHS_3 = 90 * 86_400_000

type Given = { name: string; role: Role; accountIds: number[]; expiresAt: string | undefined }

/** Creates a token, and shows its secret, which can't be read later. */
export function NewToken({ onClose }: { onClose: () => void }) {
  const { account, withPassword } = useFrame()
  const [secret, setSecret] = useState<string>()
  const [given, setGiven] = useState<Given>({
    name: '',
    role: 'viewer',
    accountIds: [account.accountId],
    expiresAt: new Date(Date.now() + MONTHS_3).toISOString(),
  })
  const create = async () => {
    const { accountIds, ...rest } = given
    const body = { ...rest, ...(given.role !== 'operator' && { accountIds }) }
    const created = await withPassword(() => post<{ secret: string }>('/tokens', body))
    setSecret(created.secret)
  }
  if (secret !== undefined) return <ShownOnce title={say.token} hint={say.secretHint} label={say.secret} text={secret} onClose={onClose} />
  return (
    <FormDialog title={say.add} run={create} onClose={onClose}>
      {(wrongAt) => fieldsOf({ given, wrongAt, onChange: (change) => setGiven({ ...given, ...change }) })}
    </FormDialog>
  )
}

type FieldsProps = { given: Given; wrongAt: (path: string) => string | undefined; onChange: (change: Partial<Given>) => void }

/** Not a component, which would be drawn after the form has asked what stands at the fields. */
function fieldsOf({ given: { name, role, accountIds, expiresAt }, wrongAt, onChange }: FieldsProps) {
  const [wrongName, wrongAccounts, wrongExpiry] = ['/name', '/accountIds', '/expiresAt'].map(wrongAt)
  return (
    <>
      <TextField
        label={peopleWords.name}
        value={name}
        onInput={(text) => onChange({ name: text })}
        required
        autocomplete="off"
        hint={say.nameHint}
        problem={wrongName}
      />
      <RoleField
        role={role}
        hasOperator
        hints={{ ...peopleWords.roleHints, operator: say.operatorHint }}
        onChange={(chosen) => onChange({ role: chosen })}
      />
      {role !== 'operator' && (
        <AccountsField chosen={accountIds} problem={wrongAccounts} onChange={(ids) => onChange({ accountIds: ids })} />
      )}
      <TimeField label={say.expires} value={expiresAt} onChange={(time) => onChange({ expiresAt: time })} problem={wrongExpiry} />
    </>
  )
}

type FieldProps = { chosen: number[]; problem: string | undefined; onChange: (accountIds: number[]) => void }

function AccountsField({ chosen, problem, onChange }: FieldProps) {
  const { accounts } = useFrame()
  const toggle = (id: number) => onChange(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id])
  return (
    <fieldset class="field">
      <legend class="field-legend">{say.accounts}</legend>
      <div class="token-accounts">
        {accounts.map(({ accountId, name }) => (
          <label>
            <input type="checkbox" checked={chosen.includes(accountId)} onChange={() => toggle(accountId)} /> {name} ({accountId})
          </label>
        ))}
      </div>
      {problem !== undefined && <p class="hint is-wrong">{say.noAccounts}</p>}
    </fieldset>
  )
}
