import type { FastifyRequest } from 'fastify'
import { fieldsOf } from '../content/untrusted.ts'
import type { Pool } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { callerOf } from '../http/guard.ts'
import { type Endpoint, wasAccepted } from './accept.ts'
import { requestHash } from './request-hash.ts'
import { type MessageRequest, prepareMessage } from './schemas.ts'
import { type Fallback, fallbackOf } from './sms-fallback.ts'

// Checks and steps of requests to send a message or a campaign that no schema can express.

declare module 'fastify' {
  interface FastifyRequest {
    /** The body before values were put into it. */
    received: unknown
  }
}

/** Keeps the body as received: validation replaces the variables in it. */
export async function keepReceived(request: FastifyRequest): Promise<void> {
  request.received = request.body
}

/** Hashes the body as received, so that a retry matches even if a later version of Herald renders variables differently. */
export const hashOf = (request: FastifyRequest) => requestHash(request.received)

/** The fallback of a request. Its text is measured with its values, so violations name the variables. */
export function fallbackOfRequest(request: { body: WithFallback; received: unknown }, publicUrl: string | undefined): Fallback | undefined {
  const { smsFallback, smsFallbackAfterExpiry, sendAt } = request.body
  if (smsFallback === undefined) return undefined
  const fallback = fallbackOf(smsFallback, smsFallbackAfterExpiry, publicUrl, sendAt)
  if (fallback.violations.length === 0) return fallback
  return { ...fallback, violations: prepareMessage(request.received).explain(fallback.violations) }
}

type WithFallback = Pick<MessageRequest, 'smsFallback' | 'smsFallbackAfterExpiry' | 'sendAt'>

/** Runs before the body is validated. A request that was accepted while the account had the module still gets its response. */
export async function checkSmsModule(pool: Pool, endpoint: Endpoint, request: FastifyRequest): Promise<void> {
  if (fieldsOf(request.body).smsFallback === undefined) return
  if (request.isCached) await request.lookUpCaller?.()
  const { accountId, modules } = callerOf(request)
  if (modules.includes('sms')) return
  const [key, second] = keysOf(request)
  if (key !== undefined && second === undefined && (await wasAccepted(pool, accountId, endpoint, key, hashOf(request)))) return
  const details = [{ path: '/smsFallback', reason: 'requires the module sms, which the account does not have' }]
  throw new ApiError('RCS_MODULE_NOT_AVAILABLE', { details })
}

/** Node joins duplicate headers into one value, so read the raw headers. */
function keysOf({ raw }: FastifyRequest): string[] {
  return raw.rawHeaders.filter((_text, index, all) => index % 2 === 1 && all[index - 1]?.toLowerCase() === 'idempotency-key')
}

export function idempotencyKey(request: FastifyRequest): string {
  const [key = '', second] = keysOf(request)
  if (second === undefined) return key
  throw new ApiError('RCS_IDEMPOTENCY_KEY_REQUIRED', { details: [{ path: '/idempotency-key', reason: 'must appear exactly once' }] })
}
