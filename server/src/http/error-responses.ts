import { randomFillSync } from 'node:crypto'
import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { isUnavailable } from '../db/pool.ts'
import { ApiError, ERRORS, type ErrorCode } from '../errors.ts'
import { Refusal } from '../refusal.ts'
import { refTo } from '../schemas.ts'
import { HSTS } from '../tls.ts'
import { logOf } from './log.ts'

export const ViolationList = Type.Array(
  Type.Object(
    {
      path: Type.String({
        description: 'Where: a JSON pointer into the body, or /name for a parameter; empty for the request as a whole.',
      }),
      reason: Type.String({ description: 'What is wrong, or what would be right.' }),
    },
    { additionalProperties: false },
  ),
)

export const ErrorBody = Type.Object(
  {
    statusCode: Type.Integer({ description: 'The HTTP status.' }),
    code: Type.String({ description: 'A stable code; docs/errors.md lists them.' }),
    message: Type.String({ description: 'Repeats the code.' }),
    requestId: Type.String({ description: 'The same as the header X-Request-Id; quote it when you ask for help.' }),
    details: Type.Optional(ViolationList),
  },
  { $id: 'Error', additionalProperties: false },
)

/** The codes that every route of the API for callers can return. */
const EVERYWHERE: ErrorCode[] = [
  'RCS_INVALID_REQUEST',
  'RCS_UNAUTHORIZED',
  'RCS_ADDRESS_NOT_ALLOWED',
  'RCS_ACCOUNT_SUSPENDED',
  'RCS_SCOPE',
  'RCS_MODULE_NOT_AVAILABLE',
  'RCS_RATE_LIMITED',
  'RCS_INTERNAL',
  'RCS_UNAVAILABLE',
]

/** The response schemas of a route's errors: the given codes, and the codes that every route can return. */
export const errorResponses = (...codes: ErrorCode[]) => responsesOf([...EVERYWHERE, ...codes])

/** The response schemas of these errors, by status. */
export function responsesOf(codes: ErrorCode[]): Record<number, { description: string }> {
  const byStatus = Object.groupBy(new Set(codes), (code) => ERRORS[code].status)
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, codesOfStatus = []]) => {
      const description = codesOfStatus.map((code) => `\`${code}\`: ${ERRORS[code].when}`).join('\n\n')
      return [status, { description, content: { 'application/json': { schema: refTo(ErrorBody) } } }]
    }),
  )
}

const RETRY_AFTER_SECONDS = '1'
export const JSON_TYPE = 'application/json; charset=utf-8'

/** Turns every thrown error into a response of the documented form. */
export function handleErrors(app: FastifyInstance): void {
  app.addSchema(ErrorBody)
  app.setErrorHandler((error, request, reply) =>
    sendError(
      callersError(error, () => logOf(request)),
      request,
      reply,
    ),
  )
}

/** Returns the error for the caller. Logs faults of the service, and why the database is out of reach; callers' mistakes are not logged. */
export function callersError(error: unknown, log: () => FastifyBaseLogger): ApiError {
  const known = toApiError(error)
  if (known === undefined) log().error({ err: error }, 'a request failed')
  else if (known !== error && known.code === 'RCS_UNAVAILABLE') log().warn({ err: error }, 'the database is out of reach')
  return known ?? new ApiError('RCS_INTERNAL')
}

function sendError(error: ApiError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status } = ERRORS[error.code]
  // Fastify closes the connection if a body is too large. The client, still writing, would then see a reset instead of the response. If the
  // connection stays open, Node reads the rest and discards it, until the request times out.
  if (status === 413) reply.removeHeader('connection')
  reply.header('X-Request-Id', request.id)
  return reply.code(status).headers(error.headers).type(JSON_TYPE).send(errorBody(error, request.id))
}

export function errorBody({ code, details }: ApiError, requestId: string): Static<typeof ErrorBody> {
  return { statusCode: ERRORS[code].status, code, message: code, requestId, ...(details && { details }) }
}

function toApiError(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error
  if (error instanceof Refusal) return error.asApiError
  // The client disconnected in the middle of its body. This check comes first: a lost connection to the database has the same code.
  if (isAborted(error)) return new ApiError('RCS_INVALID_REQUEST')
  if (isUnavailable(error)) return unavailable('The database is out of reach, or does not respond in time.')
  switch ((error as { code?: string }).code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new ApiError('RCS_PAYLOAD_TOO_LARGE')
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return unsupportedType()
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new ApiError('RCS_INVALID_REQUEST', { details: [{ path: '', reason: 'Content-Length does not match the body' }] })
    default:
      return undefined
  }
}

function isAborted(error: unknown): boolean {
  return error instanceof Error && error.message === 'aborted' && (error as NodeJS.ErrnoException).code === 'ECONNRESET'
}

export function unavailable(reason: string): ApiError {
  return new ApiError('RCS_UNAVAILABLE', { headers: { 'Retry-After': RETRY_AFTER_SECONDS }, details: [{ path: '', reason }] })
}

export function unsupportedType(expected = 'application/json'): ApiError {
  return new ApiError('RCS_UNSUPPORTED_MEDIA_TYPE', { details: [{ path: '', reason: `Content-Type must be ${expected}` }] })
}

/** The first check of every request. The health checks are served even while the process shuts down. */
export function entryProblem({ url, headers, httpVersion }: IncomingMessage, isStopping: boolean): ApiError | undefined {
  if (isStopping && url !== '/healthz' && url !== '/readyz') return unavailable('The service is shutting down.')
  if (headers.host !== undefined || httpVersion !== '1.1') return undefined
  return new ApiError('RCS_INVALID_REQUEST', { details: [{ path: '', reason: 'The header Host is missing.' }] })
}

const ID_BYTES = 16
// Random bytes for 256 ids at a time: an id takes 0.2 µs, where a UUID without its hyphens takes 1 µs.
const randomPool = Buffer.alloc(256 * ID_BYTES)
let poolAt = randomPool.length

export function newRequestId(): string {
  if (poolAt === randomPool.length) {
    randomFillSync(randomPool)
    poolAt = 0
  }
  poolAt += ID_BYTES
  return `req_${randomPool.toString('hex', poolAt - ID_BYTES, poolAt)}`
}

const responded = new WeakSet<Socket>()
const LINGER_MS = 2_000

/** Responds to bytes that are not a complete HTTP request. There is no request object yet, so this writes the response to the socket. */
export function respondToBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  // Every further chunk of a broken request is a further error.
  if (responded.has(socket)) return
  responded.add(socket)
  // On CONNECT, Node has removed its listeners from the socket; an error event without a listener would end the process.
  socket.on('error', () => {})
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const code = BROKEN_REQUESTS[error.code ?? ''] ?? 'RCS_INVALID_REQUEST'
  const requestId = newRequestId()
  const body = JSON.stringify(errorBody(new ApiError(code), requestId))
  const head = [
    `HTTP/1.1 ${ERRORS[code].status} ${STATUS_CODES[ERRORS[code].status]}`,
    `Content-Type: ${JSON_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Connection: close',
    ...(socket instanceof TLSSocket ? [`${HSTS.name}: ${HSTS.value}`] : []),
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  // Closing while the client still writes would reset the connection, and the client might never see the response.
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}

const BROKEN_REQUESTS: Record<string, ErrorCode> = {
  HPE_HEADER_OVERFLOW: 'RCS_HEADERS_TOO_LARGE',
  ERR_HTTP_REQUEST_TIMEOUT: 'RCS_REQUEST_TIMEOUT',
  ERR_TLS_HANDSHAKE_TIMEOUT: 'RCS_REQUEST_TIMEOUT',
}
