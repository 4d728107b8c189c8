import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Pool } from '../db/pool.ts'
import { callerOf } from '../http/guard.ts'
import { checkPeriods, readAggregations } from './aggregations.ts'
import { requireCampaign } from './campaign.ts'
import { listActions, listRecipients } from './lists.ts'
import { Aggregations, CampaignSummary, MessagesSummary, OPERATIONS } from './schemas.ts'
import { readSummary } from './summary.ts'

export const reportRoutes: FastifyPluginAsyncTypebox<{ pool: Pool }> = async (app, { pool }) => {
  for (const schema of [CampaignSummary, MessagesSummary, Aggregations]) app.addSchema(schema)

  app.get('/reports/campaigns/:id/summary', { schema: OPERATIONS.campaignSummary }, async (request) => {
    const { accountId } = callerOf(request)
    const { id } = await requireCampaign(pool, accountId, request.params.id)
    return { campaignId: id, ...(await readSummary(pool, accountId, id, request.query)) }
  })

  app.get('/reports/campaigns/:id/aggregations', { schema: OPERATIONS.campaignAggregations }, async (request) => {
    const { accountId } = callerOf(request)
    const { interval = 'day', ...range } = request.query
    checkPeriods(range, interval)
    const { id } = await requireCampaign(pool, accountId, request.params.id)
    return await readAggregations(pool, accountId, id, range, interval)
  })

  app.get('/reports/campaigns/:id/action-details', { schema: OPERATIONS.actions }, async (request) => {
    return await listActions(pool, callerOf(request).accountId, request.params.id, request.query)
  })

  app.get('/reports/campaigns/:id/recipients/:eventType', { schema: OPERATIONS.recipients }, async (request) => {
    const { id, eventType } = request.params
    return await listRecipients(pool, callerOf(request).accountId, id, eventType, request.query)
  })

  app.get('/reports/messages/summary', { schema: OPERATIONS.messagesSummary }, async (request) => {
    return await readSummary(pool, callerOf(request).accountId, undefined, request.query)
  })

  app.get('/reports/messages/aggregations', { schema: OPERATIONS.messagesAggregations }, async (request) => {
    return await readAggregations(pool, callerOf(request).accountId, undefined, request.query, 'day')
  })
}
