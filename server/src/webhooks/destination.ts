import { Client, type Dispatcher, Pool } from 'undici'
import { OperatorError } from '../errors.ts'
import { CONNECT_MS, type Connector, createConnector, NotPublic } from './address.ts'
import { checkEndpointUrl } from './url.ts'

export type Post = { headers: Record<string, string>; body: string; signal?: AbortSignal }
/**
 * What came of a call. Where there is a status, there was an answer in time, and no error, whatever became of the rest of it. `answer` is
 * how its body begins. `isStopped`: the call was ended from here, or could not be made from here, and says nothing about the endpoint.
 */
export type Attempted = {
  status: number | undefined
  error: string | undefined
  retryAfterMs: number | undefined
  durationMs: number
  answer: string
  isStopped: boolean
}
export type Destination = { post: (post: Post) => Promise<Attempted>; close: () => Promise<void> }
export type DestinationOptions = { connections: number; allowPrivate: boolean; connector?: Connector; timeoutMs?: number }

/** From the call to the last byte of the answer, connecting and waiting for a connection included. */
const ANSWER_MS = 15_000
const MAX_HEADER_BYTES = 16 * 1024
const MAX_ANSWER_BYTES = 64 * 1024
const KEPT_ANSWER_BYTES = 1024
// Answers before the answer, such as 103, which one may send for ever.
const MAX_INTERIM_ANSWERS = 10
// Under the 60 s after which load balancers commonly close an idle connection.
const KEEP_ALIVE_MS = 30_000

/** Connections to one endpoint, kept open and at most so many; further calls wait for one. Follows no redirect, and never throws. */
export function createDestination(
  url: string,
  { connections, allowPrivate, connector, timeoutMs = ANSWER_MS }: DestinationOptions,
): Destination {
  // Once more, since an endpoint may be from a time when private ones were allowed.
  const refusal = refusalOf(url, allowPrivate)
  if (refusal !== undefined) return { post: async () => ({ ...nothing(refusal), durationMs: 0 }), close: async () => {} }

  const { origin, pathname, search } = new URL(url)
  const options = {
    connect: markingUsed(connector ?? createConnector({ allowPrivate })),
    pipelining: 1,
    allowH2: false,
    maxHeaderSize: MAX_HEADER_BYTES,
    // The deadline of a call is kept below, for all its parts together.
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
    const limits = { timeoutMs, endsAt: startedAt + timeoutMs, signals }
    const request = { method: 'POST', path: pathname + search, headers, body } as const
    let result = await call(pool, request, limits)
    if (result.wasStale) {
      // On a connection of its own, since others that the pool has kept may be closed as well.
      const client = new Client(origin, options)
      result = await call(client, request, limits)
      await client.destroy()
    }
    const { wasStale: _, ...outcome } = result
    return { ...outcome, durationMs: Math.round(performance.now() - startedAt) }
  }
  async function close(): Promise<void> {
    closing.abort()
    await pool.destroy()
  }
  return { post, close }
}

function refusalOf(url: string, allowPrivate: boolean): string | undefined {
  try {
    checkEndpointUrl(url, allowPrivate)
    return
  } catch (error) {
    if (error instanceof OperatorError) return error.message.replace(/\.$/, '')
    throw error
  }
}

// Errors of connections on which there had been an answer before.
const brokenAfterUse = new WeakSet<Error>()

function markingUsed(connector: Connector): Connector {
  return (options, callback) =>
    connector(options, (...result) => {
      const [, socket] = result
      socket?.prependListener('error', (error) => {
        if (socket.bytesRead > 0) brokenAfterUse.add(error)
      })
      callback(...result)
    })
}

type Outcome = Omit<Attempted, 'durationMs'>
type Called = Outcome & { wasStale: boolean }
type Limits = { timeoutMs: number; endsAt: number; signals: AbortSignal[] }

function nothing(error: string, isStopped = false): Outcome {
  return { status: undefined, error, retryAfterMs: undefined, answer: '', isStopped }
}

/** By `dispatch`, which makes no stream for each answer, and tells when a request gets onto a connection. */
function call(dispatcher: Dispatcher, request: Dispatcher.DispatchOptions, { timeoutMs, endsAt, signals }: Limits): Promise<Called> {
  return new Promise((resolve) => {
    const answer = createAnswer()
    let controller: Dispatcher.DispatchController | undefined
    let isOver = false
    const deadline = setTimeout(() => cut(nothing(`no answer within ${timeoutMs / 1000} s`)), endsAt - performance.now())
    const stop = () => cut(nothing('stopped before there was an answer', true))
    for (const signal of signals) signal.addEventListener('abort', stop)

    function end(failure: Outcome, wasStale = false): void {
      if (isOver) return
      isOver = true
      clearTimeout(deadline)
      for (const signal of signals) signal.removeEventListener('abort', stop)
      resolve({ ...(answer.outcome() ?? failure), wasStale })
    }
    /** Ends the connection too: what else would come on it is of no use to anybody. */
    function cut(failure: Outcome): void {
      end(failure)
      controller?.abort(new Error('cut'))
    }

    if (signals.some(({ aborted }) => aborted)) return stop()
    dispatcher.dispatch(request, {
      onRequestStart: (started) => {
        controller = started
        // It had to wait so long for a connection that nobody waits for it any more.
        if (isOver) started.abort(new Error('too late'))
      },
      onResponseStarted: answer.begin,
      onResponseStart: (_, status, headers) => {
        if (!answer.start(status, headers['retry-after'])) cut(nothing(`it answers with ${status} again and again`))
      },
      onResponseData: (_, chunk) => {
        if (!answer.add(chunk)) cut(nothing('the answer is too long'))
      },
      onResponseEnd: () => end(nothing('the answer has no status')),
      onResponseError: (_, error) => end(nothing(describe(error), isOurs(error)), !answer.hasBegun() && isStale(error)),
    })
  })
}

