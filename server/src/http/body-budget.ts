import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { ApiError } from '../errors.ts'
import { unavailable } from './error-responses.ts'
import { addressOf } from './limits.ts'

// The service buffers a body until it is complete, which takes a slow client up to 30 s. All buffered bodies share a budget, and no account
// or address can use more than an eighth of it. Requests without credentials (carriers' webhooks) have a budget of their own.

const MIB = 1024 * 1024
const OWNERS_THAT_FILL_A_BUDGET = 8
// Bodies up to this size do not count. Most bodies are smaller.
const SMALL_BYTES = 16 * 1024

type BodyBudget = {
  /** Reserves bytes. Returns a function that releases them, or undefined if too few are left. */
  reserve: (owner: number | string, bytes: number) => (() => void) | undefined
}

export function createBodyBudget(totalBytes: number): BodyBudget {
  const shareBytes = totalBytes / OWNERS_THAT_FILL_A_BUDGET
  const held = new Map<number | string, number>()
  let leftBytes = totalBytes
  function add(owner: number | string, bytes: number): void {
    leftBytes -= bytes
    const sum = (held.get(owner) ?? 0) + bytes
    if (sum === 0) held.delete(owner)
    else held.set(owner, sum)
  }
  return {
    reserve: (owner, bytes) => {
      if (bytes > leftBytes || bytes > shareBytes - (held.get(owner) ?? 0)) return undefined
      add(owner, bytes)
      let isHeld = true
      return () => {
        if (isHeld) add(owner, -bytes)
        isHeld = false
      }
    },
  }
}

export type BodyBudgets = { accounts: BodyBudget; addresses: BodyBudget }

export function createBodyBudgets(): BodyBudgets {
  return { accounts: createBodyBudget(192 * MIB), addresses: createBodyBudget(64 * MIB) }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route reads its body as a stream, and bounds its memory itself. */
    streamsBody?: boolean
  }
}

/** Refuses a body (503) while the bodies being received fill a budget. Call this for every server of the process, with the same budgets. */
export function limitBodies(app: FastifyInstance, { accounts, addresses }: BodyBudgets): void {
  app.addHook('preParsing', (request, reply, _payload, done) => {
    const { caller, routeOptions } = request
    if (routeOptions.config?.streamsBody) return done()
    const reserve = (bytes: number) =>
      caller === undefined ? addresses.reserve(addressOf(request), bytes) : accounts.reserve(caller.accountId, bytes)
    done(reserveForBody(reserve, request.raw, reply.raw, app.initialConfig.bodyLimit ?? 0) ?? null)
  })
}

/** Reserves the bytes of a body until its request or response closes. Returns an error if too few bytes are left. */
export function reserveForBody(
  reserve: (bytes: number) => (() => void) | undefined,
  request: IncomingMessage,
  response: ServerResponse,
  limitBytes: number,
): ApiError | undefined {
  const bytes = expectedBytes(request, limitBytes)
  // If the client has disconnected already, no event would release the bytes.
  if (bytes <= SMALL_BYTES || request.destroyed || response.closed) return undefined
  const release = reserve(bytes)
  if (release === undefined) return unavailable('The service is receiving too many large bodies at once.')
  request.once('close', release)
  response.once('close', release)
  return undefined
}

/** A body of unknown length counts as the largest that is allowed. So does a body that announces more, which `readBody` refuses. */
function expectedBytes({ headers }: IncomingMessage, limitBytes: number): number {
  if (headers['transfer-encoding'] !== undefined) return limitBytes
  return Math.min(Number(headers['content-length'] ?? 0), limitBytes)
}
