import { type Role, useFrame } from '../../app/session.tsx'
import { Select } from '../../kit/controls.tsx'
import * as paletteWords from '../../words/en-palette.ts'
import * as say from '../../words/en-people.ts'

type RoleProps = { role: Role; hasOperator: boolean; hints: Record<Role, string>; onChange: (role: Role) => void }

/** One of the roles, and what it may do. */
export function RoleField({ role, hasOperator, hints, onChange }: RoleProps) {
  const roles: Role[] = hasOperator ? ['viewer', 'admin', 'operator'] : ['viewer', 'admin']
  return (
    <Select
      label={say.role}
      value={role}
      options={roles.map((each) => ({ value: each, text: say.roles[each] }))}
      onChange={onChange}
      hint={hints[role]}
    />
  )
}

type AccountProps = { accountId: number; onChange: (accountId: number) => void }

export function AccountField({ accountId, onChange }: AccountProps) {
  const { accounts } = useFrame()
  return (
    <Select
      label={paletteWords.kinds.accounts}
      value={String(accountId)}
      options={accounts.map((account) => ({ value: String(account.accountId), text: `${account.name} (${account.accountId})` }))}
      onChange={(value) => onChange(Number(value))}
    />
  )
}
