import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { ApiError, ERRORS } from '../errors.ts'
import { readBody } from './body.ts'
import { type BodyBudgets, reserveForBody } from './body-budget.ts'
import { callersError, entryProblem, errorBody, JSON_TYPE, newRequestId, unsupportedType } from './error-responses.ts'
import { isQuiet, logRequest } from './log.ts'
import type { Metrics } from './metrics.ts'
import { routableUrl, segmentsOf } from './routes.ts'
import type { DirectHandler } from './server.ts'
import type { UnreadWatch } from './unread.ts'

// A POST route on Node's own HTTP server, before Fastify sees the request. Networks send two receipts for every message, so their route is
// the busiest one: without Fastify and its hooks a receipt takes a fifth less CPU. The functions that Fastify's hooks call also run here, in
// the same order.

/** A request before its body is read. */
type DirectRequest = {
  /** The value of the path parameter. */
  parameter: string
  address: string
  raw: IncomingMessage
  response: ServerResponse
  /** A logger with the request id. It is created on first use, since creating it takes longer than most of the checks. */
  log: () => Logger
}

/** Sent with status 200. */
type DirectResponse = { headers: Record<string, string>; body: string }

type DirectRoute<Context> = {
  /** A path with one parameter, such as /carriers/:carrier/webhook. */
  pattern: string
  /** Checks the request line and the headers. Returns the error that refuses the request, or the context for `handle`. */
  enter: (request: DirectRequest) => ApiError | Context
  /** Throws an ApiError if the body can't be parsed; the connection is then closed. */
  parse: (body: Buffer) => unknown
  /** The response is sent when the promise settles. If it resolves to undefined, the body is empty. */
  handle: (context: Context, body: unknown) => Promise<DirectResponse | undefined>
}

type DirectOptions = {
  logger: Logger
  metrics: Pick<Metrics, 'countRequest'>
  unread: Pick<UnreadWatch, 'note'>
  bodies: BodyBudgets
  bodyLimit: number
  addressOf: (request: IncomingMessage) => string
  isStopping: () => boolean
}

type Exchange = DirectRequest & { id: string; options: DirectOptions }

export function createDirectHandler<Context>(route: DirectRoute<Context>, options: DirectOptions): DirectHandler {
  const parameterOf = createMatcher(route.pattern)
  return (raw, response) => {
    const parameter = raw.method === 'POST' ? parameterOf(raw.url ?? '/') : undefined
    if (parameter === undefined) return false
    const id = newRequestId()
    let log: Logger | undefined
    const exchange: Exchange = {
      parameter,
      address: options.addressOf(raw),
      raw,
      response,
      log: () => {
        log ??= options.logger.child({ requestId: id })
        return log
      },
      id,
      options,
    }
    reportEnd(route.pattern, exchange)
    serve(route, exchange)
    return true
  }
}

/** Returns a function that finds the path parameter in a URL, however the client spells it; undefined if the URL does not match. */
function createMatcher(pattern: string): (url: string) => string | undefined {
  const plain = new RegExp(`^${pattern.replace(/:\w+/, '([^/%?#]*)')}$`)
  const wanted = pattern.split('/')
  const open = wanted.findIndex((part) => part.startsWith(':'))
  return (url) => {
    const found = plain.exec(url)
    if (found !== null) return found[1]
    // A path without these characters has one spelling, which did not match. A URL with a scheme and a host does not begin with a slash.
    if (/^\/[^%?#]*$/.test(url)) return undefined
    const given = segmentsOf(routableUrl(url))
    const isSame = given.length === wanted.length && wanted.every((part, index) => index === open || part === given[index])
    return isSame ? given[open] : undefined
  }
}

/** Counts and logs the request once its response is sent. As in Fastify, a request whose client disconnects earlier is not reported. */
function reportEnd(route: string, { options: { logger, metrics }, response, log }: Exchange): void {
  const startedAt = performance.now()
  let isOver = false
  const end = () => {
    if (isOver) return
    isOver = true
    const served = { method: 'POST', route, status: response.statusCode, ms: performance.now() - startedAt }
    if (logger.isLevelEnabled(isQuiet(served) ? 'debug' : 'info')) logRequest(log(), served)
    metrics.countRequest(served)
  }
  response.on('finish', end)
  // Without a listener, an error event of the response would end the process.
  response.on('error', end)
}

function serve<Context>(route: DirectRoute<Context>, exchange: Exchange): void {
  const { raw, options } = exchange
  const context = admit(route, exchange)
  if (context instanceof ApiError) sendError(exchange, context)
  else if (hasNoBody(raw.headers)) handle(route, exchange, context, undefined)
  else {
    readBody(raw, options.bodyLimit, (error, bytes) => {
      let problem = error
      let body: unknown
      try {
        if (problem === undefined) body = route.parse(bytes)
      } catch (thrown) {
        problem = thrown
      }
      if (problem === undefined) handle(route, exchange, context, body)
      else sendError(exchange, problem, true)
    })
  }
}

/** Runs all checks that need only the request line and the headers. */
function admit<Context>(route: DirectRoute<Context>, exchange: Exchange): ApiError | Context {
  const { raw, response, address, options } = exchange
  const problem = entryProblem(raw, options.isStopping())
  if (problem !== undefined) return problem
  const context = route.enter(exchange)
  if (context instanceof ApiError) return context
  const refusal = reserveForBody((bytes) => options.bodies.addresses.reserve(address, bytes), raw, response, options.bodyLimit)
  return refusal ?? typeProblem(raw.headers) ?? context
}

function handle<Context>(route: DirectRoute<Context>, exchange: Exchange, context: Context, body: unknown): void {
  route.handle(context, body).then(
    (result) => send(exchange, 200, result?.headers, result?.body),
    (error: unknown) => sendError(exchange, error),
  )
}

function typeProblem(headers: IncomingHttpHeaders): ApiError | undefined {
  const { 'content-type': type } = headers
  if (type === 'application/json' || hasNoBody(headers)) return undefined
  return type?.replace(/;.*$/s, '').trim().toLowerCase() === 'application/json' ? undefined : unsupportedType()
}

/** Whether the headers announce neither a body nor its type. A Content-Type alone announces a body, which is then empty. */
function hasNoBody({ 'content-type': type, 'content-length': length, 'transfer-encoding': encoding }: IncomingHttpHeaders): boolean {
  return type === undefined && encoding === undefined && (length === undefined || length === '0')
}

/** `isBroken`: the body did not arrive or can't be parsed. The connection is then closed, as on every route. */
function sendError(exchange: Exchange, thrown: unknown, isBroken = false): void {
  const error = callersError(thrown, exchange.log)
  const { status } = ERRORS[error.code]
  // As for Fastify's responses: see `sendError` in error-responses.ts.
  if (status === 413) exchange.response.removeHeader('connection')
  const headers: Record<string, string> = isBroken && status !== 413 ? { connection: 'close' } : {}
  for (const [name, value] of Object.entries(error.headers)) headers[name.toLowerCase()] = value
  headers['content-type'] = JSON_TYPE
  send(exchange, status, headers, JSON.stringify(errorBody(error, exchange.id)))
}

function send({ id, address, response, options }: Exchange, status: number, headers: Record<string, string> | undefined, text = ''): void {
  const body = options.unread.note(response, address, text)
  const all: Record<string, string> = { 'x-request-id': id, ...headers }
  // Otherwise the connection would stay open for the next request, and the shutdown would wait for it.
  if (options.isStopping()) all.connection = 'close'
  all['content-length'] = String(Buffer.byteLength(body))
  response.writeHead(status, all)
  response.end(body)
}
