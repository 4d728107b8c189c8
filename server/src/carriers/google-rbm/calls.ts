import type { Logger } from 'pino'
import { type AccessTokens, createAccessTokens } from './access-token.ts'
import { type IsOurs, type Verdict, verdictOf } from './answers.ts'
import { type Circuit, createCircuit, type Pass, retryAfterMs } from './circuit.ts'
import { ANSWER_MS, type Answer, createHttp, type Http, NotSent, type Request } from './http.ts'
import type { GoogleRbmSettings } from './settings.ts'

// Requests to the network: with a token, within a time, and not while it asks to be left alone.

/** The verdict on an answer, or on there being none. */
export type Attempt =
  | Extract<Verdict, { is: 'sent' | 'refused' }>
  | { is: 'not-asked'; afterMs: number }
  | (Extract<Verdict, { is: 'again' | 'unknown' }> & { afterMs: number })

export type Calls = {
  /** Something is to happen at the network. Never throws: whatever goes wrong is an outcome. */
  attempt: (request: Request, about: { messageId: string; agentId: string }, isOurs: IsOurs) => Promise<Attempt>
  /** Something is to be known. Undefined where there was no answer. */
  ask: (agentId: string, request: Request) => Promise<Answer | undefined>
  /** Throws where the network gives us no access token. */
  authorise: () => Promise<unknown>
  pausedForMs: (agentId: string) => number
  close: () => Promise<void>
}

// A token that is refused is renewed and the call made again, where that leaves a caller waiting no longer than this in all.
const SECOND_TRY_WITHIN_MS = 5_000
/** The second token and the second call, and a second for a busy process. */
export const LONGEST_CALL_MS = SECOND_TRY_WITHIN_MS + 2 * ANSWER_MS + 1_000
const DENIED_EVERY_MS = 60_000

export function createCalls({ address, connections, serviceAccount }: GoogleRbmSettings, logger: Logger): Calls {
  const http = createHttp(address, connections)
  const tokenHttp = createHttp(new URL(serviceAccount.token_uri).origin, 1)
  const tokens = createAccessTokens(serviceAccount, tokenHttp)
  // Sending and looking up have limits of their own, and so has every agent.
  let isClosing = false
  const circuitOf = createCircuits(logger, () => isClosing)
  const noteDenial = createDenialLog(logger)

  return {
    attempt: async (request, { messageId, agentId }, isOurs) => {
      const way = circuitOf('messages', agentId).enter()
      if (way.is === 'closed') return { is: 'not-asked', afterMs: way.waitMs }
      const { pass } = way
      try {
        const answer = await authorised(http, tokens, request)
        const verdict = verdictOf(answer, messageId, isOurs)
        if (answer.status === 403) noteDenial(agentId)
        if (verdict.is === 'again' || verdict.is === 'unknown') {
          return { ...verdict, afterMs: failedBy(pass, answer) }
        }
        pass.succeeded()
        return verdict
      } catch (error) {
        const { message } = error as Error
        return { is: error instanceof NotSent ? 'again' : 'unknown', afterMs: pass.failed(0, message), detail: message }
      }
    },
    ask: async (agentId, request) => {
      const way = circuitOf('look-ups', agentId).enter()
      if (way.is === 'closed') return undefined
      try {
        const answer = await authorised(http, tokens, request)
        if (answer.status === 403) noteDenial(agentId)
        if (answer.status === 401 || answer.status === 429 || answer.status >= 500) failedBy(way.pass, answer)
        else way.pass.succeeded()
        return answer
      } catch (error) {
        way.pass.failed(0, (error as Error).message)
        return undefined
      }
    },
    pausedForMs: (agentId) => circuitOf('messages', agentId).closedForMs(),
    authorise: () => tokens.renew(),
    close: async () => {
      isClosing = true
      await Promise.all([http.close(), tokenHttp.close()])
    },
  }
}

/** Its status alone is for the log: the network's own words may quote the message. */
function failedBy(pass: Pass, { status, headers }: Answer): number {
  return pass.failed(retryAfterMs(headers['retry-after']), `it answered ${status}`)
}

/** With an access token, and with a new one where the network does not take the first: tokens can be withdrawn before their time. */
async function authorised(http: Http, tokens: AccessTokens, request: Request): Promise<Answer> {
  const startedAt = performance.now()
  const token = tokens.current() ?? (await renewInTime(tokens))
  const answer = await http.call({ ...request, headers: { authorization: `Bearer ${token}` } })
  if (answer.status !== 401) return answer
  tokens.discard(token)
  if (performance.now() - startedAt > SECOND_TRY_WITHIN_MS) return answer
  const another = tokens.current() ?? (await renewInTime(tokens))
  return await http.call({ ...request, headers: { authorization: `Bearer ${another}` } })
}

async function renewInTime(tokens: AccessTokens): Promise<string> {
  const { promise: tooLate, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error('no access token in time')), ANSWER_MS)
  try {
    return await Promise.race([tokens.renew(), tooLate])
  } catch (error) {
    throw new NotSent((error as Error).message)
  } finally {
    clearTimeout(timer)
  }
}

/** Calls that we end ourselves say nothing about the network. */
function createCircuits(logger: Logger, isClosing: () => boolean): (kind: 'messages' | 'look-ups', agentId: string) => Circuit {
  const circuits = new Map<string, Circuit>()
  return (kind, agentId) => {
    const key = `${kind} ${agentId}`
    let circuit = circuits.get(key)
    if (circuit === undefined) {
      circuit = createCircuit((pauseMs, reason) => {
        if (isClosing()) return
        if (pauseMs > 0) logger.warn({ agentId, pauseMs: Math.round(pauseMs), reason }, `the network fails: ${kind} pause`)
        else logger.info({ agentId }, `the network answers again: ${kind} go on`)
      })
      circuits.set(key, circuit)
    }
    return circuit
  }
}

/** One line a minute for each agent, however many messages it is. */
function createDenialLog(logger: Logger): (agentId: string) => void {
  const loggedAt = new Map<string, number>()
  return (agentId) => {
    const now = performance.now()
    if (now - (loggedAt.get(agentId) ?? -DENIED_EVERY_MS) < DENIED_EVERY_MS) return
    loggedAt.set(agentId, now)
    logger.error({ agentId }, 'the network denies this agent: is it launched there, and may this service account use it?')
  }
}
