import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Pool } from '../db/pool.ts'
import type { Violation } from '../errors.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { refTo } from '../schemas.ts'
import { parseTimestamp } from '../time.ts'
import { createCursors } from './cursor.ts'
import { readFeed } from './feed.ts'
import { EVENT_KINDS, type EventKind } from './kinds.ts'
import { eventBody } from './pages.ts'
import { EVENT_SCHEMAS, EVENTS_TAG, Event } from './schemas.ts'

const DEFAULT_PAGE = 50
const MAX_PAGE = 200

const FeedQuery = Type.Object(
  {
    after: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description:
          '`nextCursor` of the previous page; or `now`, for a cursor of the newest event. Absent, with `since` absent: the oldest event.',
      }),
    ),
    since: Type.Optional(
      Type.String({
        format: 'timestamp',
        description:
          'Start with the events recorded at this time or later. The page may begin with events recorded a little earlier. Not with `after`.',
        examples: ['2026-01-31T08:00:00Z'],
      }),
    ),
    types: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1_000,
        rules: typesRule,
        description: 'Only events of these types, separated by commas. You may change them from page to page.',
        examples: ['message.delivered,message.failed'],
      }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_PAGE, default: DEFAULT_PAGE })),
  },
  { additionalProperties: false, rules: startRule },
)

function typesRule(types: string): Violation[] {
  const isKnown = types === '' || types.split(',').every((type) => EVENT_KINDS.some((kind) => kind === type))
  return isKnown ? [] : [{ path: '', reason: `must be one or more of ${EVENT_KINDS.join(', ')}, separated by commas` }]
}

function startRule({ after, since }: Record<string, unknown>): Violation[] {
  return after === undefined || since === undefined ? [] : [{ path: '/since', reason: 'must be absent if after is given' }]
}

const EventPage = Type.Object(
  {
    items: Type.Array(refTo(Event), { description: 'In the order of the log. The events of one message are in the order of its changes.' }),
    nextCursor: Type.String({ description: 'The cursor of the next page, also after an empty page. It does not expire.' }),
    hasMore: Type.Boolean({
      description: 'Whether there were more events when this page was read. With `types`, a page may be empty although there are.',
    }),
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
          'Returns every event of the last 30 days exactly once. Has a limit of its own: 5 requests in a second for each pair of address and key. No event ever appears before a position that you have read. Store `nextCursor` together with the results of the page.',
        querystring: FeedQuery,
        response: {
          // Typed as a string, since the route assembles the response from stored events.
          200: Type.Unsafe<string>({ ...EventPage, description: 'The next events; none if nothing has happened since.' }),
          ...errorResponses('RCS_INVALID_CURSOR', 'RCS_CURSOR_GONE'),
        },
      },
      serializerCompiler,
      config: { scope: 'read' },
    },
    async (request, reply) => {
      const { limit = DEFAULT_PAGE, after, since, types } = request.query
      const { items, nextCursor, hasMore } = await readFeed(pool, cursors, callerOf(request).accountId, {
        limit,
        after,
        since: since === undefined ? undefined : parseTimestamp(since),
        types: types?.split(',') as EventKind[] | undefined,
      })
      const body = `{"items":[${items.map(eventBody).join(',')}],"nextCursor":"${nextCursor}","hasMore":${hasMore}}`
      return await reply.type('application/json; charset=utf-8').send(body)
    },
  )
}
