import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import type { Pool } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { callerOf } from '../http/guard.ts'
import { normalisePhoneNumber } from '../phone-numbers.ts'
import { createAcceptor } from './accept.ts'
import { readMessage } from './messages.ts'
import { requestHash } from './request-hash.ts'
import { Message, OPERATIONS } from './schemas.ts'

export const messageRoutes: FastifyPluginAsyncTypebox<{ pool: Pool }> = async (app, { pool }) => {
  app.addSchema(Message)
  const accept = createAcceptor(pool)

  app.post('/messages', { schema: OPERATIONS.send }, async (request, reply) => {
    const { recipient, ...body } = request.body
    const { messageIds, replayed } = await accept({
      ...body,
      accountId: callerOf(request).accountId,
      recipients: [normalised(recipient)],
      test: false,
      idempotency: { key: idempotencyKey(request), hash: requestHash(request.body) },
    })
    if (replayed) reply.header('Idempotent-Replayed', 'true')
    const messageId = messageIds[0] as string
    return await reply.code(202).header('Location', `/v1/messages/${messageId}`).send({ messageId })
  })

  app.post('/messages/test', { schema: OPERATIONS.sendTest }, async (request, reply) => {
    const { recipients: numbers, ...body } = request.body
    const recipients = numbers.map(normalised)
    const { messageIds } = await accept({ ...body, accountId: callerOf(request).accountId, recipients, test: true })
    const items = recipients.map((recipient, index) => ({ recipient, messageId: messageIds[index] as string }))
    return await reply.code(202).send({ items })
  })

  app.get('/messages/:messageId', { schema: OPERATIONS.read }, async (request) => {
    return await readMessage(pool, callerOf(request).accountId, request.params.messageId)
  })
}

/** Of two, Node would make one text, which is neither. */
function idempotencyKey({ raw }: FastifyRequest): string {
  const [key = '', second] = raw.headersDistinct['idempotency-key'] ?? []
  if (second === undefined) return key
  throw new ApiError('RCS_IDEMPOTENCY_KEY_REQUIRED', { details: [{ path: '/idempotency-key', reason: 'must be there once' }] })
}

/** The schema has let only possible numbers through. */
function normalised(number: string): string {
  return normalisePhoneNumber(number) as string
}
