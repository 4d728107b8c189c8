import { Type } from 'typebox'
import { ACTION_KINDS } from '../replies/actions.ts'
import { OutgoingTime } from '../schemas.ts'
import { AGGREGATED, INTERVALS } from './aggregations.ts'

export const REPORTS_TAG = {
  name: 'Reports',
  description:
    'The results of campaigns, and of the messages that the account sends one by one. Days are in UTC; test messages are not counted. Every field is always present, and `null` if it has no value.',
}

export const CampaignPath = Type.Object({ id: Type.String({ description: 'The id of the campaign.' }) }, { additionalProperties: false })

const nullable = (description: string) => Type.Union([Type.String(), Type.Null()], { description })
const count = (description: string) => Type.Integer({ minimum: 0, description })
const rate = (description: string) =>
  Type.Union([Type.Number({ minimum: 0, maximum: 1 }), Type.Null()], {
    description: `${description}, to four decimal places; null if the divisor is 0. At most 1, even if the range separates the two events.`,
  })

const COUNTS = {
  from: nullable('As in the request.'),
  to: nullable('As in the request.'),
  recipients: count('Recipients: one for each accepted message.'),
  accepted: count('Accepted for sending.'),
  sent: count('Accepted by the network.'),
  delivered: count('Delivered to the phone. A message that was read counts as delivered too.'),
  read: count('Read by the recipient.'),
  failed: count('Failed permanently.'),
  expired: count('Expired undelivered.'),
  clicked: count('Messages with a link that was opened, once or more.'),
  replied: count('Messages with a reply by button, text, location or file, once or more.'),
  optedOut: count('Messages after which the recipient opted out.'),
  deliveryRate: rate('Delivered per sent'),
  readRate: rate('Read per delivered'),
  clickRate: rate('Clicked per delivered'),
  smsFallback: Type.Object(
    {
      sent: count('Accepted by the network.'),
      delivered: count('Delivered to the phone, with all their segments.'),
      failed: count('Not accepted, or not delivered.'),
      skipped: count('Held back by a rule.'),
    },
    { additionalProperties: false, description: 'The SMS fallbacks.' },
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
      { description: 'In order, including periods without any events.' },
    ),
  },
  { $id: 'Aggregations', additionalProperties: false },
)

export const ReachedRecipient = Type.Object(
  {
    messageId: Type.String({ format: 'uuid' }),
    recipient: Type.String(),
    occurredAt: OutgoingTime,
    reason: nullable('Why the message failed, or why the SMS was sent.'),
  },
  { additionalProperties: false },
)

export const ActionDetail = Type.Object(
  {
    messageId: Type.String({ format: 'uuid' }),
    recipient: Type.String(),
    action: Type.Enum([...ACTION_KINDS]),
    buttonId: nullable('The id of the tapped button.'),
    text: nullable('The text of the reply, the label of the button, or the name of the file.'),
    payload: nullable('The payload of a quick reply, or the MIME type of a file.'),
    url: nullable('The URL of the link or the file.'),
    occurredAt: OutgoingTime,
  },
  { additionalProperties: false },
)
