import type { Outcome, Refusal } from '../carrier.ts'
import { fieldsOf, isObject } from '../json.ts'
import type { Response } from './http.ts'

// What the network's responses mean.

/** By HTTP status. Any other status is not permanent: an undocumented response must not fail a message. */
const REFUSED = new Map<number, Refusal>([
  [400, 'REJECTED'],
  // The agent is not launched on the recipient's network, or the service account has no access to it. Google documents 403 in one place and
  // 404 in another.
  [403, 'NOT_REACHABLE'],
  [404, 'NOT_REACHABLE'],
  [413, 'REJECTED'],
])

const REQUEST_TIMEOUT = 408

export type CallResult =
  | Extract<Outcome, { is: 'sent' }>
  | (Extract<Outcome, { is: 'refused' }> & { status: number })
  /** The circuit decides the delay. */
  | { is: 'again'; detail: string }
  | { is: 'unknown'; detail: string }

/** Whether a body is the API's response to the request, and not that of a proxy. */
export type IsExpected = (body: Record<string, unknown>) => boolean

export function resultOf(response: Response, carrierMessageId: string, isExpected: IsExpected): CallResult {
  const { status, body } = response
  const isSuccess = status >= 200 && status < 300
  if (isSuccess && isObject(body) && body.error === undefined && isExpected(body)) return { is: 'sent', carrierMessageId }
  // Not documented, but unambiguous: the network already has a message with this id.
  if (status === 409 && errorOf(body).status === 'ALREADY_EXISTS') return { is: 'sent', carrierMessageId }
  const detail = detailOf(response)
  const reason = REFUSED.get(status)
  if (reason !== undefined && isRefusal(response)) return { is: 'refused', reason, detail, status }
  const mayHaveHappened = status >= 500 || status === REQUEST_TIMEOUT || isSuccess
  return { is: mayHaveHappened ? 'unknown' : 'again', detail }
}

/** Without Google's error body the response is not the API's, but that of a proxy or of a wrong address in the settings. */
export function isRefusal({ status, body }: Response): boolean {
  return errorOf(body).code === status
}

function errorOf(body: unknown): Record<string, unknown> {
  return fieldsOf(fieldsOf(body).error)
}

const DETAIL_MAX_LENGTH = 500

function detailOf({ status, body }: Response): string {
  const { status: code, message } = errorOf(body)
  return [status, code, message]
    .filter((part) => part !== undefined)
    .join(' ')
    .slice(0, DETAIL_MAX_LENGTH)
}
