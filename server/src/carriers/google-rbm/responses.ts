import type { RevokeResult, SendResult } from '../carrier.ts'
import { meaningOf } from '../errors.ts'
import { fieldsOf, isObject } from '../json.ts'
import type { Response } from './http.ts'

// Turns the network's responses into results. The circuit sets the delay of a retry.

const REQUEST_TIMEOUT = 408

export function sendResult(response: Response, messageId: string): SendResult {
  const { status, body } = response
  // The network's response contains the message's name. A response with status 200 and without it comes from something else, such as a proxy.
  const { name } = fieldsOf(body)
  const isAccepted = isSuccess(response) && typeof name === 'string' && name.includes(messageId)
  // Not documented, but unambiguous: the network already has a message with this id.
  const isKnown = status === 409 && errorOf(body).status === 'ALREADY_EXISTS'
  return isAccepted || isKnown ? { is: 'sent', carrierMessageId: messageId } : failureOf(response)
}

export function revokeResult(response: Response): RevokeResult {
  if (isSuccess(response)) return { is: 'accepted' }
  const failure = failureOf(response)
  return response.status === 404 && failure.is === 'failed' ? { is: 'too-late' } : failure
}

function failureOf(response: Response): Extract<SendResult, { is: 'failed' | 'retry' | 'unknown' }> {
  const { status } = response
  const detail = detailOf(response)
  const meaning = meaningOf('google-rbm', status)
  if (meaning !== 'RETRY' && isRefusal(response))
    return { is: 'failed', reason: meaning, detail, ...(status === 404 && { hasNoRcs: true }) }
  const mayHaveHappened = status >= 500 || status === REQUEST_TIMEOUT || isOk(status)
  return { is: mayHaveHappened ? 'unknown' : 'retry', afterMs: 0, detail }
}

function isOk(status: number): boolean {
  return status >= 200 && status < 300
}

function isSuccess({ status, body }: Response): boolean {
  return isOk(status) && isObject(body) && body.error === undefined
}

/** Whether the API refused the request. A response without Google's error body comes from a proxy, or from a wrong address in the settings. */
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
