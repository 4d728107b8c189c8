import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Pool } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { listQuery, listResponses } from '../http/list-schemas.ts'
import { locationOf } from '../http/location.ts'
import { checkSmsModule, fallbackOfRequest, hashOf, idempotencyKey, keepReceived } from '../messages/request-checks.ts'
import { BODY_ERRORS, IdempotencyHeaders, prepareMessage } from '../messages/schemas.ts'
import type { Fallback } from '../messages/sms-fallback.ts'
import { incomingMoment, momentsInOrder, NoBody, NoQuery, refTo } from '../schemas.ts'
import { acceptCampaign } from './accept.ts'
import { moveOwnCampaign, readCampaign } from './campaigns.ts'
import { CAMPAIGN_LIST, listOwnCampaigns } from './list.ts'
import { Campaign, CampaignId, CampaignRequest } from './schemas.ts'
import { CAMPAIGN_STATUSES } from './states.ts'

export const CAMPAIGNS_TAG = { name: 'Campaigns', description: 'One content for all members of one or more groups.' }

const AcceptedCampaign = Type.Object({ campaignId: CampaignId }, { additionalProperties: false })
export const CampaignPath = Type.Object({ id: Type.String() }, { additionalProperties: false })

const CampaignListQuery = listQuery(
  CAMPAIGN_LIST,
  {
    status: Type.Optional(Type.Enum([...CAMPAIGN_STATUSES])),
    clientReferenceId: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: 'Exactly this reference.' })),
    createdFrom: incomingMoment('Created at this time or later; or on this day (UTC) or later.'),
    createdTo: incomingMoment('Created before this time; or on this day (UTC) or earlier.'),
  },
  { rules: momentsInOrder('createdFrom', 'createdTo') },
)

type Options = { pool: Pool; publicUrl: () => string | undefined }

export const campaignRoutes: FastifyPluginAsyncTypebox<Options> = async (app, options) => {
  app.addSchema(Campaign)
  await app.register(createRoutes, options)
  await app.register(readRoutes, options)
  await app.register(moveRoutes, options)
}

const createRoutes: FastifyPluginAsyncTypebox<Options> = async (app, { pool, publicUrl }) => {
  app.post(
    '/campaigns',
    {
      schema: {
        operationId: 'createCampaign',
        tags: [CAMPAIGNS_TAG.name],
        summary: 'Send one content to all members of one or more groups',
        querystring: NoQuery,
        headers: IdempotencyHeaders,
        body: CampaignRequest,
        response: {
          202: {
            ...AcceptedCampaign,
            description: 'It is stored and will start. The same request with the same key gets the same response for at least 7 days.',
            headers: {
              Location: { type: 'string', description: 'The path of the campaign.' },
              'Idempotent-Replayed': { type: 'string', description: '`true` if the campaign had been accepted before.' },
            },
          },
          ...errorResponses(
            'RCS_IDEMPOTENCY_KEY_REQUIRED',
            'RCS_IDEMPOTENCY_CONFLICT',
            'RCS_INVALID_SMS_FALLBACK',
            'RCS_SEGMENT_NOT_FOUND',
            ...BODY_ERRORS.filter((code) => code !== 'RCS_INVALID_RECIPIENT'),
          ),
        },
      },
      preValidation: [keepReceived, (request: FastifyRequest) => checkSmsModule(pool, 'campaigns', request)],
      config: { scope: 'send' },
    },
    async (request, reply) => {
      const { smsFallback, smsFallbackAfterExpiry, ...body } = request.body
      const { campaignId, replayed } = await acceptCampaign(pool, {
        ...body,
        accountId: callerOf(request).accountId,
        fallback: fallbackOfCampaign(request, publicUrl()),
        idempotency: { key: idempotencyKey(request), hash: hashOf(request) },
      })
      if (replayed) {
        reply.header('Idempotent-Replayed', 'true')
        request.change = 'none'
      }
      return await reply.code(202).header('Location', locationOf(request, campaignId)).send({ campaignId })
    },
  )
}

/** The SMS is measured with the values for all members, and stored as it was written. */
function fallbackOfCampaign(request: FastifyRequest<{ Body: CampaignRequest }>, publicUrl: string | undefined): Fallback | undefined {
  const { body, received } = request
  const fallback = fallbackOfRequest({ body: prepareMessage(body).value as CampaignRequest, received }, publicUrl)
  const content = body.smsFallback?.smsMessagesPlan[0]?.content
  return fallback && { ...fallback, plan: { ...fallback.plan, content: content as string } }
}

const readRoutes: FastifyPluginAsyncTypebox<Options> = async (app, { pool }) => {
  app.get(
    '/campaigns',
    {
      schema: {
        operationId: 'listCampaigns',
        tags: [CAMPAIGNS_TAG.name],
        summary: 'List the campaigns of the account',
        querystring: CampaignListQuery,
        response: listResponses(refTo(Campaign), 'A page of campaigns.'),
      },
      config: { scope: 'read' },
    },
    async (request) => await listOwnCampaigns(pool, callerOf(request).accountId, request.query),
  )

  app.get(
    '/campaigns/:id',
    {
      schema: {
        operationId: 'readCampaign',
        tags: [CAMPAIGNS_TAG.name],
        summary: 'Read the state of a campaign',
        params: CampaignPath,
        querystring: NoQuery,
        response: { 200: refTo(Campaign, { description: 'The campaign.' }), ...errorResponses('RCS_CAMPAIGN_NOT_FOUND') },
      },
      config: { scope: 'read' },
    },
    async (request) => await readCampaign(pool, callerOf(request).accountId, request.params.id),
  )
}

const MOVES = [
  ['pause', 'PAUSED', 'Pause a campaign: messages and SMS that were not handed to the network wait until it is resumed'],
  ['resume', 'RUNNING', 'Resume a paused campaign'],
  ['cancel', 'CANCELLED', 'Cancel a campaign: messages and SMS that were not handed to the network are withdrawn for good'],
] as const

const moveRoutes: FastifyPluginAsyncTypebox<Options> = async (app, { pool }) => {
  for (const [action, to, summary] of MOVES) {
    app.post(
      `/campaigns/:id/${action}`,
      {
        schema: {
          operationId: `${action}Campaign`,
          tags: [CAMPAIGNS_TAG.name],
          summary,
          description: 'Repeating the request is not an error.',
          params: CampaignPath,
          querystring: NoQuery,
          body: NoBody,
          response: {
            200: refTo(Campaign, { description: 'The campaign.' }),
            ...errorResponses('RCS_CAMPAIGN_NOT_FOUND', 'RCS_CAMPAIGN_STATE', 'RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'),
          },
        },
        config: { scope: 'send', endsSending: to !== 'RUNNING', needsPassword: to === 'CANCELLED' },
      },
      async (request) => await moveOwnCampaign(pool, callerOf(request).accountId, request.params.id, to),
    )
  }
}
