import { type Dispatcher, Pool } from 'undici'
import packageJson from '../../../package.json' with { type: 'json' }
import { parseJson } from '../json.ts'

export type Request = { method: 'GET' | 'POST' | 'DELETE'; path: string; headers?: Record<string, string>; body?: string }
/** `body` is undefined where it was not JSON, as a proxy's error page is not. */
export type Answer = { status: number; headers: Record<string, string | string[] | undefined>; body: unknown }

/** The request never left: whatever it asked for did not happen. Every other failure leaves that open. */
export class NotSent extends Error {}

export type Http = { call: (request: Request) => Promise<Answer>; close: () => Promise<void> }

const CONNECT_MS = 5_000
/** From the call to the last byte of the answer, waiting for a connection included. */
export const ANSWER_MS = 10_000
// The largest that we ask for, 10,000 reachable numbers, is 150 KB; an echoed message has up to 250 KB.
const MAX_ANSWER_BYTES = 1024 * 1024
const USER_AGENT = `herald/${packageJson.version}`

/** Connections to one host, kept open and at most so many; further calls wait for one. Follows no redirect. */
export function createHttp(origin: string, connections: number, answerMs = ANSWER_MS): Http {
  const pool = new Pool(origin, {
    connections,
    pipelining: 1,
    allowH2: false,
    connect: { timeout: CONNECT_MS },
    // The deadline of a call is kept below, for all its parts together.
    headersTimeout: 0,
    bodyTimeout: 0,
    // Under the 240 s after which Google closes an idle connection: one that is closed just as it is used costs a second try.
    keepAliveTimeout: 60_000,
    keepAliveMaxTimeout: 60_000,
  })
  return { call: (request) => call(pool, request, answerMs), close: () => pool.destroy() }
}

/** By `dispatch`, which makes neither a stream nor an abort signal for each answer, and tells when a request gets onto a connection. */
function call(pool: Pool, { method, path, headers, body }: Request, answerMs: number): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | undefined
    let status = 0
    let answerHeaders: Answer['headers'] = {}
    let chunks: Buffer[] = []
    let bytes = 0
    let isOver = false
    const deadline = setTimeout(() => fail(new Error(`no answer within ${answerMs / 1000} s`)), answerMs)

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
          // It had to wait so long for a connection that nobody waits for it any more.
          if (isOver) started.abort(new Error('too late'))
          else controller = started
        },
        onResponseStart: (_, statusCode, responseHeaders) => {
          status = statusCode
          answerHeaders = responseHeaders
          chunks = []
        },
        onResponseData: (_, chunk) => {
          chunks.push(chunk)
          bytes += chunk.length
          if (bytes > MAX_ANSWER_BYTES) fail(new Error(`an answer of over ${MAX_ANSWER_BYTES} bytes`))
        },
        onResponseEnd: () => {
          clearTimeout(deadline)
          resolve({ status, headers: answerHeaders, body: parseJson(Buffer.concat(chunks)) })
        },
        onResponseError: (_, error) => fail(error),
      },
    )
  })
}

/** An AggregateError, which Node throws where a name has several addresses, has its message in its parts. */
function describe(error: Error): string {
  const { message, code, errors } = error as Error & { code?: string; errors?: Error[] }
  return message || errors?.[0]?.message || code || 'the connection failed'
}
