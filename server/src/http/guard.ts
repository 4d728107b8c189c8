import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { isUnavailable } from '../db/pool.ts'
import { ApiError, type ErrorCode } from '../errors.ts'
import type { Scope } from '../scopes.ts'
import { isAllowedAddress } from './allowed-addresses.ts'
import { addressOf, applyLimit, type Limiter, type Policy, plainAddress } from './limits.ts'
import { hasEmptyParameter, unknownRoute } from './routes.ts'

/** The account and key that a request is sent with, as far as http/ needs to know them. */
export type Caller = {
  accountId: number
  /** Changes with every change of the account. */
  accountVersion: string
  modules: string[]
  isSuspended: boolean
  integrationKey: string
  /** Changes with every change of the key. */
  keyVersion: string
  secretHash: Buffer
  /** Null: all scopes. */
  scopes: Scope[] | null
  /** Networks from which the key may be used, such as 10.0.0.0/8. Null: every address. */
  addresses: string[] | null
  /** Whether the caller is an operator, who uses the admin API. Absent for a key. */
  isOperator?: boolean
}

type Guard = {
  authenticate: (authorization: string | undefined) => Promise<Caller | undefined>
  findCached: (authorization: string | undefined) => Caller | undefined
  /** Notes that a request had right credentials. */
  noteUse: (integrationKey: string) => void
  limiter: Limiter
  policies: Policies
}

type Policies = { messages: Policy; events: Policy; others: Policy; wrongCredentials: Policy }

const WRONG_CREDENTIALS_PER_MINUTE = 30
/** The same for all wrong credentials, so that nobody learns which keys exist. */
const WRONG_CREDENTIALS = [
  {
    path: '/authorization',
    reason: 'must be "Bearer <integrationKey>:<secret>", with the current secret of a key that is neither revoked nor expired',
  },
]
type Limits = { messagesPerSecond: number; eventsPerSecond: number; othersPerMinute: number }

/** The operations with a limit of their own. */
const OWN_LIMITS: Record<string, 'messages' | 'events'> = {
  'POST /v1/messages': 'messages',
  'GET /v1/events': 'events',
  'HEAD /v1/events': 'events',
}

/** For requests with wrong credentials, from one address. */
export const WRONG_CREDENTIALS_POLICY: Policy = { name: 'credentials', quota: WRONG_CREDENTIALS_PER_MINUTE, windowMs: 60_000 }

export function createPolicies(limits: Limits): Policies {
  return {
    messages: { name: 'messages', quota: limits.messagesPerSecond, windowMs: 1_000 },
    events: { name: 'events', quota: limits.eventsPerSecond, windowMs: 1_000 },
    others: { name: 'default', quota: limits.othersPerMinute, windowMs: 60_000 },
    wrongCredentials: WRONG_CREDENTIALS_POLICY,
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on every guarded route. */
    caller: Caller | undefined
    /** Whether the caller comes from the cache and was not looked up. */
    isCached: boolean
    /** Set if the route confirms its caller. Looks the caller up, and throws if the credentials are no longer valid. */
    lookUpCaller: (() => Promise<void>) | undefined
  }
  interface FastifyContextConfig {
    /** The route's statement confirms the caller, so that a cached one needs no look-up. */
    confirmsCaller?: boolean
    /** Served without credentials; limited by address alone. */
    public?: boolean
    /** The scope that a key needs. Every route that is not public has one. */
    scope?: Scope
    /** The route only stops messages, so people and tokens may use it in a suspended account. Keys may not. */
    endsSending?: boolean
  }
}

/**
 * Adds the checks that come before all others: credentials (401), limits (429), and what the key and the account may do (403). They run before
 * the body is read, and for unknown routes too, so that without credentials every path looks the same.
 */
export function guardRoutes(app: FastifyInstance, guard: Guard): void {
  app.addHook('onRoute', requireScope)
  app.addHook('onRequest', (request, reply) => check(guard, request, reply))
  // A look-up notes the use of a key by itself. If the caller still comes from the cache, the statement of the route has confirmed it.
  app.addHook('onResponse', (request, reply, done) => {
    if (request.isCached && reply.statusCode < 500) guard.noteUse(callerOf(request).integrationKey)
    done()
  })
  app.setErrorHandler(async (error, request) => {
    await confirmBeforeError(request, error)
    throw error
  })
}

