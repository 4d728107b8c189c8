import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { readAssignment } from '../agents/agents.ts'
import { countAudience } from '../campaigns/audience.ts'
import { readCampaignContent } from '../campaigns/content.ts'
import { lastHour, MAX_MINUTES, minuteOf, readFailures, readMinutes } from '../campaigns/progress.ts'
import { CAMPAIGNS_TAG, CampaignPath } from '../campaigns/routes.ts'
import { CampaignId } from '../campaigns/schemas.ts'
import { invalid } from '../content/fields.ts'
import type { Pool } from '../db/pool.ts'
import { MAX_GROUP_NUMBER } from '../groups/groups.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { NoQuery, OutgoingTime } from '../schemas.ts'
import { parseTimestamp } from '../time.ts'
import { ContentOfMessage, SmsOfMessage } from './message-routes.ts'

const tags = [CAMPAIGNS_TAG.name]
const object = { additionalProperties: false }
const count = (description: string) => Type.Integer({ minimum: 0, description })
const countOrNull = (description: string) => Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], { description })

const CampaignContent = Type.Object(
  {
    campaignId: CampaignId,
    content: ContentOfMessage,
    variables: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        description: 'The values for members who have none of their own. Absent without variables.',
      }),
    ),
    sms: Type.Optional(SmsOfMessage),
  },
  { ...object, description: 'What the messages of the campaign say. Variables are as they were written.' },
)

const Failures = Type.Object(
  {
    items: Type.Array(
      Type.Object(
        {
          reason: Type.String(),
          messages: count('Messages that failed for this reason.'),
          bySms: count('Of these, recipients who were sent the SMS instead.'),
          smsWaiting: count('Of these, recipients whose SMS is still to be sent.'),
        },
        object,
      ),
      { description: 'The most frequent reason first.' },
    ),
    isMore: Type.Boolean({ description: 'There are older failures, which are not counted.' }),
  },
  { ...object, description: 'The last failures, by reason.' },
)

const Minutes = Type.Object(
  {
    items: Type.Array(
      Type.Object(
        { minute: OutgoingTime, sent: count(''), delivered: count(''), read: count(''), failed: count('') },
        { ...object, description: 'How many messages reached each state in this minute.' },
      ),
      { description: 'In order; minutes without events are left out, and the first ones if there were too many events to count.' },
    ),
  },
  { ...object, description: 'What happened in each minute of an hour.' },
)

const MinutesQuery = Type.Object(
  {
    from: Type.Optional(
      Type.String({
        format: 'timestamp',
        description: `The ${MAX_MINUTES} minutes from the minute of this time on. Without it: the last ones.`,
      }),
    ),
  },
  object,
)

const groupsIn = (text: string) => [...new Set(text.split(',').map(Number))]

const AudienceQuery = Type.Object(
  {
    agentId: Type.String({ minLength: 1, maxLength: 200, description: 'The agent, whose opt-outs count.' }),
    segmentIds: Type.String({
      pattern: '^[1-9][0-9]{0,9}(,[1-9][0-9]{0,9}){0,99}$',
      description: 'The numbers of the groups, separated by commas',
      rules: (text: string) =>
        groupsIn(text).every((group) => group <= MAX_GROUP_NUMBER) ? [] : invalid(`must have no number above ${MAX_GROUP_NUMBER}`),
    }),
  },
  object,
)

const Audience = Type.Object(
  {
    members: count('The members of all groups together.'),
    recipients: countOrNull('How many numbers these are; null if the groups are too large to count.'),
    optedOut: countOrNull('Recipients who want no campaigns from the agent. Their messages fail, and nothing is sent to them.'),
  },
  { ...object, description: 'Whom a campaign to these groups would reach if it started now.' },
)

type Routes = FastifyPluginAsyncTypebox<{ pool: Pool }>

/** What the console shows of a campaign beyond its counters. */
export const campaignProgressRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/campaigns/:id/content',
    {
      schema: {
        operationId: 'readCampaignContent',
        tags,
        summary: 'Read what the messages of a campaign say',
        params: CampaignPath,
        querystring: NoQuery,
        response: { 200: CampaignContent, ...errorResponses('RCS_CAMPAIGN_NOT_FOUND') },
      },
      config: { role: 'viewer' },
    },
    async (request) => await readCampaignContent(pool, callerOf(request).accountId, request.params.id),
  )

  app.get(
    '/campaigns/:id/failures',
    {
      schema: {
        operationId: 'readCampaignFailures',
        tags,
        summary: 'Count why messages of a campaign failed',
        params: CampaignPath,
        querystring: NoQuery,
        response: { 200: Failures, ...errorResponses('RCS_CAMPAIGN_NOT_FOUND') },
      },
      config: { role: 'viewer' },
    },
    async (request) => await readFailures(pool, callerOf(request).accountId, request.params.id),
  )
  await app.register(minuteAndAudienceRoutes, { pool })
}

const minuteAndAudienceRoutes: Routes = async (app, { pool }) => {
  // Callers who ask for the same hour at the same time share the reading, since a reading can take long.
  const underWay = new Map<string, ReturnType<typeof readMinutes>>()
  app.get(
    '/campaigns/:id/minutes',
    {
      schema: {
        operationId: 'readCampaignMinutes',
        tags,
        summary: 'Count what happened to messages of a campaign in each minute',
        params: CampaignPath,
        querystring: MinutesQuery,
        response: { 200: Minutes, ...errorResponses('RCS_CAMPAIGN_NOT_FOUND') },
      },
      config: { role: 'viewer' },
    },
    async (request) => {
      const { from } = request.query
      const since = (from && parseTimestamp(from)) || lastHour()
      const { accountId } = callerOf(request)
      const key = `${accountId} ${request.params.id} ${minuteOf(since.getTime()).toISOString()}`
      const reading = underWay.get(key) ?? readMinutes(pool, accountId, request.params.id, since).finally(() => underWay.delete(key))
      underWay.set(key, reading)
      return await reading
    },
  )

  app.get(
    '/audience',
    {
      schema: {
        operationId: 'countAudience',
        tags,
        summary: 'Count whom a campaign would reach',
        querystring: AudienceQuery,
        response: { 200: Audience, ...errorResponses('RCS_NOT_FOUND', 'RCS_SEGMENT_NOT_FOUND') },
      },
      config: { role: 'viewer' },
    },
    async (request) => {
      const { agentId, segmentIds } = request.query
      const { accountId } = callerOf(request)
      await readAssignment(pool, agentId, accountId)
      return await countAudience(pool, accountId, agentId, groupsIn(segmentIds))
    },
  )
}
