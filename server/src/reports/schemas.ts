import { type TSchema, Type } from 'typebox'
import { errorResponses } from '../http/error-answers.ts'
import { listAnswer, listQuery } from '../http/paging.ts'
import { ACTION_KINDS } from '../replies/actions.ts'
import { daysInOrder, incomingDay, OutgoingTime, refTo } from '../schemas.ts'
import { AGGREGATED, INTERVALS, MOST_PERIODS } from './aggregations.ts'
import { ACTION_LIST, EVENT_TYPES, RECIPIENT_LIST } from './lists.ts'

export const REPORTS_TAG = {
  name: 'Reports',
  description:
    'What became of campaigns, and of the messages that the account sends one by one. Days are those of UTC; test messages are nowhere. Every field is always there, `null` where there is nothing to say.',
}

const RANGE = {
  from: incomingDay('What happened on this day or later, in UTC.'),
  to: incomingDay('What happened on this day or earlier, in UTC.'),
}
const IN_ORDER = { rules: daysInOrder('from', 'to') }

export const RangeQuery = Type.Object(RANGE, { additionalProperties: false, ...IN_ORDER })

const AggregationsQuery = Type.Object(
  { ...RANGE, interval: Type.Optional(Type.Enum([...INTERVALS], { default: 'day' })) },
  { additionalProperties: false, ...IN_ORDER },
)

export const CampaignPath = Type.Object({ id: Type.String({ description: 'The campaign’s.' }) }, { additionalProperties: false })

const RecipientsPath = Type.Object({ ...CampaignPath.properties, eventType: Type.Enum([...EVENT_TYPES]) }, { additionalProperties: false })

const nullable = (description: string) => Type.Union([Type.String(), Type.Null()], { description })
const count = (description: string) => Type.Integer({ minimum: 0, description })
const rate = (description: string) =>
  Type.Union([Type.Number({ minimum: 0, maximum: 1 }), Type.Null()], {
    description: `${description}, to four places; null where there are none of those. Where a range cuts between the two, at most 1.`,
  })

const COUNTS = {
  from: nullable('As asked for.'),
  to: nullable('As asked for.'),
  recipients: count('How many were to be reached: one for each message that was accepted.'),
  accepted: count('Accepted, and so to be sent.'),
  sent: count('Taken by the network.'),
  delivered: count('Delivered to the phone. One that was read was delivered, too.'),
  read: count('Seen by the recipient.'),
  failed: count('Given up.'),
  expired: count('Ran out undelivered.'),
  clicked: count('Whose link was opened, be it once or often.'),
  replied: count('Answered by a button, a text, a place or a file, be it once or often.'),
  optedOut: count('Whose recipient then wanted no more.'),
  deliveryRate: rate('Of those sent, those delivered'),
  readRate: rate('Of those delivered, those read'),
  clickRate: rate('Of those delivered, those clicked'),
  smsFallback: Type.Object(
    {
      sent: count('Taken by the network.'),
      delivered: count('Delivered to the phone, with all their parts.'),
      failed: count('Not taken, or not delivered.'),
      skipped: count('Held back by a rule.'),
    },
    { additionalProperties: false, description: 'The SMS that were sent instead.' },
  ),
}

export const CampaignSummary = Type.Object(
  { campaignId: Type.String({ format: 'uuid' }), ...COUNTS },
  { $id: 'CampaignSummary', additionalProperties: false },
)
export const MessagesSummary = Type.Object(COUNTS, { $id: 'MessagesSummary', additionalProperties: false })

const eachOf = <Name extends string, Schema>(names: readonly Name[], schema: Schema) =>
  Object.fromEntries(names.map((name) => [name, schema])) as Record<Name, Schema>

export const Aggregations = Type.Object(
  {
    interval: Type.Enum([...INTERVALS]),
    items: Type.Array(
      Type.Object(
        {
          period: Type.String({
            description: 'A day, or the time at which an hour begins.',
            examples: ['2026-01-31', '2026-01-31T08:00:00.000Z'],
          }),
          ...eachOf(AGGREGATED, Type.Integer({ minimum: 0 })),
        },
        { additionalProperties: false },
      ),
      { description: 'In their order; those in which nothing happened, too.' },
    ),
  },
  { $id: 'Aggregations', additionalProperties: false },
)

export const ReachedRecipient = Type.Object(
  {
    messageId: Type.String({ format: 'uuid' }),
    recipient: Type.String(),
    occurredAt: OutgoingTime,
    reason: nullable('Why it failed, or why the SMS was sent.'),
  },
  { additionalProperties: false },
)

export const ActionDetail = Type.Object(
  {
    messageId: Type.String({ format: 'uuid' }),
    recipient: Type.String(),
    action: Type.Enum([...ACTION_KINDS]),
    buttonId: nullable('Of a button that was tapped.'),
    text: nullable('What was written, or what the button or the file is called.'),
    payload: nullable('Of a quick reply; of a file, its kind.'),
    url: nullable('Of a link, or of a file.'),
    occurredAt: OutgoingTime,
  },
  { additionalProperties: false },
)

const tags = [REPORTS_TAG.name]
const COUNTS_OF_RANGE = { description: 'Each count is of messages that ever came to the state, in the range.' }
const OPEN_ENDS = {
  description: `An end that is left out is where there is something first or last. At most ${MOST_PERIODS} periods.`,
}
const pageOf = <Item extends TSchema>(item: Item, description: string) => ({ ...listAnswer(item), description })
const ofCampaign = <Answer>(answer: Answer) => ({ 200: answer, ...errorResponses('RCS_CAMPAIGN_NOT_FOUND') })

export const OPERATIONS = {
  campaignSummary: {
    operationId: 'readCampaignSummary',
    tags,
    summary: 'Read how many messages of a campaign came to which state',
    params: CampaignPath,
    querystring: RangeQuery,
    response: ofCampaign(refTo(CampaignSummary, COUNTS_OF_RANGE)),
  },
  campaignAggregations: {
    operationId: 'readCampaignAggregations',
    tags,
    summary: 'Read the results of a campaign over time',
    params: CampaignPath,
    querystring: AggregationsQuery,
    response: ofCampaign(refTo(Aggregations, OPEN_ENDS)),
  },
  actions: {
    operationId: 'listCampaignActions',
    tags,
    summary: 'List what the recipients of a campaign did',
    params: CampaignPath,
    querystring: listQuery(ACTION_LIST, RANGE, IN_ORDER),
    response: ofCampaign(pageOf(ActionDetail, 'A page of them.')),
  },
  recipients: {
    operationId: 'listCampaignRecipients',
    tags,
    summary: 'List the recipients of a campaign whose message came to a state',
    params: RecipientsPath,
    querystring: listQuery(RECIPIENT_LIST, RANGE, IN_ORDER),
    response: ofCampaign(pageOf(ReachedRecipient, 'A page of them, each with the time at which it did.')),
  },
  messagesSummary: {
    operationId: 'readMessagesSummary',
    tags,
    summary: 'Read how many of the messages sent one by one came to which state',
    querystring: RangeQuery,
    response: { 200: refTo(MessagesSummary, COUNTS_OF_RANGE), ...errorResponses() },
  },
  messagesAggregations: {
    operationId: 'readMessagesAggregations',
    tags,
    summary: 'Read the results of the messages sent one by one, day by day',
    querystring: RangeQuery,
    response: { 200: refTo(Aggregations, OPEN_ENDS), ...errorResponses() },
  },
}
