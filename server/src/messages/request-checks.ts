import type { FastifyRequest } from 'fastify'
import { fieldsOf } from '../content/untrusted.ts'
import type { Pool } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { callerOf } from '../http/guard.ts'
import { type Endpoint, wasAccepted } from './accept.ts'
import { requestHash } from './request-hash.ts'
import { prepareMessage } from './schemas.ts'

// Checks that no schema can express, for requests to send a message or a campaign.

/** Runs before the body is validated. A request that was accepted while the account had the module still gets its response. */
export async function checkSmsModule(pool: Pool, endpoint: Endpoint, request: FastifyRequest): Promise<void> {
  if (fieldsOf(request.body).smsFallback === undefined) return
  if (request.isCached) await request.lookUpCaller?.()
  const { accountId, modules } = callerOf(request)
  if (modules.includes('sms')) return
  const [key, second] = keysOf(request)
  const { value } = prepareMessage(request.body)
  if (key !== undefined && second === undefined && (await wasAccepted(pool, accountId, endpoint, key, requestHash(value)))) return
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
