import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Pool } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf, checkRights } from '../http/guard.ts'
import { listResponses } from '../http/list-schemas.ts'
import { locationOf } from '../http/location.ts'
import { sealListCursors } from '../http/sealed-cursors.ts'
import { normalisePhoneNumber } from '../phone-numbers.ts'
import { NoBody, NoQuery, refTo } from '../schemas.ts'
import { parseTimestamp } from '../time.ts'
import { readWindow } from '../windows/recipients.ts'
import { type Accepted, acceptedEntry, createAcceptor, type Submission, UnconfirmedCaller } from './accept.ts'
import type { Announce } from './announce.ts'
import { listMessages } from './list.ts'
import { type Message as MessageBody, readMessage } from './messages.ts'
import { checkSmsModule, fallbackOfRequest, hashOf, idempotencyKey, keepReceived } from './request-checks.ts'
import {
  AcceptedMessage,
  AcceptedTestMessages,
  BODY_ERRORS,
  IdempotencyHeaders,
  Message,
  MessageListQuery,
  MessageRequest,
  TestMessageRequest,
} from './schemas.ts'
import type { Reserve } from './send-at-once.ts'

export const MESSAGES_TAG = { name: 'Messages', description: 'Send one message to one recipient, and read its status.' }

const tags = [MESSAGES_TAG.name]
export const MessagePath = Type.Object({ messageId: Type.String() }, { additionalProperties: false })

type Options = {
  pool: Pool
  /** For statements that need PostgreSQL's own planner settings. */
  listPool: Pool
  /** Encrypts the cursors of the list. */
  cursorKey: Buffer
  publicUrl: () => string | undefined
  reserve: Reserve
  announce: Announce
  /** Whether requests share statements. If not, each request has its own transaction, and its caller has no key that could be confirmed. */
  batches: boolean
  cancel: (pool: Pool, accountId: number, messageId: string) => Promise<MessageBody>
}
type AcceptFrom = (request: FastifyRequest, submission: Omit<Submission, 'accountId'>) => Promise<Accepted>

export const messageRoutes: FastifyPluginAsyncTypebox<Options> = async (app, options) => {
  const { pool, publicUrl, reserve, announce, batches } = options
  app.addSchema(Message)
  const acceptAlone = (submission: Submission) => createAcceptor(pool, announce, reserve)({ ...submission, caller: undefined })
  const acceptFrom = createRequestAcceptor(pool, batches ? createAcceptor(pool, announce, reserve) : acceptAlone)
  await app.register(sendRoutes, { pool, publicUrl, acceptFrom })
  await app.register(testRoutes, { acceptFrom })
  await app.register(readRoutes, options)
  await app.register(listRoutes, options)
  await app.register(cancelRoutes, options)
}

/**
 * If the caller has changed since its request began, looks the caller up, and repeats the checks that depend on it. A slow body can take 30 s:
 * without this, messages of an account that was suspended meanwhile would be accepted, and perhaps sent at once.
 */
function createRequestAcceptor(pool: Pool, accept: (submission: Submission) => Promise<Accepted>): AcceptFrom {
  return async function acceptFrom(request, submission) {
    const caller = callerOf(request)
    const { accountId, accountVersion } = caller
    try {
      return await accept({ ...submission, accountId, accountVersion, caller })
    } catch (error) {
      if (!(error instanceof UnconfirmedCaller) || request.lookUpCaller === undefined) throw error
      await request.lookUpCaller()
      checkRights(request)
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
      preValidation: [keepReceived, (request: FastifyRequest) => checkSmsModule(pool, 'messages', request)],
      config: { scope: 'send', confirmsCaller: true },
    },
    async (request, reply) => {
      const { recipient, smsFallback, smsFallbackAfterExpiry, deliveryWindow, ...body } = request.body
      const phone = normalised(recipient)
      const recipients = [phone]
      const accepted = await acceptFrom(request, {
        ...body,
        recipients,
        test: false,
        window: deliveryWindow && (await readWindow(pool, callerOf(request).accountId, phone, deliveryWindow, timeOf(body.sendAt))),
        fallback: fallbackOfRequest(request, publicUrl()),
        idempotency: { key: idempotencyKey(request), hash: hashOf(request) },
      })
      if (accepted.replayed) reply.header('Idempotent-Replayed', 'true')
      request.change = accepted.replayed ? 'none' : acceptedEntry(accepted, { ...body, recipients })
      const messageId = accepted.messageIds[0] as string
      return await reply.code(202).header('Location', locationOf(request, messageId)).send({ messageId })
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
      config: { scope: 'send', confirmsCaller: true },
    },
    async (request, reply) => {
      const { recipients: phones, ...body } = request.body
      const recipients = phones.map(normalised)
      const accepted = await acceptFrom(request, { ...body, recipients, test: true })
      request.change = acceptedEntry(accepted, { ...body, recipients })
      const items = recipients.map((recipient, index) => ({ recipient, messageId: accepted.messageIds[index] as string }))
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
      config: { scope: 'read' },
    },
    async (request) => await readMessage(pool, callerOf(request).accountId, request.params.messageId),
  )
}

const listRoutes: FastifyPluginAsyncTypebox<Pick<Options, 'listPool' | 'cursorKey'>> = async (app, { listPool, cursorKey }) => {
  // By recipient, a page may end at a message of another account (list-plan.ts).
  const { seal, open } = sealListCursors(cursorKey, 'message list')
  app.get(
    '/messages',
    {
      schema: {
        operationId: 'listMessages',
        tags,
        summary: 'List messages',
        description:
          'Filters can be combined. If few messages match, a page may have fewer than `limit` of them, or none, and still a `nextCursor`: the list ends where `nextCursor` is null.',
        querystring: MessageListQuery,
        response: listResponses(refTo(Message), 'A page of the list.'),
      },
      config: { scope: 'read' },
    },
    async (request) => {
      const { accountId } = callerOf(request)
      const { cursor, ...query } = request.query
      const page = await listMessages(listPool, accountId, { ...query, ...(cursor && { cursor: open(accountId, cursor) }) })
      return { ...page, nextCursor: page.nextCursor && seal(accountId, page.nextCursor) }
    },
  )
}

const cancelRoutes: FastifyPluginAsyncTypebox<Pick<Options, 'pool' | 'cancel'>> = async (app, { pool, cancel }) => {
  app.post(
    '/messages/:messageId/cancel',
    {
      schema: {
        operationId: 'cancelMessage',
        tags,
        summary: 'Cancel a message that has not been sent',
        description:
          'The message becomes `FAILED` with the reason `CANCELLED`, and its SMS is skipped. A second request gets the same response.',
        params: MessagePath,
        querystring: NoQuery,
        body: NoBody,
        response: {
          200: refTo(Message, { description: 'The cancelled message.' }),
          ...errorResponses('RCS_MESSAGE_NOT_FOUND', 'RCS_MESSAGE_STATE', 'RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'),
        },
      },
      config: { scope: 'send', endsSending: true },
    },
    async (request) => await cancel(pool, callerOf(request).accountId, request.params.messageId),
  )
}

const timeOf = (text: string | undefined) => (text === undefined ? undefined : parseTimestamp(text))

/** The schema accepts only possible phone numbers. */
function normalised(phone: string): string {
  return normalisePhoneNumber(phone) as string
}
