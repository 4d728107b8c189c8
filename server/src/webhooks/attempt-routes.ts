import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Pool } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { listResponses } from '../http/list-schemas.ts'
import { present } from '../present.ts'
import { NoQuery, refTo } from '../schemas.ts'
import { listOwnAttempts } from './lists.ts'
import { readAttempt } from './read-attempt.ts'
import { AttemptPath, AttemptQuery, AttemptWithRequest, ENDPOINT_NOT_FOUND, EndpointPath, WEBHOOKS_TAG, WebhookAttempt } from './schemas.ts'

const tags = [WEBHOOKS_TAG.name]

export const attemptRoutes: FastifyPluginAsyncTypebox<{ pool: Pool }> = async (app, { pool }) => {
  app.addSchema(WebhookAttempt)
  app.get(
    '/webhook-endpoints/:id/attempts',
    {
      schema: {
        operationId: 'listWebhookAttempts',
        tags,
        summary: 'List the attempts to post events to an endpoint',
        description:
          'The attempts of the last 30 days. With a filter, a page may have fewer items than its limit, or none, and still a `nextCursor`: continue until it is null.',
        params: EndpointPath,
        querystring: AttemptQuery,
        response: listResponses(refTo(WebhookAttempt), 'A page of attempts.', ENDPOINT_NOT_FOUND),
      },
      config: { scope: 'read' },
    },
    async (request) => {
      const { items, nextCursor } = await listOwnAttempts(pool, callerOf(request).accountId, request.params.id, request.query)
      return { items: items.map((attempt) => present(attempt) as never), nextCursor }
    },
  )

  app.get(
    '/webhook-endpoints/:id/attempts/:attemptId',
    {
      schema: {
        operationId: 'readWebhookAttempt',
        tags,
        summary: 'Read an attempt, with what was posted',
        params: AttemptPath,
        querystring: NoQuery,
        response: {
          200: { ...AttemptWithRequest, description: 'The attempt.' },
          ...errorResponses(ENDPOINT_NOT_FOUND, 'RCS_NOT_FOUND'),
        },
      },
      config: { scope: 'read' },
    },
    async (request) => {
      const { id, attemptId } = request.params
      return present(await readAttempt(pool, callerOf(request).accountId, id, attemptId)) as never
    },
  )
}