/** What there is of an answer. Its status counts once the headers are complete, however the body goes on. */
function createAnswer() {
  const chunks: Buffer[] = []
  let bytes = 0
  let interimAnswers = 0
  let hasBegun = false
  let head: { status: number; retryAfterMs: number | undefined } | undefined
  return {
    begin: () => {
      hasBegun = true
    },
    hasBegun: () => hasBegun,
    /** False where it must not go on so. */
    start: (status: number, retryAfter: string | string[] | undefined): boolean => {
      if (status >= 200) head = { status, retryAfterMs: parseRetryAfter(retryAfter) }
      else interimAnswers += 1
      return interimAnswers <= MAX_INTERIM_ANSWERS
    },
    /** False where it must not go on. */
    add: (chunk: Buffer): boolean => {
      if (bytes < KEPT_ANSWER_BYTES) chunks.push(chunk)
      bytes += chunk.length
      return bytes <= MAX_ANSWER_BYTES
    },
    outcome: (): Outcome | undefined => head && { ...head, error: undefined, answer: beginning(chunks), isStopped: false },
  }
}

/** Bytes that are no UTF-8 become U+FFFD; a character cut in two at the end goes, and so does NUL, which PostgreSQL can't keep. */
function beginning(chunks: Buffer[]): string {
  const bytes = Buffer.concat(chunks).subarray(0, KEPT_ANSWER_BYTES)
  return new TextDecoder().decode(bytes, { stream: true }).replaceAll('\0', '')
}

const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

/** Seconds, or a date in the one form that RFC 9110 lets anybody write. Anything else is as if it were not there. */
function parseRetryAfter(header: string | string[] | undefined): number | undefined {
  const value = (Array.isArray(header) ? header[0] : header)?.trim() ?? ''
  if (/^\d+$/.test(value)) return Math.min(Number(value) * 1000, Number.MAX_SAFE_INTEGER)
  const at = HTTP_DATE.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now())
}

type Failure = Error & { code?: string; reason?: string; errors?: Failure[] }

const CLOSED = 'the connection was closed before there was an answer'
const NOT_HTTP = 'its answer is not HTTP'
const UNKNOWN_AUTHORITY = 'its certificate is not from an authority that is trusted'
const FAILURES = new Map([
  ['ENOTFOUND', 'the name of the host was not found'],
  ['EAI_AGAIN', 'the name of the host could not be looked up'],
  ['ECONNREFUSED', 'the connection was refused'],
  ['EHOSTUNREACH', 'the host cannot be reached'],
  ['ENETUNREACH', 'the network of the host cannot be reached'],
  ['ETIMEDOUT', 'no connection in time'],
  ['UND_ERR_CONNECT_TIMEOUT', `no connection within ${CONNECT_MS / 1000} s`],
  ['ECONNRESET', CLOSED],
  ['EPIPE', CLOSED],
  ['UND_ERR_SOCKET', CLOSED],
  ['UND_ERR_HEADERS_OVERFLOW', `the headers of its answer are over ${MAX_HEADER_BYTES / 1024} KiB`],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', NOT_HTTP],
  // A status of 099 and such.
  ['ERR_ASSERTION', NOT_HTTP],
  ['CERT_HAS_EXPIRED', 'its certificate has expired'],
  ['CERT_NOT_YET_VALID', 'its certificate is not valid yet'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for another name'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', UNKNOWN_AUTHORITY],
  ['SELF_SIGNED_CERT_IN_CHAIN', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', UNKNOWN_AUTHORITY],
])

/** Never the message of an error, in which there may be an address. */
function describe(error: Failure): string {
  if (error instanceof NotPublic) return error.message
  // Where a name has several addresses, Node throws one error for all of them.
  const { code = '', reason, message } = error.errors?.[0] ?? error
  // Undici has one code for these and for a connection that is closed.
  if (message === 'bad response' || message === 'bad upgrade') return 'its answer is a status that was not asked for: 100 or 101'
  if (error.name === 'HTTPParserError') return NOT_HTTP
  if (code.startsWith('ERR_SSL_') || code === 'EPROTO') return `TLS failed: ${reason ?? code}`
  return FAILURES.get(code) ?? `the call failed: ${code || error.name}`
}

// This machine has no room for another connection.
const OURS = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL'])

function isOurs(error: Failure): boolean {
  return OURS.has((error.errors?.[0] ?? error).code ?? '')
}

/** A kept connection that the other side closed just as it was used. Calling again is safe, since events are promised at least once. */
function isStale(error: Failure): boolean {
  return FAILURES.get(error.code ?? '') === CLOSED && brokenAfterUse.has(error)
}
