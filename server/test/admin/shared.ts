import { hashPassword } from '../../src/people/passwords.ts'
import { changePerson, createPerson, setRole } from '../../src/people/people.ts'
import type { AccountRole, Role } from '../../src/people/roles.ts'
import { openSession } from '../../src/people/sessions.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { type ApiResponse, call, startTestService } from '../support/service.ts'

export const { pool, url: databaseUrl } = await createTestDatabase({ unlogged: 'a campaign is started by hand' })
export const owner = ownerOf(pool)
export const env = { HERALD_DATABASE_URL: databaseUrl, HERALD_TRUST_PROXY: '127.0.0.1,::1' }
// Without workers: nothing changes but by a request.
export const service = await startTestService(env, { roles: ['api'] })
export const ADMIN = `${service.url}/admin/v1`

let people = 0

/** A new person: an operator, or with a role in some accounts. If they have a password, it is this one. */
export async function newPerson(role: Role | undefined, accountIds: number[] = []): Promise<{ personId: number; email: string }> {
  people += 1
  const email = `person-${people}@example.com`
  const { personId } = await createPerson(pool, { email, name: `Person ${people}` })
  if (role === 'operator') await changePerson(pool, personId, { isOperator: true })
  for (const accountId of role === 'operator' ? [] : accountIds) await setRole(pool, personId, accountId, role as AccountRole)
  return { personId, email }
}

export const PASSWORD = 'correct horse battery'
const passwordHash = await hashPassword(PASSWORD)

/** A person with a password. */
export async function withPassword(): Promise<{ personId: number; email: string }> {
  const person = await newPerson('operator')
  await pool.query('update people set password_hash = $2 where id = $1', [person.personId, passwordHash])
  return person
}

/** What a browser sends with a request of a page of Herald. */
export const SAME_SITE = { 'sec-fetch-site': 'same-origin' }

export type Ask = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<ApiResponse>

/** Opens a session for a person; sends requests as their browser does. */
export async function sessionOf(personId: number): Promise<{ ask: Ask; cookie: string }> {
  const secret = await openSession(pool, personId, { address: '127.0.0.1', userAgent: 'test' })
  const cookieFor = (protocol?: string) => `${protocol === 'https' ? '__Host-herald' : 'herald-local'}=${secret}`
  const ask: Ask = (method, path, body, headers = SAME_SITE) =>
    call(ADMIN + path, { method, body, headers: { ...headers, cookie: cookieFor(headers['x-forwarded-proto']) } })
  return { ask, cookie: cookieFor() }
}

/** A session of a new person with this role. */
export async function signedIn(role: Role | undefined, ...accountIds: number[]): Promise<Ask> {
  return (await sessionOf((await newPerson(role, accountIds)).personId)).ask
}

let addresses = 0

/** An address that no request has come from. The service believes a header that names one. */
export function newAddress(): string {
  addresses += 1
  return `198.18.${addresses >> 8}.${addresses & 255}`
}
