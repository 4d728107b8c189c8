import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { MessageContent } from '../content/content.ts'
import type { Pool } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { readContent } from '../messages/content.ts'
import { MESSAGES_TAG, MessagePath } from '../messages/routes.ts'
import { NoQuery } from '../schemas.ts'

const object = { additionalProperties: false }

// Not the schema of requests: stored content may be older than its rules, and the text of an erased person is empty.
export const ContentOfMessage = Type.Unsafe<MessageContent>({
  type: 'object',
  additionalProperties: true,
  description: 'As in the request, or its template.',
})

export const SmsOfMessage = Type.Object(
  {
    sender: Type.String(),
    text: Type.String({ description: 'As it is sent, but with the links of the request.' }),
    hasShortLinks: Type.Boolean({ description: 'Whether the recipient gets short links instead.' }),
  },
  { ...object, description: 'The SMS that the message falls back to, if it has one.' },
)

const SentContent = Type.Object(
  {
    messageId: Type.String({ format: 'uuid' }),
    content: ContentOfMessage,
    sms: Type.Optional(SmsOfMessage),
  },
  { ...object, description: 'What the message says.' },
)

export const messageContentRoutes: FastifyPluginAsyncTypebox<{ pool: Pool }> = async (app, { pool }) => {
  app.get(
    '/messages/:messageId/content',
    {
      schema: {
        operationId: 'readMessageContent',
        tags: [MESSAGES_TAG.name],
        summary: 'Read what a message says',
        params: MessagePath,
        querystring: NoQuery,
        response: { 200: SentContent, ...errorResponses('RCS_MESSAGE_NOT_FOUND') },
      },
      config: { role: 'viewer' },
    },
    async (request) => await readContent(pool, callerOf(request).accountId, request.params.messageId),
  )
}
