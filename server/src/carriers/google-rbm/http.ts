import { type Dispatcher, Pool } from 'undici'
import packageJson from '../../../package.json' with { type: 'json' }
import { parseJson } from '../json.ts'

export type Request = { method: 'GET' | 'POST' | 'DELETE'; path: string; headers?: Record<string, string>; body?: string }
/** `body` is undefined if it was not JSON, such as a proxy's error page. */
export type Response = { status: number; headers: Record<string, string | string[] | undefined>; body: unknown }

/** The request was never sent, so it had no effect. After any other error it may have had one. */
export class NotSent extends Error {}

export type Http = { call: (request: Request) => Promise<Response>; close: () => Promise<void> }

const CONNECT_MS = 5_000
/** From the call to the last byte of the response, including the wait for a connection. */
export const RESPONSE_TIMEOUT_MS = 10_000
// The largest response, 10,000 reachable numbers, has 150 KB; an echoed message has up to 250 KB.
const MAX_RESPONSE_BYTES = 1024 * 1024
const USER_AGENT = `herald/${packageJson.version}`

/** A pool of at most `connections` connections to one host, kept open; further calls wait for one. Follows no redirects. */
export function createHttp(origin: string, connections: number, timeoutMs = RESPONSE_TIMEOUT_MS): Http {
  const pool = new Pool(origin, {
    connections,
    pipelining: 1,
    allowH2: false,
    connect: { timeout: CONNECT_MS },
    // `call` applies one deadline to all phases together.
    headersTimeout: 0,
    bodyTimeout: 0,
    // Less than the 240 s after which Google closes an idle connection: a connection closed just as it is used costs a retry.
    keepAliveTimeout: 60_000,
    keepAliveMaxTimeout: 60_000,
  })
  return { call: (request) => call(pool, request, timeoutMs), close: () => pool.destroy() }
}

/** Uses `dispatch`, which creates neither a stream nor an abort signal for each response, and reports when a request gets a connection. */
function call(pool: Pool, { method, path, headers, body }: Request, timeoutMs: number): Promise<Response> {
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | undefined
    let status = 0
    let responseHeaders: Response['headers'] = {}
    let chunks: Buffer[] = []
    let bytes = 0
    let isOver = false
    const deadline = setTimeout(() => fail(new Error(`no response within ${timeoutMs / 1000} s`)), timeoutMs)

    function fail(error: Error): void {
      clearTimeout(deadline)
      isOver = true
      reject(controller === undefined ? new NotSent(describe(error)) : new Error(describe(error)))
      controller?.abort(error)
    }

    pool.dispatch(
      {
        method,
        path,
        headers: { 'user-agent': USER_AGENT, ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
        body: body ?? null,
      },
      {
        onRequestStart: (started) => {
          // The deadline passed while the request waited for a connection.
          if (isOver) started.abort(new Error('too late'))
          else controller = started
        },
        onResponseStart: (_, statusCode, received) => {
          status = statusCode
          responseHeaders = received
          chunks = []
        },
        onResponseData: (_, chunk) => {
          chunks.push(chunk)
          bytes += chunk.length
          if (bytes > MAX_RESPONSE_BYTES) fail(new Error(`the response exceeds ${MAX_RESPONSE_BYTES} bytes`))
        },
        onResponseEnd: () => {
          clearTimeout(deadline)
          resolve({ status, headers: responseHeaders, body: parseJson(Buffer.concat(chunks)) })
        },
        onResponseError: (_, error) => fail(error),
      },
    )
  })
}

/** Node throws an AggregateError if a name has several addresses; the message is in its parts. */
function describe(error: Error): string {
  const { message, code, errors } = error as Error & { code?: string; errors?: Error[] }
  return message || errors?.[0]?.message || code || 'the connection failed'
}
