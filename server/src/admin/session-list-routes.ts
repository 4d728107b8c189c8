import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Pool } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import { listQuery, listResponses } from '../http/list-schemas.ts'
import { findPerson } from '../people/people.ts'
import { endSession, listSessions, readSessionsPage, SESSION_LIST } from '../people/sessions.ts'
import { NoBody, NoQuery, OutgoingTime } from '../schemas.ts'
import { PersonPath } from './people-schemas.ts'
import { SESSION_TAG, sessionOf } from './session-routes.ts'

const tags = [SESSION_TAG.name]
const END_ERRORS = ['RCS_SESSION_NOT_FOUND', 'RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'] as const

const SESSION_ID = { sessionId: Type.String() }
const SessionPath = Type.Object(SESSION_ID, { additionalProperties: false })
const PersonSessionPath = Type.Object({ ...PersonPath.properties, ...SESSION_ID }, { additionalProperties: false })
const ListedSession = Type.Object(
  {
    ...SESSION_ID,
    createdAt: OutgoingTime,
    lastUsedAt: OutgoingTime,
    address: Type.String(),
    userAgent: Type.String(),
  },
  { additionalProperties: false },
)
const Ended = Type.Null({ description: 'The session has ended, on every node.' })

type Routes = FastifyPluginAsyncTypebox<{ pool: Pool }>

/** The end of a session is recorded in the audit log, unlike a sign-out. */
export const sessionListRoutes: Routes = async (app, options) => {
  await app.register(ownRoutes, options)
  await app.register(personRoutes, options)
}

async function end(pool: Pool, request: FastifyRequest, reply: FastifyReply, personId: number): Promise<FastifyReply> {
  const { sessionId } = request.params as { sessionId: string }
  const ended = (await listSessions(pool, personId)).find((session) => session.sessionId === sessionId)
  await endSession(pool, personId, sessionId)
  request.change = { before: { personId, ...ended }, after: null }
  return await reply.code(204).send(null)
}

const ownRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/sessions',
    {
      schema: {
        operationId: 'listSessions',
        tags,
        summary: 'List your own sessions',
        querystring: listQuery(SESSION_LIST, {}),
        response: listResponses(ListedSession, 'A page of sessions.'),
      },
      config: { anyRole: true, needsSession: true },
    },
    async (request) => await readSessionsPage(pool, sessionOf(request).personId, request.query),
  )

  app.delete(
    '/sessions/:sessionId',
    {
      schema: {
        operationId: 'endSession',
        tags,
        summary: 'End one of your sessions',
        params: SessionPath,
        querystring: NoQuery,
        body: NoBody,
        response: { 204: Ended, ...errorResponses(...END_ERRORS) },
      },
      config: { anyRole: true, needsSession: true },
    },
    async (request, reply) => await end(pool, request, reply, sessionOf(request).personId),
  )
}

const personRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/people/:personId/sessions',
    {
      schema: {
        operationId: 'listPersonSessions',
        tags,
        summary: 'List the sessions of a person',
        params: PersonPath,
        querystring: listQuery(SESSION_LIST, {}),
        response: listResponses(ListedSession, 'A page of sessions.', 'RCS_NOT_FOUND'),
      },
      config: { role: 'operator' },
    },
    async (request) => {
      const { personId } = await findPerson(pool, request.params)
      return await readSessionsPage(pool, personId, request.query)
    },
  )

  app.delete(
    '/people/:personId/sessions/:sessionId',
    {
      schema: {
        operationId: 'endPersonSession',
        tags,
        summary: 'End a session of a person',
        params: PersonSessionPath,
        querystring: NoQuery,
        body: NoBody,
        response: { 204: Ended, ...errorResponses(...END_ERRORS) },
      },
      config: { role: 'operator', needsPassword: true },
    },
    async (request, reply) => await end(pool, request, reply, request.params.personId),
  )
}
