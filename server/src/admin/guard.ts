import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import type { Actor } from '../audit/record.ts'
import type { Pool } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { checkRights, WRONG_CREDENTIALS_POLICY, waitForTurn } from '../http/guard.ts'
import { addressOf, type Limiter, type Policy, plainAddress } from '../http/limits.ts'
import { hasEmptyParameter, unknownRoute } from '../http/routes.ts'
import { isAtLeast, type Rights, ROLE_OF_SCOPE, type Role, roleIn } from '../people/roles.ts'
import { findSession, type Session } from '../people/sessions.ts'
import { findToken, type TokenRights } from '../people/tokens.ts'
import { normalisePhoneNumber } from '../phone-numbers.ts'
import { MAX_ID } from '../schemas.ts'
import { findAdminCaller } from './caller.ts'
import { checkSameSite, sessionSecret } from './cookie.ts'
import { maskBody, maskText } from './mask.ts'

/** Who sends a request: a person with a session, or a program with a token. */
export type Admin = Rights & ({ session: Session } | { token: TokenRights })

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on every route of /admin/v1 that is not public. */
    admin: Admin | undefined
  }
  interface FastifyContextConfig {
    /** The lowest role for a route of /admin/v1. */
    role?: Role
    /** The route is for every person who has signed in, whatever their role. */
    anyRole?: boolean
    /** The route needs the session of a person, which a token does not have. */
    needsSession?: boolean
    /** The account is a query parameter, and may be absent; otherwise it is in the path. */
    accountIn?: 'query'
    /** A public route that a browser reads to sign in, so that all people behind one address do. */
    isSignIn?: boolean
    /** Browsers send the request by themselves, without the header that marks it as such. */
    isBackground?: boolean
    /** The person must have given the password within the last ten minutes. */
    needsPassword?: boolean
  }
}

const NOT_SIGNED_IN = [{ path: '/authorization', reason: 'must be "Bearer ho_…" with a valid token; or sign in: POST /admin/v1/session' }]

/**
 * For requests to sign in or to set a password, from one address, right or wrong: each costs a hash of a password, or a request to the OpenID
 * provider. 600 a minute are enough for an office behind one address; `checkPassword` limits wrong passwords, and how many are checked at once.
 */
export const SIGN_IN_POLICY: Policy = { name: 'sign-in', quota: 600, windowMs: 60_000 }
/** For what a browser reads to sign in, up to five times each. It counts apart, since other sites can make a browser send these requests. */
const SIGN_IN_READS_POLICY: Policy = { name: 'sign-in-reads', quota: 5 * SIGN_IN_POLICY.quota, windowMs: SIGN_IN_POLICY.windowMs }

/** `publicReads`: the limit for public documents, as of /v1. */
type Guard = { pool: Pool; limiter: Limiter; publicReads: Policy }

/**
 * For the look-ups by phone number of a viewer, in all accounts. Support staff search for the number that a customer tells them; but with many
 * look-ups, a viewer could find out which number a masked one is.
 */
const NUMBER_POLICY: Policy = { name: 'number-look-ups', quota: 30, windowMs: 60_000 }

/** Adds the checks that come before all others: who it is (401), where the request comes from and what the role allows (403). */
export function guardAdmin(app: FastifyInstance, guard: Guard): void {
  app.addHook('onRoute', requireRole)
  app.addHook('onRequest', (request, reply) => check(guard, request, reply))
  // Not preSerialization, which Fastify skips for routes that write their JSON themselves.
  app.addHook('onSend', async (request, _reply, payload) =>
    request.admin !== undefined && roleOf(request) === 'viewer' ? maskBody(payload) : payload,
  )
}

/** Fails the start if a route declares no role. Routes of /v1 have a scope, which implies one. */
function requireRole({ method, url, config }: RouteOptions): void {
  if (config?.scope !== undefined) config.role ??= ROLE_OF_SCOPE[config.scope]
  if (config?.public || config?.anyRole || config?.role !== undefined) return
  throw new Error(`the route ${method} ${url} declares no role: add config: { role }`)
}

async function check(guard: Guard, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  reply.header('Cache-Control', 'no-store')
  if (request.routeOptions.config?.public) return await checkPublic(guard, request, reply)
  const { pool, limiter } = guard
  request.admin = await findAdmin(pool, request)
  if (request.admin === undefined) {
    await waitForTurn(reply, limiter, WRONG_CREDENTIALS_POLICY, addressOf(request))
    throw new ApiError('RCS_UNAUTHORIZED', { details: NOT_SIGNED_IN })
  }
  if ('session' in request.admin && !isReading(request)) checkSameSite(request)
  // An unknown path needs no role, and names no account.
  if (hasEmptyParameter(request)) unknownRoute(request)
  checkRole(request)
  if (roleOf(request) === 'viewer' && looksUpNumber(request)) await waitForTurn(reply, limiter, NUMBER_POLICY, ownerOf(request))
  const accountId = accountIdOf(request)
  if (accountId === undefined) return
  request.caller = await findAdminCaller(pool, accountId, request.admin.isOperator)
  // The admins of a suspended account may read, prepare, and stop what waits, but not send.
  const { scope, endsSending } = request.routeOptions.config ?? {}
  if (scope === 'send' && !endsSending) checkRights(request)
}

