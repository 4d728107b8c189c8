import { useState } from 'preact/hooks'
import { ask } from '../../app/api.ts'
import { TextField } from '../../kit/controls.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import * as say from '../../words/en-accounts.ts'
import { type Account, MODULES, type Module } from './accounts-types.ts'
import { asNumber } from './as-number.ts'

type Props = { account?: Account; onDone: (account: Account) => unknown; onClose: () => void }

/** Adds an account, or changes the name, the modules and the quarantine of one. */
export function AccountDialog({ account, onDone, onClose }: Props) {
  const [name, setName] = useState(account?.name ?? '')
  const [modules, setModules] = useState(account?.modules ?? MODULES)
  const [hours, setHours] = useState(String(account?.quarantineHours ?? 0))
  const quarantineHours = asNumber(hours)
  const toggle = (module: Module) => setModules(MODULES.filter((each) => modules.includes(each) !== (each === module)))
  const submit = async () => {
    if (quarantineHours === undefined) return
    const fields = { name: name.trim(), modules }
    const saving = account
      ? ask<Account>(`/accounts/${account.accountId}`, { method: 'PATCH', body: { ...fields, quarantineHours } })
      : ask<Account>('/accounts', { method: 'POST', body: fields })
    await onDone(await saving)
  }
  return (
    <FormDialog title={account ? say.change : say.add} action={account ? say.save : say.add} run={submit} onClose={onClose}>
      {(wrongAt) => (
        <>
          <TextField label={say.name} value={name} onInput={setName} problem={wrongAt('/name')} autocomplete="off" required />
          <fieldset class="modules">
            <legend>{say.modules}</legend>
            {MODULES.map((module) => (
              <label>
                <input type="checkbox" checked={modules.includes(module)} onChange={() => toggle(module)} /> {module.toUpperCase()}
              </label>
            ))}
          </fieldset>
          {account && (
            <TextField
              label={say.quarantineField}
              value={hours}
              onInput={setHours}
              hint={say.quarantineHint}
              problem={quarantineHours === undefined ? say.notNumber : wrongAt('/quarantineHours')}
            />
          )}
        </>
      )}
    </FormDialog>
  )
}
