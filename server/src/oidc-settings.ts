import { isLoopback, isLoopbackHost } from './loopback.ts'

/** People whose claim has this value get the role: for the whole installation, or in one account. */
export type RoleRule = { value: string; role: 'operator' } | { value: string; role: 'admin' | 'viewer'; accountId: number }

/** How people sign in with an OpenID provider. */
export type OidcSettings = {
  issuer: string
  clientId: string
  clientSecret: string
  /** Undefined if the secret is a variable. */
  clientSecretFile: string | undefined
  scopes: string
  /** The claim with the groups or roles of a person. */
  rolesClaim: string
  roles: RoleRule[]
}

// No semicolon: a list that is separated by semicolons would be one long value.
const RULE = /^([^;]+)=(?:(operator)|(admin|viewer):([1-9]\d{0,8}))$/

/**
 * Reads `herald-operators=operator,shop-admins=admin:1`; undefined if it is malformed. In a value, %2C stands for a comma, %3B for a
 * semicolon and %25 for a percent sign: names of groups can have commas, such as those of LDAP.
 */
export function parseRoleRules(text: string): RoleRule[] | undefined {
  const rules: RoleRule[] = []
  for (const part of text.split(',')) {
    const [, encoded = '', operator, role, accountId] = RULE.exec(part.trim()) ?? []
    const value = decoded(encoded.trim())
    if (!value) return undefined
    rules.push(operator ? { value, role: 'operator' } : { value, role: role as 'admin' | 'viewer', accountId: Number(accountId) })
  }
  return rules
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** HTTPS, or plain HTTP on this machine: anybody on the way could read a code or a token. */
export function isSafeOrigin(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname))
}

type Given = { [Name in keyof OidcSettings]: OidcSettings[Name] | undefined }

/** What is wrong with the settings together; each sentence says what would be right. Undefined settings are not set. */
export function oidcProblems(given: Given, { host, publicUrl }: { host: string; publicUrl: string | undefined }): string[] {
  const { issuer, clientId, clientSecret, clientSecretFile, roles } = given
  const required = [issuer, clientId, clientSecret ?? clientSecretFile, roles]
  if (required.every((value) => value === undefined)) return []
  const problems: string[] = []
  if (required.some((value) => value === undefined)) {
    problems.push(
      'HERALD_OIDC_ISSUER, HERALD_OIDC_CLIENT_ID, HERALD_OIDC_CLIENT_SECRET (or HERALD_OIDC_CLIENT_SECRET_FILE) and HERALD_OIDC_ROLES must be given together.',
    )
  }
  if (clientSecret !== undefined && clientSecretFile !== undefined) {
    problems.push('HERALD_OIDC_CLIENT_SECRET and HERALD_OIDC_CLIENT_SECRET_FILE must not both be given.')
  }
  if (publicUrl === undefined ? !isLoopback(host) : !isSafeOrigin(publicUrl)) {
    problems.push('HERALD_PUBLIC_URL must begin with https:// for HERALD_OIDC_ISSUER: the provider sends people back to this address.')
  }
  return problems
}
