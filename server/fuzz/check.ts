import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { accountOf } from './credentials.ts'
import { type ApiDocument, apiOf, ERROR_POINTER, isOfAdmin, type Operation } from './document.ts'
import type { FuzzRequest } from './generate.ts'
import type { Response } from './wire.ts'

// Rules for every response, whatever the request.

export type Check = (request: FuzzRequest, response: Response) => string[]

/** No body may contain this. */
const STACK = /\n\s+at .+:\d+:\d+|node_modules|\/server\/src\/|file:\/\//
/** No body of an error may contain this. */
const INTERNALS =
  /SQLSTATE|syntax error at or near|duplicate key value|violates .+ constraint|invalid input syntax|out of range for type|relation "|FST_ERR|ECONNREFUSED|TypeError|RangeError|undefined is not|Cannot read prop|\bselect\b.+\bfrom\b/i

/** `secrets`: texts that no response may contain. */
export function createCheck(documents: readonly ApiDocument[], secrets: string[]): Check {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  const nameOf = (document: ApiDocument) => `document:${apiOf(document)}`
  for (const document of documents) ajv.addSchema(document as object, nameOf(document))
  const validators = new Map<string, ValidateFunction>()
  function validatorOf(reference: string): ValidateFunction {
    const known = validators.get(reference) ?? ajv.compile({ $ref: reference })
    validators.set(reference, known)
    return known
  }
  const mismatch: Mismatch = ({ document }, pointer, json) => {
    const validate = validatorOf(`${nameOf(document)}#${encodeURI(pointer)}`)
    return validate(json) ? [] : [`the body does not match its schema: ${ajv.errorsText(validate.errors).slice(0, 300)}`]
  }

  return (request, response) => {
    const { status, isHang, tookMs } = response
    if (isHang) return [`hang: no response after ${Math.round(tookMs)} ms`]
    if (status === undefined) return request.isRaw ? [] : ['the connection ended without a response']
    return [
      ...statusProblems(request, status),
      ...(isOfApi(request, response) ? [...accessProblems(request, status), ...viewerProblems(request, response)] : []),
      ...headProblems(response),
      ...leaks(response, secrets),
      ...(request.method === 'HEAD' ? [] : bodyProblems(request, response, mismatch)),
    ]
  }
}

type Mismatch = (operation: Operation, pointer: string, json: unknown) => string[]

function bodyProblems({ operation, isIntact }: FuzzRequest, response: Response, mismatch: Mismatch): string[] {
  const { status = 0, json } = response
  if (status >= 400) return errorProblems(operation, response, mismatch)
  const pointer = isIntact ? operation.responses.get(status) : undefined
  return pointer === undefined ? [] : mismatch(operation, pointer, json)
}

function statusProblems({ operation, isIntact }: FuzzRequest, status: number): string[] {
  if (status >= 500) return [`status ${status}`]
  return isIntact && !operation.responses.has(status) ? [`status ${status} is not documented for ${operation.id}`] : []
}

const FRONT_PAGE = /^\w+ +[/*][?# ]/

/** Whether the response is about something that needs credentials. A damaged path may be that of the front page. Nothing of the API is HTML. */
function isOfApi({ operation, bytes }: FuzzRequest, { headers }: Response): boolean {
  if (operation.isPublic || headers.get('content-type')?.startsWith('text/html')) return false
  return !FRONT_PAGE.test(bytes.toString('latin1', 0, 32))
}

/** Without credentials nothing of the API is readable, not even which routes it has; with them, nothing of another account. */
function accessProblems({ credentials, owner, method, isIntact, isRaw }: FuzzRequest, status: number): string[] {
  const isSuccess = status < 300
  const account = accountOf(credentials)
  if (credentials === 'none' || credentials === 'wrong' || credentials === 'broken') {
    return isSuccess || (status === 405 && !isRaw) ? [`status ${status} without right credentials`] : []
  }
  if (!isSuccess || !isIntact) return []
  if (credentials === 'crossSite' && method !== 'GET') return [`status ${status} for a change that may come from another site`]
  const isForeign = owner !== undefined && owner !== account && (account !== 'any' || owner === 'nobody')
  return isForeign ? [`status ${status} for what belongs to another account`] : []
}

/** A number in E.164, or one that the generator makes, in any form. */
const PHONE_NUMBER = /\+\d{7,15}|(\b|%2B)4850\d{7}\b/i

/** Viewers read masked phone numbers. A cursor may hide one. */
function viewerProblems({ operation, credentials }: FuzzRequest, { body, json }: Response): string[] {
  if (!isOfAdmin(operation) || credentials !== 'viewer') return []
  const { nextCursor } = (json ?? {}) as { nextCursor?: unknown }
  const texts = [body.toString(), Buffer.from(String(nextCursor ?? ''), 'base64url').toString('latin1')]
  return texts.some((text) => PHONE_NUMBER.test(text)) ? ['a whole phone number for a viewer'] : []
}

function headProblems({ headers }: Response): string[] {
  return headers.get('x-request-id') ? [] : ['X-Request-Id is missing']
}

function leaks({ status = 0, body }: Response, secrets: string[]): string[] {
  const text = body.toString('latin1')
  const found = (status >= 400 && INTERNALS.exec(text)) || STACK.exec(text)
  const secret = secrets.find((one) => text.includes(one))
  return [
    ...(found ? [`the body shows internals: ${found[0].slice(0, 100)}`] : []),
    ...(secret === undefined ? [] : ['the body holds a secret']),
  ]
}

type ErrorBody = { statusCode?: unknown; code?: unknown; message?: unknown; requestId?: unknown }

function errorProblems(operation: Operation, { status, json, headers }: Response, mismatch: Mismatch): string[] {
  // The page for an unknown short link.
  if (operation.id === 'visitLink' && status === 404 && headers.get('content-type')?.startsWith('text/html')) return []
  if (json === undefined) return [`the body of an error is not JSON, but ${headers.get('content-type') ?? 'nothing'}`]
  const { statusCode, code, message, requestId } = json as ErrorBody
  return [
    ...mismatch(operation, ERROR_POINTER, json),
    ...(statusCode === status ? [] : [`statusCode is ${statusCode}, the status ${status}`]),
    ...(message === code ? [] : ['message does not repeat the code']),
    ...(requestId === headers.get('x-request-id') ? [] : ['requestId is not X-Request-Id']),
  ]
}
