import { Client, Pool } from 'undici'
import { Aborted, type CallEnd, type CallError, call } from '../outbound/call.ts'
import { retryAfterMs } from '../outbound/retry-after.ts'
import type { WebhookHosts } from '../public-host.ts'
import { CONNECT_MS, type Connector, createConnector, NotPublic } from './address.ts'
import { urlProblem } from './url.ts'

export type Post = { headers: Record<string, string>; body: string; signal?: AbortSignal }
/**
 * The outcome of a call. If `status` is set, the headers arrived in time and `error` is undefined, whatever happened to the body. `response`
 * is the start of the response body. `isStopped`: this process aborted the call or could not make it, so it says nothing about the
 * endpoint.
 */
export type Attempted = {
  status: number | undefined
  error: string | undefined
  retryAfterMs: number | undefined
  durationMs: number
  response: string
  isStopped: boolean
}
export type Destination = { post: (post: Post) => Promise<Attempted>; close: () => Promise<void> }
export type DestinationOptions = { connections: number; hosts: WebhookHosts; connector?: Connector; timeoutMs?: number }

/** From the call to the last byte of the response, including the wait for a connection and connecting. */
const RESPONSE_TIMEOUT_MS = 15_000
const MAX_HEADER_BYTES = 16 * 1024
const LIMITS = { maxBytes: 64 * 1024, keptBytes: 1024, maxInterimResponses: 10 }
// Less than the 60 s after which load balancers commonly close an idle connection.
const KEEP_ALIVE_MS = 30_000

/**
 * A pool of at most `connections` connections to one endpoint, kept open; further calls wait for one. Follows no redirects, and never
 * throws.
 */
export function createDestination(
  url: string,
  { connections, hosts, connector, timeoutMs = RESPONSE_TIMEOUT_MS }: DestinationOptions,
): Destination {
  // Check the URL again: the endpoint may be from a time when private addresses were allowed.
  const problem = urlProblem(url, hosts)
  if (problem !== undefined) return { post: async () => ({ ...noResponse(`the URL ${problem}`), durationMs: 0 }), close: async () => {} }

  const { origin, pathname, search } = new URL(url)
  const options = {
    connect: markErrorsAfterUse(connector ?? createConnector({ hosts })),
    pipelining: 1,
    allowH2: false,
    maxHeaderSize: MAX_HEADER_BYTES,
    // call() applies one deadline to all phases together.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
  }
  const pool = new Pool(origin, { ...options, connections })
  const closing = new AbortController()

  async function post({ headers, body, signal }: Post): Promise<Attempted> {
    const startedAt = performance.now()
    const signals = signal === undefined ? [closing.signal] : [closing.signal, signal]
    const limits = { ...LIMITS, timeoutMs, endsAt: startedAt + timeoutMs, signals }
    const request = { method: 'POST', path: pathname + search, headers, body } as const
    let end = await call(pool, request, limits)
    if (isStale(end)) {
      // Retry on a new connection, since others in the pool may be closed as well.
      const client = new Client(origin, options)
      end = await call(client, request, limits)
      await client.destroy()
    }
    return { ...outcomeOf(end), durationMs: Math.round(performance.now() - startedAt) }
  }
  async function close(): Promise<void> {
    closing.abort()
    await pool.destroy()
  }
  return { post, close }
}

// Errors of connections that had received a response before.
const failedAfterUse = new WeakSet<Error>()

function markErrorsAfterUse(connector: Connector): Connector {
  return (options, callback) =>
    connector(options, (...result) => {
      const [, socket] = result
      socket?.prependListener('error', (error) => {
        if (socket.bytesRead > 0) failedAfterUse.add(error)
      })
      callback(...result)
    })
}

type Outcome = Omit<Attempted, 'durationMs'>

function noResponse(error: string, isStopped = false): Outcome {
  return { status: undefined, error, retryAfterMs: undefined, response: '', isStopped }
}

/** The status counts once the headers are complete, whatever happens to the body. */
function outcomeOf({ status, headers, body, error }: CallEnd): Outcome {
  if (status !== undefined) {
    return { status, error: undefined, retryAfterMs: retryAfterMs(headers['retry-after']), response: beginning(body), isStopped: false }
  }
  if (error === undefined) return noResponse(NOT_HTTP)
  return noResponse(describeFailure(error), error instanceof Aborted ? error.isStopped : isLocal(error))
}

/** Invalid UTF-8 becomes U+FFFD. A character cut at the end and NUL, which PostgreSQL cannot store, are removed. */
function beginning(body: Buffer): string {
  return new TextDecoder().decode(body, { stream: true }).replaceAll('\0', '')
}

const CLOSED = 'the connection was closed before a response'
const NOT_HTTP = 'the response is not HTTP'
const UNKNOWN_AUTHORITY = 'the certificate is not from a trusted authority'
const FAILURES = new Map([
  ['ENOTFOUND', 'the host name was not found'],
  ['EAI_AGAIN', 'the host name could not be resolved'],
  ['ECONNREFUSED', 'the connection was refused'],
  ['EHOSTUNREACH', 'the host cannot be reached'],
  ['ENETUNREACH', 'the host’s network cannot be reached'],
  ['ETIMEDOUT', 'the connection timed out'],
  ['UND_ERR_CONNECT_TIMEOUT', `no connection within ${CONNECT_MS / 1000} s`],
  ['ECONNRESET', CLOSED],
  ['EPIPE', CLOSED],
  ['UND_ERR_SOCKET', CLOSED],
  ['UND_ERR_HEADERS_OVERFLOW', `the response headers exceed ${MAX_HEADER_BYTES / 1024} KiB`],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', NOT_HTTP],
  // An invalid status such as 099.
  ['ERR_ASSERTION', NOT_HTTP],
  ['CERT_HAS_EXPIRED', 'the certificate has expired'],
  ['CERT_NOT_YET_VALID', 'the certificate is not valid yet'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'the certificate is for another name'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', UNKNOWN_AUTHORITY],
  ['SELF_SIGNED_CERT_IN_CHAIN', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', UNKNOWN_AUTHORITY],
])

/** Never returns the message of a system's error, which may contain an address. */
export function describeFailure(error: CallError): string {
  if (error instanceof NotPublic || error instanceof Aborted) return error.message
  // If a name has several addresses, Node throws one error for all of them.
  const { code = '', reason, message } = error.errors?.[0] ?? error
  // Undici has the same code for these and for a closed connection.
  if (message === 'bad response' || message === 'bad upgrade') return 'unexpected status 100 or 101'
  if (error.name === 'HTTPParserError') return NOT_HTTP
  if (code.startsWith('ERR_SSL_') || code === 'EPROTO') return `TLS failed: ${reason ?? code}`
  return FAILURES.get(code) ?? `the call failed: ${code || error.name}`
}

// This machine has no resources for another connection.
const LOCAL_FAILURES = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL'])

function isLocal(error: CallError): boolean {
  return LOCAL_FAILURES.has((error.errors?.[0] ?? error).code ?? '')
}

/** The endpoint closed a kept connection just as it was used. Calling again is safe, since events are delivered at least once. */
function isStale({ error, hasBegun }: CallEnd): boolean {
  return error !== undefined && !hasBegun && FAILURES.get(error.code ?? '') === CLOSED && failedAfterUse.has(error)
}
