import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Pool } from '../db/pool.ts'
import { callerOf } from '../http/guard.ts'
import { createCursors } from './cursor.ts'
import { readFeed } from './feed.ts'
import { eventBody } from './pages.ts'
import { DEFAULT_PAGE, EVENT_SCHEMAS, OPERATIONS } from './schemas.ts'

// Events are stored in the form that callers get. Fastify's serializer would try the schema of each kind on every event, and fail the whole
// page for an event that fits none: a caller could never get past it.
const serializerCompiler = () => (body: unknown) => JSON.stringify(body)

export const eventRoutes: FastifyPluginAsyncTypebox<{ pool: Pool; cursorKey: Buffer }> = async (app, { pool, cursorKey }) => {
  const cursors = createCursors(cursorKey)
  for (const schema of EVENT_SCHEMAS) app.addSchema(schema)

  app.get('/events', { schema: OPERATIONS.follow, serializerCompiler }, async (request, reply) => {
    const { limit = DEFAULT_PAGE, after } = request.query
    const { items, nextCursor, hasMore } = await readFeed(pool, cursors, callerOf(request).accountId, {
      limit,
      ...(after !== undefined && { after }),
    })
    const body = `{"items":[${items.map(eventBody).join(',')}],"nextCursor":"${nextCursor}","hasMore":${hasMore}}`
    return await reply.type('application/json; charset=utf-8').send(body)
  })
}
