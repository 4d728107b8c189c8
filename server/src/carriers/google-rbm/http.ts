import { Pool } from 'undici'
import packageJson from '../../../package.json' with { type: 'json' }
import { type CallError, call } from '../../outbound/call.ts'
import { parseJson } from '../json.ts'

export type Request = {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  path: string
  headers?: Record<string, string>
  body?: string
  /** Aborts the call. */
  signal?: AbortSignal
}
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
const MAX_INTERIM_RESPONSES = 10
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
  return { call: (request) => send(pool, request, timeoutMs), close: () => pool.destroy() }
}

async function send(pool: Pool, { method, path, headers, body, signal }: Request, timeoutMs: number): Promise<Response> {
  const limits = { timeoutMs, endsAt: performance.now() + timeoutMs, maxBytes: MAX_RESPONSE_BYTES, keptBytes: MAX_RESPONSE_BYTES }
  const json = body === undefined ? {} : { 'content-type': 'application/json' }
  const request = { method, path, headers: { 'user-agent': USER_AGENT, ...json, ...headers }, body: body ?? null }
  const signals = signal === undefined ? [] : [signal]
  const end = await call(pool, request, { ...limits, maxInterimResponses: MAX_INTERIM_RESPONSES, signals })
  if (end.error !== undefined || end.status === undefined) throw new (end.wasSent ? Error : NotSent)(describe(end.error))
  return { status: end.status, headers: end.headers, body: parseJson(end.body) }
}

/** Node throws an AggregateError if a name has several addresses; the message is in its parts. */
function describe({ message, code, errors }: Partial<CallError> = {}): string {
  return message || errors?.[0]?.message || code || 'the connection failed'
}
