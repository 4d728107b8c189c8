import type { FastifyInstance, FastifyRequest } from 'fastify'
import { unavailable } from './error-answers.ts'

// Bodies are kept until they are whole, for up to 30 s from a client that sends slowly. All of them together have a budget.

// A thousand of the largest. Bodies of the usual size need none of it.
const BUDGET_BYTES = 256 * 1024 * 1024
const SMALL_BYTES = 16 * 1024

/** Refuses a body (503) while those under way fill the budget. Call it for every server of the process with the same `budget`. */
export function limitBodies(app: FastifyInstance, budget: { leftBytes: number }): void {
  app.addHook('preParsing', (request, reply, _payload, done) => {
    const bytes = expectedBytes(request, app.initialConfig.bodyLimit ?? 0)
    // The client of a request that is closed by now has gone, and no event would give its share back.
    if (bytes <= SMALL_BYTES || request.raw.destroyed || reply.raw.closed) {
      done()
      return
    }
    if (bytes > budget.leftBytes) {
      done(unavailable('The service is receiving as many large bodies as it has room for.'))
      return
    }
    budget.leftBytes -= bytes
    let isHeld = true
    function release(): void {
      if (isHeld) budget.leftBytes += bytes
      isHeld = false
    }
    request.raw.once('close', release)
    reply.raw.once('close', release)
    done()
  })
}

export function createBodyBudget(): { leftBytes: number } {
  return { leftBytes: BUDGET_BYTES }
}

/** A body of unknown length counts as the largest that is allowed; a longer one is refused by its length. */
function expectedBytes({ headers }: FastifyRequest, limitBytes: number): number {
  if (headers['transfer-encoding'] !== undefined) return limitBytes
  return Math.min(Number(headers['content-length'] ?? 0), limitBytes)
}
