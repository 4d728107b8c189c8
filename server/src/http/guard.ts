import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isUnavailable } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { addressOf, applyLimit, type Limiter, type Policy } from './limits.ts'

/** The account and key that a request is sent with, as far as http/ needs to know them. */
export type Caller = {
  accountId: number
  /** Changes with every change of the account. */
  accountVersion: string
  integrationKey: string
  secretHash: Buffer
  modules: string[]
}

type Guard = {
  authenticate: (authorization: string | undefined) => Promise<Caller | undefined>
  recall: (authorization: string | undefined) => Caller | undefined
  limiter: Limiter
  policies: Policies
}

type Policies = { messages: Policy; others: Policy; wrongCredentials: Policy }

const WRONG_CREDENTIALS_PER_MINUTE = 30
/** The only endpoint with a limit of its own. */
const MESSAGES = '/v1/messages'

export function createPolicies(limits: { messagesPerSecond: number; othersPerMinute: number }): Policies {
  return {
    messages: { name: 'messages', quota: limits.messagesPerSecond, windowMs: 1_000 },
    others: { name: 'default', quota: limits.othersPerMinute, windowMs: 60_000 },
    wrongCredentials: { name: 'credentials', quota: WRONG_CREDENTIALS_PER_MINUTE, windowMs: 60_000 },
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on every guarded route. */
    caller: Caller | undefined
    /** Looks the caller up, and throws if the credentials are no longer valid. Set if the caller was recalled instead of looked up. */
    confirmCaller: (() => Promise<void>) | undefined
  }
  interface FastifyContextConfig {
    /** The route's statement confirms a recalled caller, which saves the look-up. */
    confirmsCaller?: boolean
    /** Served without credentials; limited by address alone. */
    public?: boolean
  }
}

/**
 * Adds the checks that come before all others: credentials (401), limits (429), the rcs module (403). They run before the body is read, and
 * for unknown routes too, so that without credentials every path looks the same.
 */
export function guardRoutes(app: FastifyInstance, guard: Guard): void {
  app.addHook('onRequest', (request, reply) => check(guard, request, reply))
  app.setErrorHandler(async (error, request) => {
    await confirmBeforeError(request, error)
    throw error
  })
}

/**
 * Looks a recalled caller up before it gets an error, so that wrong credentials and a missing module come first, as for every caller. A 503 needs
 * no look-up: every caller gets it while the database is out of reach, and the look-up would only wait for the database.
 */
async function confirmBeforeError(request: FastifyRequest, error: unknown): Promise<void> {
  if (request.confirmCaller === undefined || isUnavailable(error)) return
  await request.confirmCaller()
  const isLimit = error instanceof ApiError && error.code === 'RCS_RATE_LIMITED'
  if (!isLimit) checkModule(request)
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
  const recalled = route?.confirmsCaller ? guard.recall(request.headers.authorization) : undefined
  if (recalled?.modules.includes('rcs')) {
    request.caller = recalled
    request.confirmCaller = () => lookUpCaller(guard, request, reply)
  } else await lookUpCaller(guard, request, reply)
  // The pattern is the same however the caller spells the path. An unknown path has no pattern.
  const isMessagePost = request.method === 'POST' && pattern === MESSAGES
  const policy = isMessagePost ? policies.messages : policies.others
  await waitForTurn(reply, limiter, policy, `${address} ${callerOf(request).integrationKey}`)
  checkModule(request)
}

async function lookUpCaller({ authenticate, limiter, policies }: Guard, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  request.confirmCaller = undefined
  request.caller = await authenticate(request.headers.authorization)
  if (request.caller !== undefined) return
  // Only wrong credentials count towards this limit. Right credentials always pass, so a caller can't lock out another one at its address.
  await waitForTurn(reply, limiter, policies.wrongCredentials, addressOf(request))
  throw new ApiError('RCS_UNAUTHORIZED', { headers: { 'WWW-Authenticate': 'Bearer' } })
}

export function checkModule(request: FastifyRequest): void {
  if (!callerOf(request).modules.includes('rcs')) throw new ApiError('RCS_MODULE_NOT_AVAILABLE')
}

async function waitForTurn(reply: FastifyReply, limiter: Limiter, policy: Policy, subject: string): Promise<void> {
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
