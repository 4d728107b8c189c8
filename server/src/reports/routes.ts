import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Pool } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { listQuery, listResponses } from '../http/list-schemas.ts'
import { daysInOrder, incomingDay, refTo } from '../schemas.ts'
import { checkPeriods, INTERVALS, MAX_PERIODS, readAggregations } from './aggregations.ts'
import { requireCampaign } from './campaign.ts'
import { ACTION_LIST, EVENT_TYPES, listActions, listRecipients, RECIPIENT_LIST } from './lists.ts'
import { ActionDetail, Aggregations, CampaignPath, CampaignSummary, MessagesSummary, REPORTS_TAG, ReachedRecipient } from './schemas.ts'
import { readSummary } from './summary.ts'

const RANGE = {
  from: incomingDay('On this day or later, in UTC.'),
  to: incomingDay('On this day or earlier, in UTC.'),
}
const IN_ORDER = { rules: daysInOrder('from', 'to') }

const RangeQuery = Type.Object(RANGE, { additionalProperties: false, ...IN_ORDER })

const AggregationsQuery = Type.Object(
  { ...RANGE, interval: Type.Optional(Type.Enum([...INTERVALS], { default: 'day' })) },
  { additionalProperties: false, ...IN_ORDER },
)

const RecipientsPath = Type.Object({ ...CampaignPath.properties, eventType: Type.Enum([...EVENT_TYPES]) }, { additionalProperties: false })

const tags = [REPORTS_TAG.name]
const COUNTS_OF_RANGE = { description: 'Each count is the number of messages that reached the state in the range.' }
const OPEN_ENDS = {
  description: `An open end of the range is the first or last period with events. At most ${MAX_PERIODS} periods.`,
}

type Routes = FastifyPluginAsyncTypebox<{ pool: Pool }>

export const reportRoutes: Routes = async (app, options) => {
  for (const schema of [CampaignSummary, MessagesSummary, Aggregations]) app.addSchema(schema)
  await app.register(campaignRoutes, options)
  await app.register(campaignListRoutes, options)
  await app.register(messagesRoutes, options)
}

const campaignRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/reports/campaigns/:id/summary',
    {
      schema: {
        operationId: 'readCampaignSummary',
        tags,
        summary: 'Read how many messages of a campaign reached each state',
        params: CampaignPath,
        querystring: RangeQuery,
        response: { 200: refTo(CampaignSummary, COUNTS_OF_RANGE), ...errorResponses('RCS_CAMPAIGN_NOT_FOUND') },
      },
      config: { scope: 'read' },
    },
    async (request) => {
      const { accountId } = callerOf(request)
      const { id } = await requireCampaign(pool, accountId, request.params.id)
      return { campaignId: id, ...(await readSummary(pool, accountId, id, request.query)) }
    },
  )

  app.get(
    '/reports/campaigns/:id/aggregations',
    {
      schema: {
        operationId: 'readCampaignAggregations',
        tags,
        summary: 'Read the results of a campaign over time',
        params: CampaignPath,
        querystring: AggregationsQuery,
        response: { 200: refTo(Aggregations, OPEN_ENDS), ...errorResponses('RCS_CAMPAIGN_NOT_FOUND') },
      },
      config: { scope: 'read' },
    },
    async (request) => {
      const { accountId } = callerOf(request)
      const { interval = 'day', ...range } = request.query
      checkPeriods(range, interval)
      const { id } = await requireCampaign(pool, accountId, request.params.id)
      return await readAggregations(pool, accountId, id, range, interval)
    },
  )
}

const campaignListRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/reports/campaigns/:id/action-details',
    {
      schema: {
        operationId: 'listCampaignActions',
        tags,
        summary: 'List the actions of a campaign’s recipients',
        params: CampaignPath,
        querystring: listQuery(ACTION_LIST, RANGE, IN_ORDER),
        response: listResponses(ActionDetail, 'A page of actions.', 'RCS_CAMPAIGN_NOT_FOUND'),
      },
      config: { scope: 'read' },
    },
    async (request) => await listActions(pool, callerOf(request).accountId, request.params.id, request.query),
  )

  app.get(
    '/reports/campaigns/:id/recipients/:eventType',
    {
      schema: {
        operationId: 'listCampaignRecipients',
        tags,
        summary: 'List the recipients of a campaign whose message reached a state',
        params: RecipientsPath,
        querystring: listQuery(RECIPIENT_LIST, RANGE, IN_ORDER),
        response: listResponses(
          ReachedRecipient,
          'A page of recipients, each with the time when the message reached the state.',
          'RCS_CAMPAIGN_NOT_FOUND',
        ),
      },
      config: { scope: 'read' },
    },
    async (request) => {
      const { id, eventType } = request.params
      return await listRecipients(pool, callerOf(request).accountId, id, eventType, request.query)
    },
  )
}

const messagesRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/reports/messages/summary',
    {
      schema: {
        operationId: 'readMessagesSummary',
        tags,
        summary: 'Read how many of the messages sent one by one reached each state',
        querystring: RangeQuery,
        response: { 200: refTo(MessagesSummary, COUNTS_OF_RANGE), ...errorResponses() },
      },
      config: { scope: 'read' },
    },
    async (request) => await readSummary(pool, callerOf(request).accountId, undefined, request.query),
  )

  app.get(
    '/reports/messages/aggregations',
    {
      schema: {
        operationId: 'readMessagesAggregations',
        tags,
        summary: 'Read the results of the messages sent one by one, day by day',
        querystring: RangeQuery,
        response: { 200: refTo(Aggregations, OPEN_ENDS), ...errorResponses() },
      },
      config: { scope: 'read' },
    },
    async (request) => await readAggregations(pool, callerOf(request).accountId, undefined, request.query, 'day'),
  )
}
