import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Pool } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import type { Cursors } from '../events/cursor.ts'
import { errorResponses } from '../http/error-responses.ts'
import type { Role } from '../people/roles.ts'
import { MAX_ID } from '../schemas.ts'
import { type Admin, adminOf, ownerOf, roleOf } from './guard.ts'
import { findPlace } from './stream/events.ts'
import type { Subscription } from './stream/stream.ts'
import type { Streams } from './stream/streams.ts'

export const STREAM_TAG = { name: 'Stream', description: 'Events, campaign counts and health as they happen.' }

const DESCRIPTION = `Server-sent events, as browsers read them with \`EventSource\`. An event of the account's log has no name; its data is the event as in \`GET /accounts/{accountId}/events\`, and its \`id\` is a cursor of that feed. After a lost connection, \`Last-Event-ID\` continues exactly there: no event is missing and none comes twice.

Further events: \`ready\` comes first, with a cursor. \`busy\` comes instead of events if there are more than 50 in a second: \`{ count, after }\`, where \`after\` is the cursor before the first of them; read them from the feed, or load your data again. \`campaign\` is a running campaign with its counts, as in \`GET /accounts/{accountId}/campaigns/{id}\`: at first, when they change (at most once a second), and once more when it no longer runs. \`health\` is for operators, every five seconds, as in \`GET /health\`. \`end\`, with a \`code\`, comes before Herald ends the stream.

A stream ends within ten seconds after its session or token ends or loses its role in the account. It also ends when the client reads nothing for 30 seconds although something was sent, and when the process shuts down. Viewers get masked phone numbers. A person or token may have 20 streams open at a process.`

const StreamQuery = Type.Object(
  {
    accountId: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_ID, description: 'Without it, only the health, for operators.' })),
    cursor: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description:
          'Begin after this event: the `id` of an event, or a cursor of the feed. `Last-Event-ID` wins. Absent or `now`: from now on.',
      }),
    ),
  },
  { additionalProperties: false },
)

type Options = { pool: Pool; cursors: Cursors; streams: Streams }

export const streamRoutes: FastifyPluginAsyncTypebox<Options> = async (app, { pool, cursors, streams }) => {
  app.get(
    '/stream',
    {
      exposeHeadRoute: false,
      schema: {
        operationId: 'streamEvents',
        tags: [STREAM_TAG.name],
        summary: 'Follow the events of an account',
        description: DESCRIPTION,
        querystring: StreamQuery,
        response: {
          200: {
            description: 'Events until the connection ends, and, while there are none, a comment and an event `ping` every 15 seconds.',
            content: { 'text/event-stream': { schema: Type.String() } },
          },
          ...errorResponses('RCS_ACCOUNT_NOT_FOUND', 'RCS_INVALID_CURSOR', 'RCS_CURSOR_GONE'),
        },
      },
      config: { role: 'viewer', accountIn: 'query', isBackground: true },
    },
    async (request, reply) => {
      const { accountId } = request.query
      const at = accountId === undefined ? undefined : await placeOf(request, accountId)
      // A client that has disconnected needs no stream.
      if (reply.raw.closed) return reply.hijack()
      streams.open(reply, {
        accountId,
        at,
        role: roleOf(request) as Role,
        owner: ownerOf(request),
        credentials: credentialsOf(adminOf(request)),
      })
      return reply
    },
  )

  async function placeOf({ query, headers }: FastifyRequest, accountId: number) {
    const { 'last-event-id': lastId } = headers
    const [path, cursor] = typeof lastId === 'string' ? ['/last-event-id', lastId] : ['/cursor', (query as { cursor?: string }).cursor]
    try {
      return await findPlace({ pool, cursors }, accountId, cursor)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      throw new ApiError(error.code, { details: (error.details ?? []).map(({ reason }) => ({ path, reason })) })
    }
  }
}

function credentialsOf(admin: Admin): Subscription['credentials'] {
  return 'token' in admin ? { tokenId: admin.token.tokenId } : { sessionId: admin.session.sessionId }
}
