import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { fieldsOf } from '../content/untrusted.ts'
import type { Pool } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { callerOf, checkModule } from '../http/guard.ts'
import { normalisePhoneNumber } from '../phone-numbers.ts'
import { type Accepted, createAcceptor, type Endpoint, type Submission, UnconfirmedCaller, wasAccepted } from './accept.ts'
import type { Announce } from './announce.ts'
import { readMessage } from './messages.ts'
import { requestHash } from './request-hash.ts'
import { Message, OPERATIONS } from './schemas.ts'
import type { Reserve } from './send-at-once.ts'
import { fallbackOf } from './sms-fallback.ts'

type Options = { pool: Pool; publicUrl: () => string | undefined; reserve: Reserve; announce: Announce }

export const messageRoutes: FastifyPluginAsyncTypebox<Options> = async (app, { pool, publicUrl, reserve, announce }) => {
  app.addSchema(Message)
  const accept = createAcceptor(pool, announce, reserve)

  /** If a recalled caller has changed, looks the caller up, and repeats the checks that depend on it. */
  async function acceptFrom(request: FastifyRequest, submission: Omit<Submission, 'accountId'>): Promise<Accepted> {
    const caller = callerOf(request)
    const { accountId, accountVersion } = caller
    const recalled = request.confirmCaller && caller
    try {
      return await accept({ ...submission, accountId, accountVersion, recalled })
    } catch (error) {
      if (!(error instanceof UnconfirmedCaller) || request.confirmCaller === undefined) throw error
      await request.confirmCaller()
      checkModule(request)
      await checkSmsModule(pool, 'messages', request)
      return await acceptFrom(request, submission)
    }
  }

  app.post(
    '/messages',
    {
      schema: OPERATIONS.send,
      preValidation: (request) => checkSmsModule(pool, 'messages', request),
      config: { confirmsCaller: true },
    },
    async (request, reply) => {
      const { recipient, smsFallback, smsFallbackAfterExpiry, ...body } = request.body
      const { messageIds, replayed } = await acceptFrom(request, {
        ...body,
        recipients: [normalised(recipient)],
        test: false,
        fallback: smsFallback && fallbackOf(smsFallback, smsFallbackAfterExpiry, publicUrl()),
        idempotency: { key: idempotencyKey(request), hash: requestHash(request.body) },
      })
      if (replayed) reply.header('Idempotent-Replayed', 'true')
      const messageId = messageIds[0] as string
      return await reply.code(202).header('Location', `/v1/messages/${messageId}`).send({ messageId })
    },
  )

  app.post('/messages/test', { schema: OPERATIONS.sendTest, config: { confirmsCaller: true } }, async (request, reply) => {
    const { recipients: numbers, ...body } = request.body
    const recipients = numbers.map(normalised)
    const { messageIds } = await acceptFrom(request, { ...body, recipients, test: true })
    const items = recipients.map((recipient, index) => ({ recipient, messageId: messageIds[index] as string }))
    return await reply.code(202).send({ items })
  })

  app.get('/messages/:messageId', { schema: OPERATIONS.read }, async (request) => {
    return await readMessage(pool, callerOf(request).accountId, request.params.messageId)
  })
}

/** Runs before the body is validated. A request that was accepted while the account had the module still gets its response. */
export async function checkSmsModule(pool: Pool, endpoint: Endpoint, request: FastifyRequest): Promise<void> {
  if (fieldsOf(request.body).smsFallback === undefined) return
  await request.confirmCaller?.()
  const { accountId, modules } = callerOf(request)
  if (modules.includes('sms')) return
  const [key, second] = keysOf(request)
  if (key !== undefined && second === undefined && (await wasAccepted(pool, accountId, endpoint, key, requestHash(request.body)))) return
  const details = [{ path: '/smsFallback', reason: 'requires the module sms, which the account does not have' }]
  throw new ApiError('RCS_MODULE_NOT_AVAILABLE', { details })
}

/** Node joins duplicate headers into one value, so read the raw headers. */
function keysOf({ raw }: FastifyRequest): string[] {
  return raw.rawHeaders.filter((_text, index, all) => index % 2 === 1 && all[index - 1]?.toLowerCase() === 'idempotency-key')
}

export function idempotencyKey(request: FastifyRequest): string {
  const [key = '', second] = keysOf(request)
  if (second === undefined) return key
  throw new ApiError('RCS_IDEMPOTENCY_KEY_REQUIRED', { details: [{ path: '/idempotency-key', reason: 'must appear exactly once' }] })
}

/** The schema accepts only possible numbers. */
function normalised(number: string): string {
  return normalisePhoneNumber(number) as string
}
