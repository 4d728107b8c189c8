import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../../errors.ts'
import type { OnEvents } from '../carrier.ts'
import { fieldsOf } from '../json.ts'
import { eventOf } from './events.ts'
import type { GoogleRbmSettings } from './settings.ts'

export type WebhookOptions = {
  carriers: Pick<GoogleRbmSettings, 'name' | 'webhookToken'>[]
  postbackKey: Buffer
  onEvents: OnEvents
}

// More than an event can have: one that is refused comes back for seven days.
const BODY_LIMIT_BYTES = 1024 * 1024

export function webhookPath(carrier: string): string {
  return `/carriers/${carrier}/webhook`
}

/** `POST /carriers/{name}/webhook`: where Google sends its events. Not part of the API: it takes no credentials, and proves itself by its signature. */
export async function googleRbmWebhook(app: FastifyInstance, { carriers, postbackKey, onEvents }: WebhookOptions): Promise<void> {
  const tokens = new Map(carriers.map(({ name, webhookToken }) => [name, webhookToken]))
  acceptAnyJson(app)
  app.post(webhookPath(':carrier'), { schema: { hide: true }, bodyLimit: BODY_LIMIT_BYTES }, async (request, reply) => {
    const { carrier } = request.params as { carrier: string }
    const token = tokens.get(carrier)
    if (token === undefined) throw new ApiError('RCS_ROUTE_NOT_FOUND')
    const body = fieldsOf(request.body)
    if (body.message === undefined) {
      const secret = answerToChallenge(body, token)
      return await reply.type('text/plain; charset=utf-8').header('X-Content-Type-Options', 'nosniff').send(secret)
    }
    const data = signedData(body, request, token)
    const event = eventOf(carrier, data, postbackKey)
    if (event.kind === 'unknown') request.log.warn({ carrier, reason: event.description }, 'an event that changes nothing')
    await onEvents([event])
    return await reply.code(200).send()
  })
}

/** Google proves at the set-up that it knows the token, and we that we do: by saying back what it said. */
function answerToChallenge({ clientToken, secret }: Record<string, unknown>, token: string): string {
  if (typeof clientToken !== 'string' || typeof secret !== 'string') throw malformed('neither an event nor a set-up challenge')
  if (!timingSafeEqual(hash(clientToken), hash(token))) throw refused('the clientToken is not that of this carrier')
  return secret
}

/** Signed is what the base64 text stands for, not the body of the request. */
function signedData({ message }: Record<string, unknown>, { headers }: FastifyRequest, token: string): Buffer {
  const { data } = fieldsOf(message)
  if (typeof data !== 'string') throw malformed('/message/data must be a base64 text')
  const bytes = Buffer.from(data, 'base64')
  const expected = createHmac('sha512', token).update(bytes).digest()
  const signature = Buffer.from(String(headers['x-goog-signature']), 'base64')
  if (signature.length !== expected.length || !timingSafeEqual(signature, expected)) throw refused('X-Goog-Signature is missing or wrong')
  return bytes
}

/** So that two texts of any length can be compared in constant time. */
function hash(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** The API's own parser drops nulls and counts values, which is for callers of ours. */
function acceptAnyJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, async (_request: FastifyRequest, body: string) => {
    try {
      return JSON.parse(body)
    } catch {
      throw malformed('the body is not JSON')
    }
  })
}

function malformed(reason: string): ApiError {
  return new ApiError('RCS_INVALID_REQUEST', { details: [{ path: '', reason }] })
}

function refused(reason: string): ApiError {
  return new ApiError('RCS_UNAUTHORIZED', { details: [{ path: '', reason }] })
}
