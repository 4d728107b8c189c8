import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'
import type { RecordChange } from '../audit/record.ts'
import type { Pool } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { present } from '../present.ts'
import { NoBody, NoQuery } from '../schemas.ts'
import { parseTimestamp } from '../time.ts'
import type { Attempt } from './attempts.ts'
import { findEndpoint } from './endpoints.ts'
import { replayAll, replayEvent, replayFailed } from './replay.ts'
import { withReplayLease } from './replay-lease.ts'
import { BODY_ERRORS, ENDPOINT_NOT_FOUND, EndpointPath, ReplayCount, ReplayRequest, TestResult, WEBHOOKS_TAG } from './schemas.ts'
import { awaitTest, testEndpoint } from './test-endpoint.ts'

const tags = [WEBHOOKS_TAG.name]
// 40 chunks, which take a few seconds. The command line has no limit.
const MAX_REPLAYED = 200_000

/** Waits for the result of a test, until the client disconnects. Then there is no response, and no fault to log. */
async function resultOf(pool: Pool, endpointId: number, { raw, request }: FastifyReply): Promise<Attempt> {
  const disconnecting = new AbortController()
  raw.once('close', () => disconnecting.abort())
  try {
    return await awaitTest(pool, await testEndpoint(pool, endpointId, request.recordChange), { signal: disconnecting.signal })
  } catch (error) {
    throw disconnecting.signal.aborted ? new ApiError('RCS_INVALID_REQUEST') : error
  }
}

export const postRoutes: FastifyPluginAsyncTypebox<{ pool: Pool }> = async (app, { pool }) => {
  app.post(
    '/webhook-endpoints/:id/test',
    {
      schema: {
        operationId: 'testWebhookEndpoint',
        tags,
        summary: 'Post a `webhook.test` event to an endpoint, and wait for the result',
        description: 'Responds after the first attempt, within 20 seconds. Repeating the request posts another event.',
        params: EndpointPath,
        querystring: NoQuery,
        body: NoBody,
        response: {
          200: { ...TestResult, description: 'The result of the attempt, accepted or not.' },
          ...errorResponses(ENDPOINT_NOT_FOUND, 'RCS_WEBHOOK_ENDPOINT_STATE', ...BODY_ERRORS),
        },
      },
      config: { scope: 'manage', audit: 'self' },
    },
    async (request, reply) => {
      const { endpointId } = await findEndpoint(pool, request.params.id, callerOf(request).accountId)
      return present(await resultOf(pool, endpointId, reply)) as never
    },
  )

  app.post(
    '/webhook-endpoints/:id/replay',
    {
      schema: {
        operationId: 'replayWebhookEvents',
        tags,
        summary: 'Post events to an endpoint again',
        description: `One event, or those of a time range, of the types that the endpoint gets; at most ${MAX_REPLAYED} in the range. One replay of an endpoint runs at a time. Repeating the request posts again what the endpoint has accepted since; drop repeats by \`eventId\`.`,
        params: EndpointPath,
        querystring: NoQuery,
        body: ReplayRequest,
        response: {
          200: { ...ReplayCount, description: 'The events are queued.' },
          ...errorResponses(ENDPOINT_NOT_FOUND, 'RCS_EVENT_NOT_FOUND', 'RCS_WEBHOOK_ENDPOINT_STATE', ...BODY_ERRORS),
        },
      },
      config: { scope: 'manage', audit: 'self' },
    },
    async (request) => {
      const { eventId, from, to, failed } = request.body
      const { endpointId } = await findEndpoint(pool, request.params.id, callerOf(request).accountId)
      const since = (from === undefined ? undefined : parseTimestamp(from)) ?? new Date(0)
      const record: RecordChange = async (tx) => await request.recordChange?.(tx, request.body)
      const options = { record, until: to === undefined ? undefined : parseTimestamp(to), maxEvents: MAX_REPLAYED }
      return await withReplayLease(pool, endpointId, () => {
        if (eventId !== undefined) return replayEvent(pool, endpointId, eventId, record)
        return (failed ? replayFailed : replayAll)(pool, endpointId, since, options)
      })
    },
  )
}
