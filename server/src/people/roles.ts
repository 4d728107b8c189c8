import type { Scope } from '../scopes.ts'

/** What a person or a token may do, the least first. Every route of /admin/v1 names the lowest role that it needs. */
export const ROLES = ['viewer', 'admin', 'operator'] as const
export type Role = (typeof ROLES)[number]

/** The roles that people have in single accounts. */
export const ACCOUNT_ROLES = ['viewer', 'admin'] as const
export type AccountRole = (typeof ACCOUNT_ROLES)[number]

/** The lowest role for routes of /v1 that exist again under /admin/v1, by the scope that a key needs. */
export const ROLE_OF_SCOPE = { read: 'viewer', send: 'admin', manage: 'admin', export: 'admin' } as const satisfies Record<Scope, Role>

export function isAtLeast(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

/** What a session or a token may do. */
export type Rights = {
  isOperator: boolean
  /** The role in each account; empty for an operator. */
  roles: { accountId: number; role: AccountRole }[]
}

/** The role in an account; undefined if there is none. Without an account, only operators have one. */
export function roleIn({ isOperator, roles }: Rights, accountId: number | undefined): Role | undefined {
  if (isOperator) return 'operator'
  return roles.find((each) => each.accountId === accountId)?.role
}
