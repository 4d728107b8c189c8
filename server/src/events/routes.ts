import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Pool } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { refTo } from '../schemas.ts'
import { createCursors } from './cursor.ts'
import { readFeed } from './feed.ts'
import { eventBody } from './pages.ts'
import { EVENT_SCHEMAS, EVENTS_TAG, Event } from './schemas.ts'

const DEFAULT_PAGE = 50
const MAX_PAGE = 200

const FeedQuery = Type.Object(
  {
    after: Type.Optional(
      Type.String({ minLength: 1, maxLength: 100, description: '`nextCursor` of the previous page. Omit it for the first page.' }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_PAGE, default: DEFAULT_PAGE })),
  },
  { additionalProperties: false },
)

const EventPage = Type.Object(
  {
    items: Type.Array(refTo(Event), { description: 'In the order of the log. The events of one message are in the order of its changes.' }),
    nextCursor: Type.String({ description: 'The cursor of the next page, also after an empty page. It does not expire.' }),
    hasMore: Type.Boolean({ description: 'Whether there were more events when this page was read.' }),
  },
  { additionalProperties: false },
)

// Events are stored in the form that callers get. Fastify's serializer would try the schema of each kind on every event, and fail the whole
// page for an event that fits none: a caller could never get past it.
const serializerCompiler = () => (body: unknown) => JSON.stringify(body)

export const eventRoutes: FastifyPluginAsyncTypebox<{ pool: Pool; cursorKey: Buffer }> = async (app, { pool, cursorKey }) => {
  const cursors = createCursors(cursorKey)
  for (const schema of EVENT_SCHEMAS) app.addSchema(schema)

  app.get(
    '/events',
    {
      schema: {
        operationId: 'followEvents',
        tags: [EVENTS_TAG.name],
        summary: 'Read the events after a cursor',
        description:
          'Returns every event of the last 30 days exactly once. No event ever appears before a position that you have read. Store `nextCursor` together with the results of the page.',
        querystring: FeedQuery,
        response: {
          // Typed as a string, since the route assembles the response from stored events.
          200: Type.Unsafe<string>({ ...EventPage, description: 'The next events; none if nothing has happened since.' }),
          ...errorResponses(),
        },
      },
      serializerCompiler,
      config: { scope: 'read' },
    },
    async (request, reply) => {
      const { limit = DEFAULT_PAGE, after } = request.query
      const { items, nextCursor, hasMore } = await readFeed(pool, cursors, callerOf(request).accountId, {
        limit,
        ...(after !== undefined && { after }),
      })
      const body = `{"items":[${items.map(eventBody).join(',')}],"nextCursor":"${nextCursor}","hasMore":${hasMore}}`
      return await reply.type('application/json; charset=utf-8').send(body)
    },
  )
}
