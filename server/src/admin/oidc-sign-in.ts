import type { FastifyRequest } from 'fastify'
import { maskEntry } from '../audit/mask.ts'
import { recordChange } from '../audit/record.ts'
import { storableText } from '../carriers/storable-text.ts'
import type { Executor } from '../db/pool.ts'
import { plainAddress } from '../http/limits.ts'
import { logOf } from '../http/log.ts'
import type { Claims } from '../oidc/provider.ts'
import { rightsFrom } from '../oidc/roles.ts'
import type { OidcSettings } from '../oidc-settings.ts'
import { type Identity, NotAllowed, noRole, type Recognized, recognizePerson } from '../people/oidc.ts'
import { confirmByProvider, openSession } from '../people/sessions.ts'

/** `sessionId`: the session that the person confirms; undefined to open one. */
type SignIn = { claims: Claims; settings: OidcSettings; sessionId: string | undefined }

/**
 * Recognizes the person, records what changed, and opens a session, all in one transaction. Returns the secret of the session; undefined if an
 * earlier session was confirmed; an error, instead of throwing it, if the person has no role any more: the removal of the roles must be committed.
 */
export async function finishSignIn(tx: Executor, request: FastifyRequest, signIn: SignIn): Promise<string | NotAllowed | undefined> {
  const { claims, settings, sessionId } = signIn
  const identity = identityOf(claims, settings)
  const recognized = await recognizePerson(tx, identity)
  const { personId, email, isOperator, roles } = recognized.person
  await record(tx, request, identity, recognized)
  for (const { accountId } of identity.roles.filter((role) => !roles.some((each) => each.accountId === role.accountId))) {
    logOf(request).warn({ accountId }, 'HERALD_OIDC_ROLES names an account that does not exist')
  }
  if (isOperator && !identity.isOperator) logOf(request).warn('kept the last operator despite the claims of the OpenID provider')
  if (!identity.isOperator && roles.length === 0) return noRole(email)
  const authenticatedAt = new Date(1_000 * (claims.auth_time ?? 0))
  if (sessionId === undefined) {
    const client = { address: plainAddress(request.ip), userAgent: request.headers['user-agent'] ?? '' }
    return await openSession(tx, personId, client, { confirmedAt: authenticatedAt })
  }
  const isConfirmed = await confirmByProvider(tx, sessionId, personId, authenticatedAt)
  if (isConfirmed === undefined) throw new NotAllowed(`Your session has ended, or is not that of ${email}; sign in again.`)
  if (!isConfirmed) throw new NotAllowed('The OpenID provider has not asked for your password again (auth_time).')
  return undefined
}

const MAX_NAME = 200
const EMAIL = /^[^\s\0]+@[^\s\0]+$/

function identityOf(claims: Claims, { roles, rolesClaim }: OidcSettings): Identity {
  const { iss: issuer, sub: subject, email, email_verified, name, preferred_username } = claims
  const isVerified = email_verified === true && typeof email === 'string' && email.length <= 254 && EMAIL.test(email)
  const called = [name, preferred_username, email].find((each) => typeof each === 'string' && each.trim() !== '') as string | undefined
  return {
    ...rightsFrom(roles, claims[rolesClaim]),
    issuer,
    subject,
    email: isVerified ? email : undefined,
    name: [...storableText(called?.trim() ?? subject)].slice(0, MAX_NAME).join(''),
  }
}

/** A sign-in that changes nothing leaves no entry, as with a password. */
async function record(
  tx: Executor,
  request: FastifyRequest,
  { issuer, subject }: Identity,
  { before, person, isLinked }: Recognized,
): Promise<void> {
  const rights = (of: Recognized['person']) => JSON.stringify([of.isOperator, of.roles])
  if (!isLinked && before !== undefined && rights(before) === rights(person)) return
  const { personId, email } = person
  const actor = { kind: 'person', id: personId, name: email, address: plainAddress(request.ip), requestId: request.id } as const
  const values = maskEntry({ before, after: { ...person, issuer, subject } }) as object
  await recordChange(tx, actor, { action: 'signInWithOidc', subject: String(personId), ...values })
}
