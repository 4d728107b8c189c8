import type { Logger } from 'pino'
import { retryAfterMs } from '../../outbound/retry-after.ts'
import type { RevokeResult, SendResult } from '../carrier.ts'
import { type AccessTokens, createAccessTokens } from './access-token.ts'
import { type Circuit, createCircuit, type Pass } from './circuit.ts'
import { createHttp, type Http, NotSent, RESPONSE_TIMEOUT_MS, type Request, type Response } from './http.ts'
import type { GoogleRbmSettings } from './settings.ts'

// Makes requests to the network, with an access token and a timeout. While the circuit is paused, it makes none.

type Unsent = Extract<SendResult, { is: 'retry' | 'unknown' | 'not-tried' }>

type Calls = {
  /**
   * Makes a request that changes something at the network. `resultOf` turns a response into a result. Never throws: every failure is a result.
   */
  attempt: <Result extends SendResult | RevokeResult>(
    request: Request,
    agentId: string,
    resultOf: (response: Response) => Result,
  ) => Promise<Result | Unsent>
  /** Makes a request that only reads. Returns undefined if there was no response. */
  ask: (agentId: string, request: Request) => Promise<Response | undefined>
  /** Gets an access token, or throws. */
  authorise: () => Promise<unknown>
  pausedForMs: (agentId: string) => number
  /** Whether the messages of an agent are paused after failures. */
  isAnyPaused: () => boolean
  close: () => Promise<void>
}

// After a 401 the token is renewed and the call repeated, but only within this time of its start.
const RETRY_WITHIN_MS = 5_000
/** The time up to the retry, its token, its call, and one second for a busy process. */
export const LONGEST_CALL_MS = RETRY_WITHIN_MS + 2 * RESPONSE_TIMEOUT_MS + 1_000
const DENIAL_LOG_INTERVAL_MS = 60_000
// Look-ups have connections of their own: callers can ask for many, and messages must not wait for them.
const LOOK_UP_CONNECTIONS = 8

export function createCalls({ address, connections, serviceAccount }: GoogleRbmSettings, logger: Logger): Calls {
  const http = createHttp(address, connections)
  const lookUpHttp = createHttp(address, Math.min(connections, LOOK_UP_CONNECTIONS))
  const tokenHttp = createHttp(new URL(serviceAccount.token_uri).origin, 1)
  const tokens = createAccessTokens(serviceAccount, tokenHttp)
  // Google has separate limits for messages and look-ups, and for each agent. Each combination has its own circuit.
  let isClosing = false
  const circuits = new Map<string, Circuit>()
  const circuitOf = createCircuits(circuits, logger, () => isClosing)
  const logDenial = createDenialLogger(logger)

  return {
    attempt: async (request, agentId, resultOf) => {
      const entry = circuitOf('messages', agentId).enter()
      if (entry.is === 'paused') return { is: 'not-tried', afterMs: entry.waitMs }
      const { pass } = entry
      try {
        const response = await authorised(http, tokens, request)
        if (response.status === 403) logDenial(agentId)
        const result = resultOf(response)
        if ('afterMs' in result) return { ...result, afterMs: failedBy(pass, response) }
        pass.succeeded()
        return result
      } catch (error) {
        const { message } = error as Error
        return { is: error instanceof NotSent ? 'retry' : 'unknown', afterMs: pass.failed(0, message), detail: message }
      }
    },
    ask: async (agentId, request) => {
      const entry = circuitOf('look-ups', agentId).enter()
      if (entry.is === 'paused') return undefined
      try {
        const response = await authorised(lookUpHttp, tokens, request)
        if (response.status === 403) logDenial(agentId)
        if (response.status === 401 || response.status === 429 || response.status >= 500) failedBy(entry.pass, response)
        else entry.pass.succeeded()
        return response
      } catch (error) {
        entry.pass.failed(0, (error as Error).message)
        return undefined
      }
    },
    pausedForMs: (agentId) => circuitOf('messages', agentId).pausedForMs(),
    isAnyPaused: () => circuits.entries().some(([key, circuit]) => key.startsWith('messages ') && circuit.isOpen()),
    authorise: () => tokens.renew(),
    close: async () => {
      isClosing = true
      await Promise.all([http.close(), lookUpHttp.close(), tokenHttp.close()])
    },
  }
}

/** Logs the status only: the network's own text may quote the message. */
function failedBy(pass: Pass, { status, headers }: Response): number {
  return pass.failed(retryAfterMs(headers['retry-after']), `HTTP ${status}`)
}

/** Adds an access token. After a 401 it tries once more with a new one, since a token can be revoked before its expiry. */
async function authorised(http: Http, tokens: AccessTokens, request: Request): Promise<Response> {
  const startedAt = performance.now()
  const token = tokens.current() ?? (await renewInTime(tokens))
  const response = await http.call({ ...request, headers: { authorization: `Bearer ${token}` } })
  if (response.status !== 401) return response
  tokens.discard(token)
  if (performance.now() - startedAt > RETRY_WITHIN_MS) return response
  const newToken = tokens.current() ?? (await renewInTime(tokens))
  return await http.call({ ...request, headers: { authorization: `Bearer ${newToken}` } })
}

async function renewInTime(tokens: AccessTokens): Promise<string> {
  const { promise: tooLate, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error('no access token in time')), RESPONSE_TIMEOUT_MS)
  try {
    return await Promise.race([tokens.renew(), tooLate])
  } catch (error) {
    throw new NotSent((error as Error).message)
  } finally {
    clearTimeout(timer)
  }
}

/** Calls aborted by closing say nothing about the network, so they are not logged. */
function createCircuits(
  circuits: Map<string, Circuit>,
  logger: Logger,
  isClosing: () => boolean,
): (kind: 'messages' | 'look-ups', agentId: string) => Circuit {
  return (kind, agentId) => {
    const key = `${kind} ${agentId}`
    let circuit = circuits.get(key)
    if (circuit === undefined) {
      circuit = createCircuit((pauseMs, reason) => {
        if (isClosing()) return
        if (pauseMs > 0) logger.warn({ agentId, pauseMs: Math.round(pauseMs), reason }, `the RCS network is failing: ${kind} paused`)
        else logger.info({ agentId }, `the RCS network responds again: ${kind} resumed`)
      })
      circuits.set(key, circuit)
    }
    return circuit
  }
}

/** Logs at most one line a minute for each agent. */
function createDenialLogger(logger: Logger): (agentId: string) => void {
  const loggedAt = new Map<string, number>()
  return (agentId) => {
    const now = performance.now()
    if (now - (loggedAt.get(agentId) ?? -DENIAL_LOG_INTERVAL_MS) < DENIAL_LOG_INTERVAL_MS) return
    loggedAt.set(agentId, now)
    logger.error({ agentId }, 'the RCS network denies this agent: check that it is launched there and that the service account may use it')
  }
}
