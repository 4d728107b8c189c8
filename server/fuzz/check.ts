import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { type ApiDocument, ERROR_POINTER, type Operation } from './document.ts'
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
export function createCheck(document: ApiDocument, secrets: string[]): Check {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema(document as object, 'document')
  const validators = new Map<string, ValidateFunction>()
  function validatorOf(pointer: string): ValidateFunction {
    const known = validators.get(pointer) ?? ajv.compile({ $ref: `document#${encodeURI(pointer)}` })
    validators.set(pointer, known)
    return known
  }
  const mismatch = (pointer: string, json: unknown) => {
    const validate = validatorOf(pointer)
    return validate(json) ? [] : [`the body does not match its schema: ${ajv.errorsText(validate.errors).slice(0, 300)}`]
  }

  return (request, response) => {
    const { status, isHang, tookMs } = response
    if (isHang) return [`hang: no response after ${Math.round(tookMs)} ms`]
    if (status === undefined) return request.isRaw ? [] : ['the connection ended without a response']
    return [
      ...statusProblems(request, status),
      ...accessProblems(request, response),
      ...headProblems(response),
      ...leaks(response, secrets),
      ...(request.method === 'HEAD' ? [] : bodyProblems(request, response, mismatch)),
    ]
  }
}

type Mismatch = (pointer: string, json: unknown) => string[]

function bodyProblems({ operation, isIntact }: FuzzRequest, response: Response, mismatch: Mismatch): string[] {
  const { status = 0, json } = response
  if (status >= 400) return errorProblems(operation, response, mismatch)
  const pointer = isIntact ? operation.responses.get(status) : undefined
  return pointer === undefined ? [] : mismatch(pointer, json)
}

function statusProblems({ operation, isIntact }: FuzzRequest, status: number): string[] {
  if (status >= 500) return [`status ${status}`]
  return isIntact && !operation.responses.has(status) ? [`status ${status} is not documented for ${operation.id}`] : []
}

const FRONT_PAGE = /^\w+ +[/*][?# ]/
const WITHOUT_ACCOUNT = new Set(['none', 'wrong', 'broken'])

/** Without credentials nothing of the API is readable, not even which routes it has; with them, nothing of another account. */
function accessProblems(
  { operation, credentials, owner, isIntact, isRaw, bytes }: FuzzRequest,
  { status = 0, headers }: Response,
): string[] {
  if (!operation.path.startsWith('/v1/') || operation.id === 'readDocument') return []
  // A damaged path may be that of the front page, which is public. Nothing of the API is HTML.
  if (headers.get('content-type')?.startsWith('text/html') || FRONT_PAGE.test(bytes.toString('latin1', 0, 32))) return []
  const isSuccess = status < 300
  if (WITHOUT_ACCOUNT.has(credentials)) {
    return isSuccess || (status === 405 && !isRaw) ? [`status ${status} without right credentials`] : []
  }
  const isForeign = isIntact && owner !== undefined && owner !== credentials
  return isForeign && isSuccess ? [`status ${status} for what belongs to another account`] : []
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

function errorProblems({ id }: Operation, { status, json, headers }: Response, mismatch: Mismatch): string[] {
  // The page for an unknown short link.
  if (id === 'visitLink' && status === 404 && headers.get('content-type')?.startsWith('text/html')) return []
  if (json === undefined) return [`the body of an error is not JSON, but ${headers.get('content-type') ?? 'nothing'}`]
  const { statusCode, code, message, requestId } = json as ErrorBody
  return [
    ...mismatch(ERROR_POINTER, json),
    ...(statusCode === status ? [] : [`statusCode is ${statusCode}, the status ${status}`]),
    ...(message === code ? [] : ['message does not repeat the code']),
    ...(requestId === headers.get('x-request-id') ? [] : ['requestId is not X-Request-Id']),
  ]
}
