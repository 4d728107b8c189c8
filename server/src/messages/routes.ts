import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Pool } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf, checkModule } from '../http/guard.ts'
import { normalisePhoneNumber } from '../phone-numbers.ts'
import { NoQuery, refTo } from '../schemas.ts'
import { type Accepted, createAcceptor, type Submission, UnconfirmedCaller } from './accept.ts'
import type { Announce } from './announce.ts'
import { readMessage } from './messages.ts'
import { checkSmsModule, idempotencyKey } from './request-checks.ts'
import { requestHash } from './request-hash.ts'
import {
  AcceptedMessage,
  AcceptedTestMessages,
  BODY_ERRORS,
  IdempotencyHeaders,
  Message,
  MessageRequest,
  TestMessageRequest,
} from './schemas.ts'
import type { Reserve } from './send-at-once.ts'
import { fallbackOf } from './sms-fallback.ts'

export const MESSAGES_TAG = { name: 'Messages', description: 'Send one message to one recipient, and read its status.' }

const tags = [MESSAGES_TAG.name]
const MessagePath = Type.Object({ messageId: Type.String() }, { additionalProperties: false })

type Options = { pool: Pool; publicUrl: () => string | undefined; reserve: Reserve; announce: Announce }
type AcceptFrom = (request: FastifyRequest, submission: Omit<Submission, 'accountId'>) => Promise<Accepted>

export const messageRoutes: FastifyPluginAsyncTypebox<Options> = async (app, { pool, publicUrl, reserve, announce }) => {
  app.addSchema(Message)
  const acceptFrom = createRequestAcceptor(pool, createAcceptor(pool, announce, reserve))
  await app.register(sendRoutes, { pool, publicUrl, acceptFrom })
  await app.register(testRoutes, { acceptFrom })
  await app.register(readRoutes, { pool })
}

/** If a recalled caller has changed, looks the caller up, and repeats the checks that depend on it. */
function createRequestAcceptor(pool: Pool, accept: (submission: Submission) => Promise<Accepted>): AcceptFrom {
  return async function acceptFrom(request, submission) {
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
}

type SendOptions = Pick<Options, 'pool' | 'publicUrl'> & { acceptFrom: AcceptFrom }

const sendRoutes: FastifyPluginAsyncTypebox<SendOptions> = async (app, { pool, publicUrl, acceptFrom }) => {
  app.post(
    '/messages',
    {
      schema: {
        operationId: 'sendMessage',
        tags,
        summary: 'Send a message to one recipient',
        querystring: NoQuery,
        headers: IdempotencyHeaders,
        body: MessageRequest,
        response: {
          202: {
            ...AcceptedMessage,
            description:
              'The message is stored and will be sent. The same request with the same key gets this response for at least 7 days.',
            headers: {
              Location: { type: 'string', description: 'The path of the message.' },
              'Idempotent-Replayed': { type: 'string', description: '`true` if the message had been accepted before.' },
            },
          },
          ...errorResponses('RCS_IDEMPOTENCY_KEY_REQUIRED', 'RCS_IDEMPOTENCY_CONFLICT', 'RCS_INVALID_SMS_FALLBACK', ...BODY_ERRORS),
        },
      },
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
}

const testRoutes: FastifyPluginAsyncTypebox<{ acceptFrom: AcceptFrom }> = async (app, { acceptFrom }) => {
  app.post(
    '/messages/test',
    {
      schema: {
        operationId: 'sendTestMessage',
        tags,
        summary: 'Send a test message to up to five numbers of your own; no report counts it',
        querystring: NoQuery,
        body: TestMessageRequest,
        response: { 202: { ...AcceptedTestMessages, description: 'They are stored and will be sent.' }, ...errorResponses(...BODY_ERRORS) },
      },
      config: { confirmsCaller: true },
    },
    async (request, reply) => {
      const { recipients: phones, ...body } = request.body
      const recipients = phones.map(normalised)
      const { messageIds } = await acceptFrom(request, { ...body, recipients, test: true })
      const items = recipients.map((recipient, index) => ({ recipient, messageId: messageIds[index] as string }))
      return await reply.code(202).send({ items })
    },
  )
}

const readRoutes: FastifyPluginAsyncTypebox<{ pool: Pool }> = async (app, { pool }) => {
  app.get(
    '/messages/:messageId',
    {
      schema: {
        operationId: 'readMessage',
        tags,
        summary: 'Read a message and its status',
        params: MessagePath,
        querystring: NoQuery,
        response: {
          200: refTo(Message, { description: 'The message. Fields of steps that have not happened are absent.' }),
          ...errorResponses('RCS_MESSAGE_NOT_FOUND'),
        },
      },
    },
    async (request) => await readMessage(pool, callerOf(request).accountId, request.params.messageId),
  )
}

/** The schema accepts only possible phone numbers. */
function normalised(phone: string): string {
  return normalisePhoneNumber(phone) as string
}
