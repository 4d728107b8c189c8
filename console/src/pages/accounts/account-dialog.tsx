import { useState } from 'preact/hooks'
import { post } from '../../app/api.ts'
import { saveChanges } from '../../app/changes.ts'
import { TextField } from '../../kit/controls.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import { Sure } from '../../kit/sure.tsx'
import * as say from '../../words/en-accounts.ts'
import { type Account, MODULES, type Module } from './accounts-types.ts'
import { asNumber } from './as-number.ts'

type Props = { account?: Account; onDone: (account: Account) => unknown; onClose: () => void }

/** Adds an account, or changes the name, the modules and the quarantine of one. It asks before it removes a module. */
export function AccountDialog({ account, onDone, onClose }: Props) {
  // The page reads the account again meanwhile.
  const [before] = useState({ name: '', modules: MODULES, quarantineHours: 0, ...account })
  const [name, setName] = useState(before.name)
  const [modules, setModules] = useState(before.modules)
  const [hours, setHours] = useState(String(before.quarantineHours))
  const [isAsking, setAsking] = useState(false)
  const quarantineHours = asNumber(hours)
  const removed = account ? before.modules.filter((module) => !modules.includes(module)) : []
  const save = async () => {
    const fields = { name: name.trim(), modules }
    if (account) await saveChanges(`/accounts/${account.accountId}`, before, { ...fields, quarantineHours })
    await onDone(account ?? (await post<Account>('/accounts', fields)))
  }
  const submit = async () => {
    if (quarantineHours === undefined) return
    if (removed.length === 0) await save()
    else setAsking(true)
  }
  if (isAsking) {
    return (
      <Sure title={say.change} action={say.save} run={save} onDone={() => {}} onClose={() => setAsking(false)}>
        <p>{say.sureModules(removed)}</p>
      </Sure>
    )
  }
  return (
    <FormDialog title={account ? say.change : say.add} action={account ? say.save : say.add} run={submit} onClose={onClose}>
      {(wrongAt) => (
        <>
          <TextField label={say.name} value={name} onInput={setName} problem={wrongAt('/name')} autocomplete="off" required />
          <ModuleFields modules={modules} onChange={setModules} />
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

function ModuleFields({ modules, onChange }: { modules: Module[]; onChange: (modules: Module[]) => void }) {
  const toggle = (module: Module) => onChange(MODULES.filter((each) => modules.includes(each) !== (each === module)))
  return (
    <fieldset class="modules">
      <legend>{say.modules}</legend>
      {MODULES.map((module) => (
        <label>
          <input type="checkbox" checked={modules.includes(module)} onChange={() => toggle(module)} /> {module.toUpperCase()}
        </label>
      ))}
    </fieldset>
  )
}
