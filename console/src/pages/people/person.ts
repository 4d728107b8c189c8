import { type Account, type Role, type Session, useFrame } from '../../app/session.tsx'
import type { Tone } from '../../kit/display.tsx'
import * as paletteWords from '../../words/en-palette.ts'
import * as say from '../../words/en-people.ts'
import { listed } from '../../words/numbers.ts'

type AccountRole = Exclude<Role, 'operator'>

/** A person as operators see them. */
export type Person = {
  personId: number
  email: string
  name: string
  isOperator: boolean
  roles: { accountId: number; role: AccountRole }[]
  hasPassword: boolean
  createdAt?: string
  disabledAt?: string
}

/** A person as the admins of an account see them: without roles in other accounts. */
export type Member = Pick<Person, 'personId' | 'email' | 'name' | 'hasPassword' | 'disabledAt'> & { role: AccountRole }

/** Both in one form, so that the page has one form, too. */
export function asPerson(person: Person | Member, accountId: number): Person {
  if (!('role' in person)) return person
  const { role, ...rest } = person
  return { ...rest, isOperator: false, roles: [{ accountId, role }] }
}

/** Operators change all people. Admins change those of their account, at other paths of the API. */
export function usePaths() {
  const { account } = useFrame()
  const isOperator = account.role === 'operator'
  /** Where people get a role in an account, also new ones. */
  const members = (accountId: number) => `/accounts/${accountId}/people`
  const base = isOperator ? '/people' : members(account.accountId)
  return {
    isOperator,
    members,
    person: (personId: number | string, more = '') => `${base}/${personId}${more}`,
    role: (personId: number, accountId: number) => `${base}/${personId}${isOperator ? `/roles/${accountId}` : ''}`,
  }
}

/** Nobody changes their own rights: the last operator would be refused, and everybody else could lock themselves out by one press. */
export const isSelf = ({ personId }: Pick<Person, 'personId'>, session: Session) => personId === session.personId

export const nameOfAccount = (accounts: Account[], accountId: number) =>
  accounts.find((account) => account.accountId === accountId)?.name ?? `${paletteWords.kinds.accounts} ${accountId}`

/** `Admin in Shop and Viewer in Garden`. `most`: how many roles are named; the others are counted. */
export function rolesInWords(accounts: Account[], roles: Session['roles'], most = roles.length): string {
  const named = roles.slice(0, most).map(({ accountId, role }) => say.roleIn(role, nameOfAccount(accounts, accountId)))
  const others = roles.length - named.length
  return listed(others > 0 ? [...named, say.more(others)] : named) || say.noRole
}

/** Whether the person can sign in, in a word and a colour. */
export function stateOf({ hasPassword, disabledAt }: Pick<Person, 'hasPassword' | 'disabledAt'>): { text: string; tone: Tone } {
  if (disabledAt !== undefined) return { text: say.states.disabled, tone: 'bad' }
  return hasPassword ? { text: say.states.active, tone: 'good' } : { text: say.states.waiting, tone: 'warn' }
}
