import { useState } from 'preact/hooks'
import { ask } from '../../app/api.ts'
import { go, linkTo } from '../../app/place.ts'
import { type Role, useFrame } from '../../app/session.tsx'
import { Button } from '../../kit/controls.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import { Sure } from '../../kit/sure.tsx'
import * as say from '../../words/en-people.ts'
import { isSelf, nameOfAccount, type Person, usePaths } from './person.ts'
import { AccountField, RoleField } from './role-fields.tsx'

type Props = { person: Person; onChanged: () => void }

/** The roles of a person in single accounts. An admin sees and changes the one in their account. */
export function Roles({ person, onChanged }: Props) {
  const { accounts, session } = useFrame()
  const { isOperator } = usePaths()
  const [isSetting, setSetting] = useState(false)
  const [removed, setRemoved] = useState<number>()
  const canChange = isOperator || !isSelf(person, session)
  const close = () => {
    setSetting(false)
    setRemoved(undefined)
  }
  const props = { person, onChanged, onClose: close }
  return (
    <section class="card person-card" aria-label={say.rolesTitle}>
      <header>
        <h2>{say.rolesTitle}</h2>
        {canChange && (
          <Button icon="pencil" onClick={() => setSetting(true)}>
            {say.setRole}
          </Button>
        )}
      </header>
      {person.isOperator && <p class="note">{say.roleHints.operator}</p>}
      {!person.isOperator && person.roles.length === 0 && <p class="note">{say.noRoles}</p>}
      {person.roles.length > 0 && (
        <ul class="person-roles">
          {person.roles.map(({ accountId, role }) => (
            <li key={accountId}>
              <a href={linkTo({ accountId, path: [] })}>{nameOfAccount(accounts, accountId)}</a>
              <span>{say.roles[role]}</span>
              {canChange && (
                <Button
                  icon="x"
                  kind="danger"
                  aria-label={say.removeRoleIn(nameOfAccount(accounts, accountId))}
                  onClick={() => setRemoved(accountId)}
                >
                  {say.removeRole}
                </Button>
              )}
            </li>
          ))}
        </ul>
      )}
      {isSetting && <SetDialog {...props} />}
      {removed !== undefined && <RemoveDialog {...props} accountId={removed} />}
    </section>
  )
}

type DialogProps = Props & { onClose: () => void }

/** Gives a person a role in an account, or another one there. */
function SetDialog({ person, onChanged, onClose }: DialogProps) {
  const { account, withPassword } = useFrame()
  const { isOperator, role: pathOf } = usePaths()
  const roleIn = (id: number): Role => person.roles.find((each) => each.accountId === id)?.role ?? 'viewer'
  const [accountId, setAccountId] = useState(account.accountId)
  const [role, setRole] = useState(roleIn(accountId))
  const choose = (id: number) => {
    setAccountId(id)
    setRole(roleIn(id))
  }
  const save = async () => {
    await withPassword(() => ask(pathOf(person.personId, accountId), { method: 'PUT', body: { role } }))
    onClose()
    onChanged()
  }
  return (
    <FormDialog title={say.setRole} run={save} onClose={onClose}>
      {() => (
        <>
          {isOperator && <AccountField accountId={accountId} onChange={choose} />}
          <RoleField role={role} hasOperator={false} hints={say.roleHints} onChange={setRole} />
        </>
      )}
    </FormDialog>
  )
}

function RemoveDialog({ person, accountId, onChanged, onClose }: DialogProps & { accountId: number }) {
  const { accounts, withPassword } = useFrame()
  const { isOperator, role: pathOf } = usePaths()
  const name = nameOfAccount(accounts, accountId)
  const done = () => {
    onClose()
    // For an admin, a person without a role in the account does not exist.
    if (isOperator) onChanged()
    else go({ accountId, path: ['people'] })
  }
  return (
    <Sure
      title={say.removeRoleIn(name)}
      action={say.removeRole}
      run={() => withPassword(() => ask(pathOf(person.personId, accountId), { method: 'DELETE' }))}
      onDone={done}
      onClose={onClose}
    >
      <p>{say.sureRemove(person.name, name)}</p>
    </Sure>
  )
}
