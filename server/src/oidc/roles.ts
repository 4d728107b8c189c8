import type { RoleRule } from '../oidc-settings.ts'
import type { Rights } from '../people/roles.ts'

/** What the values of a claim, a text or a list of texts, mean in Herald. The higher of two roles in an account counts. */
export function rightsFrom(rules: readonly RoleRule[], claim: unknown): Rights {
  const values = new Set([claim].flat())
  const granted = rules.filter(({ value }) => values.has(value))
  const roles = new Map<number, 'admin' | 'viewer'>()
  for (const rule of granted) {
    if (rule.role !== 'operator' && roles.get(rule.accountId) !== 'admin') roles.set(rule.accountId, rule.role)
  }
  return {
    isOperator: granted.some(({ role }) => role === 'operator'),
    roles: [...roles].map(([accountId, role]) => ({ accountId, role })),
  }
}