/** Fails the start if a route declares no scope, and adds the scope to the OpenAPI document. */
function requireScope({ method, url, config, schema }: RouteOptions): void {
  if (config?.public) return
  if (config?.scope === undefined) throw new Error(`the route ${method} ${url} declares no scope: add config: { scope }`)
  if (schema !== undefined) schema.security = [{ integrationKey: [config.scope] }]
}

/**
 * Looks a cached caller up before the caller gets an error, so that wrong credentials and missing rights come first, as for every caller.
 * Not before a 503: every caller gets that while the database is out of reach, and another look-up would only wait for the database.
 */
async function confirmBeforeError(request: FastifyRequest, error: unknown): Promise<void> {
  if (!request.isCached || isUnavailable(error)) return
  await request.lookUpCaller?.()
  const isLimit = error instanceof ApiError && error.code === 'RCS_RATE_LIMITED'
  if (!isLimit) checkRights(request)
}

async function check(guard: Guard, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { limiter, policies } = guard
  const address = addressOf(request)
  // Responses are for one account only, and may be different a moment later.
  reply.header('Cache-Control', 'no-store')
  const { config: route, url: pattern } = request.routeOptions
  if (route?.public) {
    await waitForTurn(reply, limiter, policies.others, address)
    return
  }
  if (route?.confirmsCaller) request.lookUpCaller = () => lookUpCaller(guard, request, reply)
  const cached = route?.confirmsCaller ? guard.findCached(request.headers.authorization) : undefined
  // The refusal of a cached caller may be out of date.
  if (cached !== undefined && refusalOf(cached, request) === undefined) {
    request.caller = cached
    request.isCached = true
  } else await lookUpCaller(guard, request, reply)
  // The pattern is the same however the caller spells the path. An unknown path has no pattern.
  const policy = policies[OWN_LIMITS[`${request.method} ${pattern}`] ?? 'others']
  await waitForTurn(reply, limiter, policy, `${address} ${callerOf(request).integrationKey}`)
  checkRights(request)
  if (hasEmptyParameter(request)) unknownRoute(request)
}

async function lookUpCaller(guard: Guard, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { authenticate, noteUse, limiter, policies } = guard
  request.isCached = false
  request.caller = await authenticate(request.headers.authorization)
  if (request.caller !== undefined) {
    noteUse(request.caller.integrationKey)
    return
  }
  // Only wrong credentials count towards this limit. Right ones always pass, so a neighbour behind the same address locks nobody out.
  await waitForTurn(reply, limiter, policies.wrongCredentials, addressOf(request))
  throw new ApiError('RCS_UNAUTHORIZED', { details: WRONG_CREDENTIALS })
}

/** Throws if the key or the account may not do what the request asks for. */
export function checkRights(request: FastifyRequest): void {
  const refusal = refusalOf(callerOf(request), request)
  if (refusal !== undefined) throw refusal
}

/** The reasons for 403 that need no body, in their order. An unknown route needs no scope. */
function refusalOf({ addresses, isSuspended, scopes, modules }: Caller, request: FastifyRequest): ApiError | undefined {
  const { ip, routeOptions } = request
  const scope = hasEmptyParameter(request) ? undefined : routeOptions.config?.scope
  const refuse = (code: ErrorCode, reason: string) => new ApiError(code, { details: [{ path: '', reason }] })
  if (addresses !== null && !isAllowedAddress(addresses, ip)) {
    return refuse('RCS_ADDRESS_NOT_ALLOWED', `The request comes from ${plainAddress(ip)}, which is not among the addresses of the key.`)
  }
  if (isSuspended) return refuse('RCS_ACCOUNT_SUSPENDED', 'The operator has suspended the account; nothing of it is sent meanwhile.')
  if (scopes !== null && scope !== undefined && !scopes.includes(scope)) {
    return refuse('RCS_SCOPE', `The request needs the scope ${scope}; the key has ${scopes.join(', ')}.`)
  }
  return modules.includes('rcs') ? undefined : refuse('RCS_MODULE_NOT_AVAILABLE', 'The account does not have the module rcs.')
}

export async function waitForTurn(reply: FastifyReply, limiter: Limiter, policy: Policy, subject: string): Promise<void> {
  const result = await limiter(policy, subject)
  applyLimit(reply, policy, result)
  // Timers fire up to a millisecond early.
  const turn = performance.now() + result.waitMs
  for (let left = result.waitMs; left > 0; left = turn - performance.now()) await sleep(Math.ceil(left))
}

/** The account that every query of a guarded route is bound to. */
export function callerOf(request: FastifyRequest): Caller {
  if (request.caller === undefined) throw new Error('a route outside the guard asked for its caller')
  return request.caller
}
