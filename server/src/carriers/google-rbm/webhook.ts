import { createHash, createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { ApiError } from '../../errors.ts'
import { structureProblem } from '../../json-structure.ts'
import type { OnEvents } from '../carrier.ts'
import { fieldsOf, parseJson } from '../json.ts'
import { eventOf } from './events.ts'
import { createFailureGate, type FailureGate } from './failure-gate.ts'
import type { GoogleRbmSettings } from './settings.ts'

export type WebhookOptions = {
  carriers: Pick<GoogleRbmSettings, 'name' | 'webhookToken'>[]
  postbackKey: Buffer
  onEvents: OnEvents
}

type Request = { parameter: string; address: string; raw: IncomingMessage; response: ServerResponse; log: () => Logger }
type Token = { text: string; key: KeyObject }
type Context = {
  carrier: string
  token: Token
  headers: IncomingHttpHeaders
  log: () => Logger
  /** Whether the request has proved that it comes from the carrier. */
  isProved: boolean
}
type Response = { headers: Record<string, string>; body: string }

type Webhook = {
  pattern: string
  enter: (request: Request) => ApiError | Context
  parse: (body: Buffer) => unknown
  handle: (context: Context, body: unknown) => Promise<Response | undefined>
}

// A setup challenge has no signature, and some 100 bytes.
const UNSIGNED_LIMIT_BYTES = 4 * 1024
// A SHA-512 in base64.
const SIGNATURE = /^[A-Za-z0-9+/]{86}==$/

export function webhookPath(carrier: string): string {
  return `/carriers/${carrier}/webhook`
}

/**
 * `POST /carriers/{name}/webhook`: receives Google's events. It requires no credentials; a signature proves each event. Cheap checks run first:
 * from the headers alone, the carrier, earlier failures of the address and the size; then structure, parsing and signature.
 */
export function createWebhook({ carriers, postbackKey, onEvents }: WebhookOptions): Webhook {
  const tokens = new Map(carriers.map(({ name, webhookToken: text }) => [name, { text, key: createSecretKey(text, 'utf8') }]))
  const gate = createFailureGate()
  return {
    pattern: webhookPath(':carrier'),
    enter: ({ parameter: carrier, address, raw: { headers }, response, log }) => {
      const token = tokens.get(carrier)
      if (token === undefined) return new ApiError('RCS_ROUTE_NOT_FOUND')
      const context = { carrier, token, headers, log, isProved: false }
      return admit(gate, address, context, response) ?? unsignedAndLarge(headers) ?? context
    },
    parse: envelopeOf,
    handle: async (context, envelope) => {
      const { carrier, token, log } = context
      const body = fieldsOf(envelope)
      if (body.message === undefined) {
        const secret = respondToChallenge(body, token.text)
        context.isProved = true
        return { headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' }, body: secret }
      }
      const data = signedData(body, context.headers, token.key)
      context.isProved = true
      const event = eventOf(carrier, data, postbackKey)
      if (event.kind === 'unknown') log().warn({ carrier, reason: event.description }, 'ignored an event of an unknown kind')
      await onEvents([event])
      return undefined
    },
  }
}

/** A request that ends without proof of its origin counts as a failure, even if its client disconnects. */
function admit(gate: FailureGate, address: string, context: Context, response: ServerResponse): ApiError | undefined {
  const refusedForMs = gate.refusedForMs(address)
  if (refusedForMs > 0) return repeatedFailures(refusedForMs)
  const leave = gate.enter(address)
  const end = () => leave(context.isProved ? 'proved' : 'failed')
  if (response.closed) end()
  else response.once('close', end)
  return undefined
}

function repeatedFailures(refusedForMs: number): ApiError {
  const seconds = Math.ceil(refusedForMs / 1_000)
  const reason = `Too many requests from this address had no valid signature; try again in ${seconds} s.`
  return new ApiError('RCS_RATE_LIMITED', { headers: { 'Retry-After': String(seconds) }, details: [{ path: '', reason }] })
}

/** Checks the headers only, before the body is read. A body of unknown length may be large. */
function unsignedAndLarge(headers: IncomingHttpHeaders): ApiError | undefined {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers
  const maybeLarge = encoding !== undefined || Number(length) > UNSIGNED_LIMIT_BYTES
  return maybeLarge && signatureOf(headers) === undefined ? new ApiError('RCS_PAYLOAD_TOO_LARGE') : undefined
}

/** During setup Google proves that it knows the token, and Herald proves it by returning the secret. */
function respondToChallenge({ clientToken, secret }: Record<string, unknown>, token: string): string {
  if (typeof clientToken !== 'string' || typeof secret !== 'string') throw malformed('the body is neither an event nor a setup challenge')
  if (!timingSafeEqual(hash(clientToken), hash(token))) throw refused('the clientToken does not match this carrier')
  return secret
}

/** The signature covers the bytes that the base64 text decodes to, not the body of the request. */
function signedData({ message }: Record<string, unknown>, headers: IncomingHttpHeaders, key: KeyObject): Buffer {
  const { data } = fieldsOf(message)
  if (typeof data !== 'string') throw malformed('/message/data must be a base64 string')
  const signature = signatureOf(headers)
  if (signature === undefined) throw refused('X-Goog-Signature is missing or wrong')
  const bytes = Buffer.from(data, 'base64')
  const expected = createHmac('sha512', key).update(bytes).digest()
  if (!timingSafeEqual(signature, expected)) throw refused('X-Goog-Signature is missing or wrong')
  return bytes
}

function signatureOf(headers: IncomingHttpHeaders): Buffer | undefined {
  const text = String(headers['x-goog-signature'])
  return SIGNATURE.test(text) ? Buffer.from(text, 'base64') : undefined
}

/** The hashes of two texts can be compared in constant time, even if the texts differ in length. */
function hash(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** Parses an event. The API's own parser would drop nulls, a leniency for callers of the API only. */
function envelopeOf(body: Buffer): unknown {
  const problem = structureProblem(body)
  if (problem !== undefined) throw malformed(problem)
  const envelope = parseJson(body)
  if (envelope === undefined) throw malformed('the body is not JSON')
  return envelope
}

function malformed(reason: string): ApiError {
  return new ApiError('RCS_INVALID_REQUEST', { details: [{ path: '', reason }] })
}

function refused(reason: string): ApiError {
  return new ApiError('RCS_UNAUTHORIZED', { details: [{ path: '', reason }] })
}
