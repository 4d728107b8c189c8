import { createHttp, type Http, type Request } from '../carriers/google-rbm/http.ts'
import type { GoogleRbmSettings } from '../carriers/google-rbm/settings.ts'
import { fieldsOf } from '../carriers/json.ts'
import { ApiError, type ErrorCode } from '../errors.ts'
import { unavailable } from '../http/error-responses.ts'

// Calls what the simulator has for its phones, beside the API of a network: /simulator/… The paths are made here, never from a request.

export const MAX_WAIT_SECONDS = 25
// A call in progress holds a connection: one of these for each phone that somebody watches.
export const FOLLOWING_CONNECTIONS = 64
const CONNECTIONS = 8
const MARGIN_MS = 10_000

type PhoneAction = { phone: string; action: string; body: object }
type History = { phone: string; agentIds: string[]; after: number | undefined; limit: number; waitSeconds: number; signal: AbortSignal }

export type Simulator = {
  listPhones: (agentIds: string[], limit: number) => Promise<unknown>
  readPhone: (phone: string, agentIds: string[]) => Promise<unknown>
  /** What a phone received and sent. If there is nothing yet, waits for it, until the signal ends that. */
  readHistory: (history: History) => Promise<unknown>
  /** The last SMS of a phone, of all accounts. */
  listSms: (phone: string, limit: number) => Promise<unknown>
  /** What the network received under this id from this agent. */
  readMessage: (agentId: string, messageId: string) => Promise<unknown>
  act: (action: PhoneAction) => Promise<unknown>
  readFaults: () => Promise<unknown>
  setFaults: (faults: object) => Promise<unknown>
  clearFaults: () => Promise<unknown>
  close: () => Promise<void>
}

export function createSimulator({ address }: Pick<GoogleRbmSettings, 'address'>): Simulator {
  const http = createHttp(address, CONNECTIONS)
  const following = createHttp(address, FOLLOWING_CONNECTIONS, MAX_WAIT_SECONDS * 1_000 + MARGIN_MS)
  const read = (path: string) => ask(http, { method: 'GET', path: `/simulator/${path}` })
  return {
    listPhones: (agentIds, limit) => read(`summary?${queryOf(agentIds, { limit })}`),
    readPhone: (phone, agentIds) => read(`phones/${phone}/summary?${queryOf(agentIds)}`),
    readHistory: ({ phone, agentIds, after, limit, waitSeconds, signal }) => {
      const query = queryOf(agentIds, { limit, waitMs: waitSeconds * 1_000, ...(after !== undefined && { after }) })
      return ask(waitSeconds > 0 ? following : http, { method: 'GET', path: `/simulator/phones/${phone}/ledger?${query}`, signal })
    },
    listSms: (phone, limit) => read(`phones/${phone}/sms?limit=${limit}`),
    readMessage: (agentId, messageId) => read(`messages/${messageId}?${queryOf([agentId])}`),
    act: ({ phone, action, body }) =>
      ask(http, { method: 'POST', path: `/simulator/phones/${phone}/${action}`, body: JSON.stringify(body) }),
    readFaults: () => read('faults'),
    setFaults: (faults) => ask(http, { method: 'PUT', path: '/simulator/faults', body: JSON.stringify(faults) }),
    clearFaults: () => ask(http, { method: 'DELETE', path: '/simulator/faults' }),
    close: async () => {
      await Promise.all([http.close(), following.close()])
    },
  }
}

function queryOf(agentIds: string[], numbers: Record<string, number> = {}): URLSearchParams {
  const query = Object.entries(numbers).map(([name, value]) => [name, String(value)])
  return new URLSearchParams([...query, ...agentIds.map((agentId) => ['agentId', agentId])])
}

/** The codes for the statuses of the simulator's errors, which are in Google's form. */
const REFUSALS: Record<string, ErrorCode> = {
  NOT_FOUND: 'RCS_NOT_FOUND',
  FAILED_PRECONDITION: 'RCS_REFUSED',
  INVALID_ARGUMENT: 'RCS_INVALID_REQUEST',
}

async function ask(http: Http, request: Request): Promise<unknown> {
  const response = await http.call(request).catch(() => {
    throw unavailable('The simulator does not respond.')
  })
  if (response.status === 200 && response.body !== undefined) return response.body
  const { status, message } = fieldsOf(fieldsOf(response.body).error)
  const code = REFUSALS[String(status)]
  if (code === undefined) throw unavailable(`The simulator responds with status ${response.status}.`)
  throw new ApiError(code, { details: [{ path: '', reason: String(message) }] })
}