async function checkPublic({ limiter, publicReads }: Guard, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  if (!isReading(request)) checkSameSite(request)
  const readPolicy = request.routeOptions.config?.isSignIn ? SIGN_IN_READS_POLICY : publicReads
  await waitForTurn(reply, limiter, isReading(request) ? readPolicy : SIGN_IN_POLICY, addressOf(request))
}

const isReading = ({ method }: FastifyRequest) => method === 'GET' || method === 'HEAD'

async function findAdmin(pool: Pool, request: FastifyRequest): Promise<Admin | undefined> {
  const bearer = /^bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1]
  if (request.headers.authorization !== undefined) {
    const token = bearer === undefined ? undefined : await findToken(pool, bearer)
    return token && { ...token, token }
  }
  const secret = sessionSecret(request)
  const session = secret === undefined ? undefined : await findSession(pool, secret, { isUse: isUse(request) })
  return session && { ...session, session }
}

/** A phoneId in the path does not count. A clientReferenceId counts if it contains a number, since responses mask that number. */
function looksUpNumber({ params, query }: FastifyRequest): boolean {
  const { recipient, phone: filter, clientReferenceId = '' } = query as Record<string, unknown>
  const { phone } = params as { phone?: string }
  const reference = String(clientReferenceId)
  if (recipient !== undefined || filter !== undefined || maskText(reference) !== reference) return true
  return phone !== undefined && normalisePhoneNumber(phone) !== undefined
}

/** The console polls while it is open, and marks what its person did not cause. */
const isUse = ({ headers, routeOptions: { config } }: FastifyRequest) =>
  headers['x-herald-background'] === undefined && config?.isBackground !== true

/** The account that a request is about; undefined for routes of the whole installation. */
function accountIdOf({ params, query, routeOptions }: FastifyRequest): number | undefined {
  const { accountId } = (routeOptions.config?.accountIn === 'query' ? query : params) as { accountId?: unknown }
  if (accountId === undefined) return undefined
  return /^[1-9]\d{0,9}$/.test(String(accountId)) && Number(accountId) <= MAX_ID ? Number(accountId) : 0
}

/** The role of the sender of a request, in the account of the path. */
export function roleOf(request: FastifyRequest): Role | undefined {
  return roleIn(adminOf(request), accountIdOf(request))
}

function checkRole(request: FastifyRequest): void {
  // An unknown route has no configuration.
  const { role: declared, accountIn, anyRole, needsSession, needsPassword } = request.routeOptions.config ?? {}
  const admin = adminOf(request)
  if (needsSession) requireSession(request)
  const role = roleOf(request)
  const accountId = accountIdOf(request)
  const needed = accountIn === 'query' && accountId === undefined ? 'operator' : declared
  // Somebody without a role in an account does not learn whether it exists.
  if (accountId !== undefined && role === undefined) throw new ApiError('RCS_ACCOUNT_NOT_FOUND')
  if (needed !== undefined && !anyRole && (role === undefined || !isAtLeast(role, needed))) {
    throw new ApiError('RCS_ROLE', {
      details: [{ path: '', reason: `The request needs the role ${needed}; yours is ${role ?? 'lower'}.` }],
    })
  }
  if (needsPassword && 'session' in admin && !admin.session.isConfirmed) throw new ApiError('RCS_PASSWORD_REQUIRED')
}

/** Throws for a token. */
export function requireSession(request: FastifyRequest): void {
  if ('session' in adminOf(request)) return
  throw new ApiError('RCS_ROLE', { details: [{ path: '', reason: 'The request needs the session of a person; a token has none.' }] })
}

export function adminOf(request: FastifyRequest): Admin {
  if (request.admin === undefined) throw new Error('a route outside the guard asked who sent the request')
  return request.admin
}

/** The person or token, whose concurrent requests are counted. */
export function ownerOf(request: FastifyRequest): string {
  const admin = adminOf(request)
  return 'token' in admin ? `token ${admin.token.tokenId}` : `person ${admin.session.personId}`
}

/** Who the audit log names for a request. */
export function actorOf(request: FastifyRequest): Actor {
  const admin = adminOf(request)
  const from = { address: plainAddress(request.ip), requestId: request.id }
  if ('token' in admin) return { kind: 'token', id: admin.token.tokenId, name: admin.token.name, ...from }
  return { kind: 'person', id: admin.session.personId, name: admin.session.email, ...from }
}
