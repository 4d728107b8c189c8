import { useState } from 'preact/hooks'
import { ask } from '../../app/api.ts'
import { TextField } from '../../kit/controls.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import { words } from '../../words/words.ts'
import { type Account, MODULES, type Module } from './accounts-types.ts'
import { asNumber } from './as-number.ts'

type Props = { account?: Account; onDone: (account: Account) => unknown; onClose: () => void }

/** Adds an account, or changes the name, the modules and the quarantine of one. */
export function AccountDialog({ account, onDone, onClose }: Props) {
  const w = words.accounts
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
    <FormDialog title={account ? w.change : w.add} action={account ? w.save : w.add} run={submit} onClose={onClose}>
      {(wrongAt) => (
        <>
          <TextField label={w.name} value={name} onInput={setName} problem={wrongAt('/name')} autocomplete="off" required />
          <fieldset class="modules">
            <legend>{w.modules}</legend>
            {MODULES.map((module) => (
              <label>
                <input type="checkbox" checked={modules.includes(module)} onChange={() => toggle(module)} /> {module.toUpperCase()}
              </label>
            ))}
          </fieldset>
          {account && (
            <TextField
              label={w.quarantineField}
              value={hours}
              onInput={setHours}
              hint={w.quarantineHint}
              problem={quarantineHours === undefined ? w.notNumber : wrongAt('/quarantineHours')}
            />
          )}
        </>
      )}
    </FormDialog>
  )
}
