import { isUtf8 } from 'node:buffer'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type Drop, type HttpResponse, refusal } from './responses.ts'

export type Call = {
  method: string
  /** Still encoded: a handler decodes the parts that it uses, so that `+` and `%2B` stay different. */
  path: string
  query: URLSearchParams
  headers: IncomingHttpHeaders
  body: Buffer
}
export type Handler = (call: Call) => HttpResponse | Drop | Promise<HttpResponse | Drop>

// More than any message may have, so that a message over its limit gets Google's own error.
const MAX_BODY_BYTES = 1_048_576
// A path may name hundreds of agents.
const LIMITS = { keepAliveTimeout: 75_000, requestTimeout: 30_000, headersTimeout: 15_000, maxHeaderSize: 256 * 1024 }
const NO_BYTES = Buffer.alloc(0)

/** Uses plain node:http: there are a dozen routes, and a framework would cost a third of the request rate. */
export function createHttpServer(handle: Handler): Server {
  const server = createServer({ ...LIMITS }, (request, response) => {
    // By then Node has read the whole request. Handling it right after its headers takes an eighth more CPU time.
    setImmediate(() => readBody(request, (body) => handleRequest(handle, request, response, body)))
  })
  server.on('clientError', (_error, socket) => socket.destroy())
  return server
}

/** `body`: undefined if it is too large. */
function handleRequest(handle: Handler, request: IncomingMessage, response: ServerResponse, body: Buffer | undefined): void {
  if (body === undefined) {
    send(response, { ...refusal('INVALID_ARGUMENT', 'The request is too large.', [], 413), headers: { connection: 'close' } })
    return
  }
  if (request.headers['content-encoding'] !== undefined) {
    send(response, refusal('INVALID_ARGUMENT', 'The header Content-Encoding is not supported.', [], 415))
    return
  }
  const url = request.url ?? '/'
  const end = url.indexOf('?')
  const path = end === -1 ? url : url.slice(0, end)
  const query = new URLSearchParams(end === -1 ? '' : url.slice(end + 1))
  respond(handle, { method: request.method ?? 'GET', path, query, headers: request.headers, body }, response)
}

/** An exception in a handler ends the process: half of its turn may be in the log. */
function respond(handle: Handler, call: Call, response: ServerResponse): void {
  const result = handle(call)
  if (result instanceof Promise) void result.then((outcome) => send(response, outcome))
  else send(response, result)
}

function send(response: ServerResponse, outcome: HttpResponse | Drop): void {
  if (outcome === 'drop') {
    response.socket?.destroy()
    return
  }
  const headers = ['content-type', 'application/json; charset=UTF-8', 'content-length', String(Buffer.byteLength(outcome.body))]
  for (const [name, value] of Object.entries(outcome.headers ?? {})) headers.push(name, value)
  response.writeHead(outcome.status, headers)
  response.end(outcome.body)
}

function readBody(request: IncomingMessage, done: (body: Buffer | undefined) => void): void {
  if (request.method === 'GET') {
    done(NO_BYTES)
    return
  }
  let chunks: Buffer[] | undefined = []
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    if (chunks === undefined) return
    bytes += chunk.length
    chunks.push(chunk)
    if (bytes > MAX_BODY_BYTES) {
      chunks = undefined
      done(undefined)
    }
  })
  request.on('end', () => {
    if (chunks !== undefined) done(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks))
  })
  request.on('error', () => {
    chunks = undefined
  })
}

/** Returns the text of a body; an empty text if the body is not UTF-8, and therefore not JSON. */
export const textOf = (body: Buffer): string => (isUtf8(body) ? body.toString('utf8') : '')

/** Returns undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export function isJson(headers: IncomingHttpHeaders): boolean {
  return /^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '')
}

/** Decodes a part of a path. Returns undefined if the encoding is invalid. */
export function decodePart(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}
