import type { Outcome, Refusal } from '../carrier.ts'
import { fieldsOf, isObject } from '../json.ts'
import type { Answer } from './http.ts'

// What the network's answers mean.

/** By status. What is not here is not final: a message is not given up for an answer that nobody has described. */
const REFUSED = new Map<number, Refusal>([
  [400, 'REJECTED'],
  // No launch on the recipient's network, or no rights on the agent; the documents say 403 in one place and 404 in the other.
  [403, 'NOT_REACHABLE'],
  [404, 'NOT_REACHABLE'],
  [413, 'REJECTED'],
])

const REQUEST_TIMEOUT = 408

export type Verdict =
  | Extract<Outcome, { is: 'sent' }>
  | (Extract<Outcome, { is: 'refused' }> & { status: number })
  /** After how long is for the circuit to say. */
  | { is: 'again'; detail: string }
  | { is: 'unknown'; detail: string }

/** Whether a body is what the API answers to a request. */
export type IsOurs = (body: Record<string, unknown>) => boolean

export function verdictOf(answer: Answer, carrierMessageId: string, isOurs: IsOurs): Verdict {
  const { status, body } = answer
  const isSuccess = status >= 200 && status < 300
  if (isSuccess && isObject(body) && body.error === undefined && isOurs(body)) return { is: 'sent', carrierMessageId }
  // Not documented, and could mean nothing else: a message with this id is there already.
  if (status === 409 && errorOf(body).status === 'ALREADY_EXISTS') return { is: 'sent', carrierMessageId }
  const detail = detailOf(answer)
  const reason = REFUSED.get(status)
  if (reason !== undefined && isRefusal(answer)) return { is: 'refused', reason, detail, status }
  const mayHaveHappened = status >= 500 || status === REQUEST_TIMEOUT || isSuccess
  return { is: mayHaveHappened ? 'unknown' : 'again', detail }
}

/** Without Google's error body it is not the API that answers, but a proxy, or the wrong address in the settings. */
export function isRefusal({ status, body }: Answer): boolean {
  return errorOf(body).code === status
}

function errorOf(body: unknown): Record<string, unknown> {
  return fieldsOf(fieldsOf(body).error)
}

const DETAIL_MAX_LENGTH = 500

function detailOf({ status, body }: Answer): string {
  const { status: code, message } = errorOf(body)
  return [status, code, message]
    .filter((part) => part !== undefined)
    .join(' ')
    .slice(0, DETAIL_MAX_LENGTH)
}
