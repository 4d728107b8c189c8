import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
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

type Options = WebhookOptions & { addressOf: (request: FastifyRequest) => string }

declare module 'fastify' {
  interface FastifyRequest {
    /** Whether the request has shown that it comes from the carrier. */
    isProved: boolean
  }
}

// A set-up challenge, which has no signature, has some 100 bytes.
const UNSIGNED_LIMIT_BYTES = 4 * 1024
// A SHA-512 in base64.
const SIGNATURE = /^[A-Za-z0-9+/]{86}==$/

export function webhookPath(carrier: string): string {
  return `/carriers/${carrier}/webhook`
}

/**
 * `POST /carriers/{name}/webhook`: where Google sends its events. It takes no credentials; a signature proves each event. Requests are refused
 * in order of cost: carrier, earlier failures of the address, size (all by the headers alone), then structure, parsing and the signature.
 */
export async function googleRbmWebhook(app: FastifyInstance, options: Options): Promise<void> {
  const { carriers, postbackKey, onEvents, addressOf } = options
  const tokens = new Map(carriers.map(({ name, webhookToken }) => [name, webhookToken]))
  const gate = createFailureGate()
  acceptEnvelopes(app)
  app.decorateRequest('isProved', false)
  app.addHook('onRequest', (request, reply, done) => {
    if (!tokens.has(carrierOf(request))) done(new ApiError('RCS_ROUTE_NOT_FOUND'))
    else done(enter(gate, addressOf(request), request, reply) ?? unsignedAndLarge(request))
  })
  app.post(webhookPath(':carrier'), { schema: { hide: true } }, async (request, reply) => {
    const carrier = carrierOf(request)
    const token = tokens.get(carrier) as string
    const body = fieldsOf(request.body)
    if (body.message === undefined) {
      const secret = answerToChallenge(body, token)
      request.isProved = true
      return await reply.type('text/plain; charset=utf-8').header('X-Content-Type-Options', 'nosniff').send(secret)
    }
    const data = signedData(body, request, token)
    request.isProved = true
    const event = eventOf(carrier, data, postbackKey)
    if (event.kind === 'unknown') request.log.warn({ carrier, reason: event.description }, 'an event that changes nothing')
    await onEvents([event])
    return await reply.code(200).send()
  })
}

function carrierOf({ params }: FastifyRequest): string {
  return (params as { carrier: string }).carrier
}

/** A request that ends without proof of its origin counts as a failure, also when its client disconnects. */
function enter(gate: FailureGate, address: string, request: FastifyRequest, { raw: response }: FastifyReply): ApiError | undefined {
  const refusedForMs = gate.refusedForMs(address)
  if (refusedForMs > 0) return repeatedFailures(refusedForMs)
  const leave = gate.enter(address)
  const end = () => leave(request.isProved ? 'proved' : 'failed')
  if (response.closed) end()
  else response.once('close', end)
  return undefined
}

function repeatedFailures(refusedForMs: number): ApiError {
  const seconds = Math.ceil(refusedForMs / 1_000)
  const reason = `Too many requests from this address have shown no valid signature; try again in ${seconds} s.`
  return new ApiError('RCS_RATE_LIMITED', { headers: { 'Retry-After': String(seconds) }, details: [{ path: '', reason }] })
}

/** By what the headers announce: a body of unknown length may be large. */
function unsignedAndLarge(request: FastifyRequest): ApiError | undefined {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers
  const maybeLarge = encoding !== undefined || Number(length) > UNSIGNED_LIMIT_BYTES
  return maybeLarge && signatureOf(request) === undefined ? new ApiError('RCS_PAYLOAD_TOO_LARGE') : undefined
}

/** Google proves at the set-up that it knows the token, and we that we do: by saying back what it said. */
function answerToChallenge({ clientToken, secret }: Record<string, unknown>, token: string): string {
  if (typeof clientToken !== 'string' || typeof secret !== 'string') throw malformed('neither an event nor a set-up challenge')
  if (!timingSafeEqual(hash(clientToken), hash(token))) throw refused('the clientToken is not that of this carrier')
  return secret
}

/** The signature is over the bytes that the base64 text stands for, not over the body of the request. */
function signedData({ message }: Record<string, unknown>, request: FastifyRequest, token: string): Buffer {
  const { data } = fieldsOf(message)
  if (typeof data !== 'string') throw malformed('/message/data must be a base64 text')
  const signature = signatureOf(request)
  if (signature === undefined) throw refused('X-Goog-Signature is missing or wrong')
  const bytes = Buffer.from(data, 'base64')
  const expected = createHmac('sha512', token).update(bytes).digest()
  if (!timingSafeEqual(signature, expected)) throw refused('X-Goog-Signature is missing or wrong')
  return bytes
}

function signatureOf({ headers }: FastifyRequest): Buffer | undefined {
  const text = String(headers['x-goog-signature'])
  return SIGNATURE.test(text) ? Buffer.from(text, 'base64') : undefined
}

/** So that two texts of any length can be compared in constant time. */
function hash(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** Replaces the API's own parser, which drops nulls: that is for callers of the API only. */
function acceptEnvelopes(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (_request: FastifyRequest, body: Buffer) => {
    const problem = structureProblem(body)
    if (problem !== undefined) throw malformed(problem)
    const envelope = parseJson(body)
    if (envelope === undefined) throw malformed('the body is not JSON')
    return envelope
  })
}

function malformed(reason: string): ApiError {
  return new ApiError('RCS_INVALID_REQUEST', { details: [{ path: '', reason }] })
}

function refused(reason: string): ApiError {
  return new ApiError('RCS_UNAUTHORIZED', { details: [{ path: '', reason }] })
}
