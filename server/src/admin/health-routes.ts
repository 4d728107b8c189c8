import { hash } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isUnavailable } from '../db/pool.ts'
import { ERRORS } from '../errors.ts'
import type { Health } from '../health/health.ts'
import type { NodeStatus } from '../health/node-status.ts'
import { callersError, errorBody, errorResponses, JSON_TYPE } from '../http/error-responses.ts'
import { logOf } from '../http/log.ts'
import { NoQuery, refTo } from '../schemas.ts'
import { HealthBody, Node, NoHealthBody } from './health-schemas.ts'

export const HEALTH_TAG = { name: 'Health', description: 'Processes, queues, networks and the database.' }

/** `currentNode`: what this process knows of itself, without the database. */
type Options = { readHealth: () => Promise<Health>; currentNode: () => NodeStatus | undefined }

// Without the database nobody can be identified. Credentials that were an operator's so recently still get what this process knows of itself.
const REMEMBERED_MS = 60_000
const MAX_REMEMBERED = 1_000

export const healthRoutes: FastifyPluginAsyncTypebox<Options> = async (app, { readHealth, currentNode }) => {
  for (const schema of [Node, HealthBody, NoHealthBody]) app.addSchema(schema)
  const operators = createMemory()
  app.setErrorHandler((error, request, reply) => {
    if (!isUnavailable(error) || !operators.has(credentialsOf(request))) throw error
    return sendWithoutDatabase(error, request, reply, currentNode())
  })
  app.get(
    '/health',
    {
      schema: {
        operationId: 'readHealth',
        tags: [HEALTH_TAG.name],
        summary: 'Show whether everything works',
        description:
          'The cost does not grow with the history: counts stop at 1,000. While the database is out of reach, the response is 503. It has `node`, what this process knows of itself, if an operator read the health with the same credentials from this process within the last minute.',
        querystring: NoQuery,
        response: {
          200: refTo(HealthBody, { description: 'The figures. Requests share them until a second after they were read.' }),
          ...errorResponses(),
          503: { description: ERRORS.RCS_UNAVAILABLE.when, content: { 'application/json': { schema: refTo(NoHealthBody) } } },
        },
      },
      config: { role: 'operator' },
    },
    async (request) => {
      operators.add(credentialsOf(request))
      return (await readHealth()) as never
    },
  )
}

function sendWithoutDatabase(error: unknown, request: FastifyRequest, reply: FastifyReply, node: NodeStatus | undefined): FastifyReply {
  const known = callersError(error, () => logOf(request))
  return reply
    .code(ERRORS[known.code].status)
    .headers(known.headers)
    .type(JSON_TYPE)
    .send({ ...errorBody(known, request.id), ...(node && { node }) })
}

/** Only a hash is kept. */
function credentialsOf({ headers }: FastifyRequest): string {
  return hash('sha256', headers.authorization ?? headers.cookie ?? '', 'base64')
}

function createMemory() {
  const seenAt = new Map<string, number>()
  return {
    has: (key: string) => performance.now() - (seenAt.get(key) ?? Number.NEGATIVE_INFINITY) < REMEMBERED_MS,
    add: (key: string): void => {
      // Deleted first, so that the map is in the order of the last use.
      seenAt.delete(key)
      seenAt.set(key, performance.now())
      if (seenAt.size > MAX_REMEMBERED) seenAt.delete(seenAt.keys().next().value as string)
    },
  }
}
