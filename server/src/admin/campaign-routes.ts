import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { readCampaign } from '../campaigns/campaigns.ts'
import { planCancel } from '../campaigns/cancel.ts'
import { planRetry, retryCampaign } from '../campaigns/retry.ts'
import { CAMPAIGNS_TAG, CampaignPath } from '../campaigns/routes.ts'
import { Campaign } from '../campaigns/schemas.ts'
import type { Pool } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { NoQuery, refTo } from '../schemas.ts'

const tags = [CAMPAIGNS_TAG.name]
const object = { additionalProperties: false }

const IncludeCancelled = Type.Optional(
  Type.Boolean({ description: 'Also recipients whose message was withdrawn when the campaign was cancelled.' }),
)
const RetryChoice = Type.Object({ includeCancelled: IncludeCancelled }, object)

const CancelPlan = Type.Object(
  {
    isOver: Type.Boolean({ description: 'The campaign is over, so there is nothing to cancel.' }),
    waiting: Type.Integer({ description: 'Messages that were not handed to the network; some may still be sent.' }),
    waitingSms: Type.Integer(),
    notCreated: Type.Integer({ description: 'The largest possible number of recipients that have no message yet.' }),
  },
  { ...object, description: 'What a cancellation would withdraw now.' },
)
const RetryPlan = Type.Object(
  {
    messages: Type.Integer(),
    reasons: Type.Unsafe<Record<string, number>>({
      type: 'object',
      additionalProperties: { type: 'integer' },
      description: 'Why the messages failed, and how many for each reason.',
    }),
    isMore: Type.Boolean({ description: 'Counting ended before all messages were read: the numbers are at least these.' }),
    withdrawn: Type.Integer({ description: 'Messages that a cancellation has withdrawn, whether `messages` includes them or not.' }),
  },
  { ...object, description: 'What a retry would send now. Counting ends after a few seconds.' },
)

/** What commands can do with campaigns, and callers of the API cannot. */
export const campaignPlanRoutes: FastifyPluginAsyncTypebox<{ pool: Pool }> = async (app, { pool }) => {
  app.addSchema(Campaign)
  app.get(
    '/campaigns/:id/cancel-plan',
    {
      schema: {
        operationId: 'planCancel',
        tags,
        summary: 'Count what cancelling a campaign would withdraw',
        params: CampaignPath,
        querystring: NoQuery,
        response: { 200: CancelPlan, ...errorResponses('RCS_CAMPAIGN_NOT_FOUND') },
      },
      config: { role: 'admin' },
    },
    async (request) => {
      const { campaignId } = await readCampaign(pool, callerOf(request).accountId, request.params.id)
      const plan = await planCancel(pool, campaignId)
      if (plan === undefined) return { isOver: true, waiting: 0, waitingSms: 0, notCreated: 0 }
      const { campaign: _, ...counts } = plan
      return { isOver: false, ...counts }
    },
  )

  app.get(
    '/campaigns/:id/retry-plan',
    {
      schema: {
        operationId: 'planRetry',
        tags,
        summary: 'Count what retrying a campaign would send',
        params: CampaignPath,
        querystring: RetryChoice,
        response: { 200: RetryPlan, ...errorResponses('RCS_CAMPAIGN_NOT_FOUND', 'RCS_REFUSED') },
      },
      config: { role: 'admin' },
    },
    async (request) => {
      const { campaignId } = await readCampaign(pool, callerOf(request).accountId, request.params.id)
      const { campaign: _, ...counts } = await planRetry(pool, campaignId, request.query)
      return counts
    },
  )

  app.post(
    '/campaigns/:id/retry',
    {
      schema: {
        operationId: 'retryCampaign',
        tags,
        summary: 'Start a new campaign to the recipients whose message failed',
        params: CampaignPath,
        querystring: NoQuery,
        body: RetryChoice,
        response: {
          201: refTo(Campaign, { description: 'The new campaign.' }),
          ...errorResponses('RCS_CAMPAIGN_NOT_FOUND', 'RCS_REFUSED', 'RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'),
        },
      },
      // The response is the new campaign, not the one that the path names.
      config: { scope: 'send', audit: 'result' },
    },
    async (request, reply) => {
      const { campaignId } = await readCampaign(pool, callerOf(request).accountId, request.params.id)
      return await reply.code(201).send(await retryCampaign(pool, campaignId, request.body))
    },
  )
}
