import type { Executor } from '../db/pool.ts'
import { endKnownPassword, findPerson, normalizedEmail, type Person } from './people.ts'
import type { Rights } from './roles.ts'

/** What the OpenID provider says about a person. */
export type Identity = Rights & {
  issuer: string
  subject: string
  /** Undefined if the provider has not verified it. */
  email: string | undefined
  name: string
}

export type Recognized = {
  /** Undefined if the person is new. */
  before: Person | undefined
  person: Person
  /** Whether the person was linked to this identity just now. */
  isLinked: boolean
}

/** Why the person may not sign in. The text is for the person. */
export class NotAllowed extends Error {}

/**
 * Finds the person of an identity, and sets their roles to those of the provider. The first time, the person is found by the e-mail address, or
 * created. A known person without a role loses the roles that they had: the caller checks `person`. Everybody else without a role is refused.
 * Call it in a transaction, which a NotAllowed must roll back.
 */
export async function recognizePerson(tx: Executor, identity: Identity): Promise<Recognized> {
  // Two first sign-ins at once must not create two people. Two operators who lose the role at once must not leave Herald without one.
  await tx.query('lock table people in share row exclusive mode')
  const linked = await findId(tx, 'oidc_issuer = $1 and oidc_subject = $2', [identity.issuer, identity.subject])
  const known = linked ?? (await findByAddress(tx, identity))
  const before = known === undefined ? undefined : await findPerson(tx, { personId: known })
  if (before?.disabledAt !== undefined) throw new NotAllowed(`${before.email} is disabled in Herald; ask an operator.`)
  const personId = known ?? (await create(tx, identity))
  await tx.query(SET_ROLES, [
    personId,
    identity.issuer,
    identity.subject,
    identity.isOperator,
    identity.roles.map(({ accountId }) => accountId),
    identity.roles.map(({ role }) => role),
  ])
  await endKnownPassword(tx, personId)
  const person = await findPerson(tx, { personId })
  if (linked === undefined && !identity.isOperator && person.roles.length === 0) throw noRole(person.email)
  return { before, person, isLinked: linked === undefined }
}

export function noRole(email: string): NotAllowed {
  return new NotAllowed(`None of the groups that the OpenID provider names for ${email} has a role in Herald; ask an operator.`)
}

async function findId(tx: Executor, condition: string, values: unknown[]): Promise<number | undefined> {
  return (await tx.query<{ id: number }>(`select id from people where ${condition}`, values)).rows[0]?.id
}

/** A person of the same issuer with another subject is somebody else, who has or had the address. */
async function findByAddress(tx: Executor, { issuer, email }: Identity): Promise<number | undefined> {
  if (email === undefined) throw new NotAllowed('The OpenID provider does not say that your e-mail address is verified (email_verified).')
  const address = normalizedEmail(email)
  const taken = await findId(tx, 'email = $1 and oidc_issuer = $2', [address, issuer])
  if (taken !== undefined) {
    throw new NotAllowed(
      `${address} belongs to another person of the OpenID provider. An operator can disable and enable ${address} to link it anew.`,
    )
  }
  return await findId(tx, 'email = $1', [address])
}

async function create(tx: Executor, { email = '', name }: Identity): Promise<number> {
  const { rows } = await tx.query<{ id: number }>('insert into people (email, name) values ($1, $2) returning id', [
    normalizedEmail(email),
    name,
  ])
  return (rows[0] as { id: number }).id
}

// The last operator remains an operator, as in `changePerson`. Accounts that do not exist are left out.
const SET_ROLES = `
  with changed as (
    update people p set oidc_issuer = $2, oidc_subject = $3, is_operator = $4 or p.is_operator and not exists (
      select from people o where o.id <> p.id and o.is_operator and o.disabled_at is null
    ) where p.id = $1
  ), wanted as materialized (
    select a.id as account_id, w.role from unnest($5::int[], $6::text[]) as w (account_id, role) join accounts a on a.id = w.account_id
  ), removed as (
    delete from people_roles where person_id = $1 and account_id not in (select account_id from wanted)
  )
  insert into people_roles (person_id, account_id, role) select $1, account_id, role from wanted
  on conflict (person_id, account_id) do update set role = excluded.role`
