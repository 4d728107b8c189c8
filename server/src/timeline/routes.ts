import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Pool } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { MESSAGES_TAG } from '../messages/routes.ts'
import { NoQuery, OutgoingTime } from '../schemas.ts'
import { STEPS, type Step } from './steps.ts'
import { readTimeline } from './timeline.ts'

const Item = Type.Object(
  {
    occurredAt: Type.Unsafe<Date>({ ...OutgoingTime, description: 'When it happened; for a receipt, by the network’s clock.' }),
    step: Type.Enum(Object.keys(STEPS) as Step[]),
    reason: Type.Union([Type.String(), Type.Null()], {
      description: 'A stable code, if the step has one. docs/errors.md lists all codes.',
    }),
    description: Type.String({ description: 'The step in words, with the text of the network.' }),
    data: Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      additionalProperties: true,
      description:
        '`attempt-failed`: `attempt`, `response`. `failed`, `sms-failed`: `response`, if the network sent one. `sms-checked`: `rules`, each with `rule`, `result` (`passed`, `failed`, `not-required`) and its facts. SMS steps: `segments`, `encoding`, `sender`, `dueAt`. Actions: as in their events. `webhook-attempt`: `endpointId`, `type`, `attempt`, `status` or `error`. Receipts after the final status: `reportedAt`.',
    }),
  },
  { additionalProperties: false },
)

const Timeline = Type.Object({ messageId: Type.String({ format: 'uuid' }), items: Type.Array(Item) }, { additionalProperties: false })

export const timelineRoutes: FastifyPluginAsyncTypebox<{ pool: Pool }> = async (app, { pool }) => {
  app.get(
    '/messages/:messageId/timeline',
    {
      schema: {
        operationId: 'readTimeline',
        tags: [MESSAGES_TAG.name],
        summary: 'Read everything that happened to a message',
        description:
          'Steps are oldest first. They exist as long as the message, except calls of webhook endpoints, which are kept for 30 days.',
        params: Type.Object({ messageId: Type.String() }, { additionalProperties: false }),
        querystring: NoQuery,
        response: { 200: { ...Timeline, description: 'The steps of the message.' }, ...errorResponses('RCS_MESSAGE_NOT_FOUND') },
      },
      config: { scope: 'read' },
    },
    async (request) => {
      const items = await readTimeline(pool, callerOf(request).accountId, request.params.messageId)
      return { messageId: request.params.messageId.toLowerCase(), items }
    },
  )
}
