import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { ApiError } from '../errors.ts'
import { unavailable } from './error-answers.ts'
import { addressOf } from './limits.ts'

// Bodies are kept until they are whole, for up to 30 s from a client that sends slowly. All of them together have a budget, of which no
// account and no address can take more than its share. Requests without credentials (the events of networks) have a budget of their own.

const MIB = 1024 * 1024
const OWNERS_THAT_FILL_A_BUDGET = 8
// Bodies up to this size, which is the usual one, do not count.
const SMALL_BYTES = 16 * 1024

export type BodyBudget = {
  /** Returns a function that gives the bytes back; undefined where not enough are left. */
  take: (owner: number | string, bytes: number) => (() => void) | undefined
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
    take: (owner, bytes) => {
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

/** Refuses a body (503) while those under way fill a budget. Call it for every server of the process with the same budgets. */
export function limitBodies(app: FastifyInstance, { accounts, addresses }: BodyBudgets): void {
  app.addHook('preParsing', (request, reply, _payload, done) => {
    const { caller } = request
    const take = (bytes: number) =>
      caller === undefined ? addresses.take(addressOf(request), bytes) : accounts.take(caller.accountId, bytes)
    done(takeForBody(take, request.raw, reply.raw, app.initialConfig.bodyLimit ?? 0) ?? null)
  })
}

/** Holds the bytes of a body until its request or response closes. Returns the refusal where `take` finds too few of them left. */
export function takeForBody(
  take: (bytes: number) => (() => void) | undefined,
  request: IncomingMessage,
  response: ServerResponse,
  limitBytes: number,
): ApiError | undefined {
  const bytes = expectedBytes(request, limitBytes)
  // Where the client has gone already, no event would give its share back.
  if (bytes <= SMALL_BYTES || request.destroyed || response.closed) return undefined
  const giveBack = take(bytes)
  if (giveBack === undefined) return unavailable('The service is receiving as many large bodies as it has room for.')
  request.once('close', giveBack)
  response.once('close', giveBack)
  return undefined
}

/** A body of unknown length counts as the largest that is allowed; a longer one is refused by its length. */
function expectedBytes({ headers }: IncomingMessage, limitBytes: number): number {
  if (headers['transfer-encoding'] !== undefined) return limitBytes
  return Math.min(Number(headers['content-length'] ?? 0), limitBytes)
}
