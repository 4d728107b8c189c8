import { type TProperties, Type } from 'typebox'
import { OutgoingTime, refTo } from '../schemas.ts'
import type { EventKind } from './kinds.ts'

export const EVENTS_TAG = {
  name: 'Events',
  description:
    'Changes of messages, campaigns and recipients. Webhooks post each event at least once to the endpoints of the account; the feed has each event exactly once and in order.',
}

const object = (fields: TProperties) => Type.Object(fields, { additionalProperties: false })
const uuid = (last: number) => Type.String({ format: 'uuid', examples: [`0198c0de-0000-7000-8000-00000000000${last}`] })
const text = (example: string, description?: string) => Type.String({ examples: [example], ...(description && { description }) })

const agentId = text('demo-single')
const recipient = text('+48500100200', '`+` and digits; `erased-` and 32 hex digits once the person was erased.')
const clientReferenceId = Type.Optional(text('order-1001', 'The reference from the request.'))
const campaignId = Type.Optional(Type.String({ ...uuid(2), description: 'Present if the message belongs to a campaign.' }))

const MESSAGE = {
  messageId: uuid(1),
  clientReferenceId,
  agentId,
  recipient,
  campaignId,
  test: Type.Boolean({ description: 'Whether it was sent by `POST /messages/test`.', examples: [false] }),
}

/** For clicks. The recipient may follow a link after the retention of its message has ended, and then `test` is unknown. */
const CLICKED = { ...MESSAGE, test: Type.Optional(MESSAGE.test) }

/** For replies and opt-outs, which need not be about a message. */
const REPLIED = {
  ...CLICKED,
  messageId: Type.Optional(Type.String({ ...uuid(1), description: 'The message that the recipient replied to; absent if there is none.' })),
}

const failure = object({
  reason: text('NOT_REACHABLE', 'A stable code. docs/errors.md lists all codes.'),
  description: text('The number can’t be reached by RCS.', 'The reason in words, with the text of the network.'),
})
const segments = Type.Integer({ description: 'How many SMS the text takes.', examples: [1] })
const channel = Type.Enum(['rcs', 'sms'])

const CAMPAIGN = {
  campaignId: uuid(2),
  clientReferenceId: Type.Optional(text('spring-2027', 'The reference from the request.')),
  name: text('Spring sale'),
  agentId,
  recipients: Type.Optional(
    Type.Integer({ description: 'How many messages the campaign has; absent until the fan-out is complete.', examples: [25000] }),
  ),
}

const endpointId = Type.Integer({ examples: [1] })

type Described = { summary: string; description?: string; data: TProperties }

const DATA_OF_KINDS = {
  'message.sent': { summary: 'The network accepted a message', data: MESSAGE },
  'message.delivered': { summary: 'A message was delivered to the phone', data: MESSAGE },
  'message.read': { summary: 'The recipient read a message', data: MESSAGE },
  'message.failed': { summary: 'A message failed permanently', data: { ...MESSAGE, failure } },
  'message.expired': { summary: 'A message expired before delivery', data: MESSAGE },
  'message.clicked': {
    summary: 'The recipient followed a link',
    description: 'By a `url` button of the RCS message, or by the first click on a short link of an SMS.',
    data: {
      ...CLICKED,
      channel,
      action: Type.Literal('clicked'),
      buttonId: Type.Optional(text('track', 'The button; absent for a short link.')),
      text: Type.Optional(text('Track it', 'The text of the button; absent for a short link.')),
      url: text('https://example.com/track', 'The target of the link.'),
    },
  },
  'message.replied': {
    summary: 'The recipient replied',
    description: 'With a button, a text, a location or a file. A STOP emits only `recipient.opted_out`.',
    data: {
      ...REPLIED,
      channel,
      action: Type.Enum(['tapped', 'wrote', 'shared-location', 'sent-file']),
      buttonId: Type.Optional(text('yes', '`tapped`: which button.')),
      text: Type.Optional(text('Yes, please', 'The text of the button, the text that the recipient wrote, or the name of the file.')),
      payload: Type.Optional(text('confirm:1001', '`tapped`: the payload of a `quick_reply`. `sent-file`: the media type.')),
      url: Type.Optional(text('https://example.com/a.jpg', '`sent-file`: the URL of the file at the network.')),
      latitude: Type.Optional(Type.Number({ description: '`shared-location`.', examples: [52.2297] })),
      longitude: Type.Optional(Type.Number({ description: '`shared-location`.', examples: [21.0122] })),
    },
  },
  'sms.sent': { summary: 'The SMS network accepted the fallback of a message', data: { ...MESSAGE, segments } },
  'sms.delivered': { summary: 'The whole SMS was delivered to the phone', data: { ...MESSAGE, segments } },
  'sms.failed': { summary: 'The SMS failed permanently', data: { ...MESSAGE, segments, failure } },
  'campaign.started': { summary: 'A campaign started', description: 'Its messages are being created.', data: CAMPAIGN },
  'campaign.completed': {
    summary: 'Every message of a campaign was sent, or has its outcome',
    description: 'Receipts of its messages may still follow.',
    data: CAMPAIGN,
  },
  'campaign.cancelled': {
    summary: 'A campaign was cancelled',
    description: 'A `message.failed` with `CAMPAIGN_CANCELLED` follows for each message that had not been sent.',
    data: CAMPAIGN,
  },
  'recipient.opted_out': {
    summary: 'A recipient opted out of messages from an agent',
    data: {
      ...REPLIED,
      channel: Type.Optional(Type.Enum(['rcs', 'sms'], { description: 'Absent unless the recipient opted out.' })),
      source: Type.Enum(['word', 'unsubscribe', 'operator', 'api'], {
        description:
          '`word`: the recipient wrote STOP. `unsubscribe`: unsubscribed on the phone. `operator`: the operator entered it. `api`: you did, by `PUT /opt-outs/{phone}`.',
      }),
      text: Type.Optional(text('STOP', 'The text that the recipient wrote; absent if they unsubscribed on the phone.')),
    },
  },
  'webhook.disabled': {
    summary: 'An endpoint was disabled',
    description: 'It accepted no event for five days. The other endpoints and the feed get this event.',
    data: { endpointId, url: text('https://example.com/herald', 'Without its query.'), failingSince: OutgoingTime },
  },
  'webhook.test': { summary: 'An endpoint was tested', description: 'Posted to that endpoint only.', data: { endpointId } },
} satisfies Record<EventKind, Described>

const DESCRIBED = Object.entries<Described>(DATA_OF_KINDS)

// Each variant is named by its kind, since a discriminator without a mapping looks for a schema of that name.
const VARIANTS = DESCRIBED.map(([kind, { summary, data }]) =>
  Type.Object(
    {
      eventId: Type.String({ ...uuid(3), description: 'The same in the feed and in every post. Use it to drop duplicates.' }),
      type: Type.Literal(kind),
      occurredAt: Type.Unsafe<Date>({ ...OutgoingTime, description: 'When it happened, perhaps before events that you already have.' }),
      data: object(data),
    },
    { $id: kind, title: summary, additionalProperties: false },
  ),
)

export const Event = Type.Unsafe<unknown>({
  $id: 'Event',
  type: 'object',
  discriminator: { propertyName: 'type' },
  oneOf: VARIANTS.map((variant) => refTo(variant)),
})

export const EVENT_SCHEMAS = [...VARIANTS, Event]

const header = (name: string, description: string, example: string) => ({
  name,
  in: 'header' as const,
  required: true,
  description,
  schema: { type: 'string' as const },
  example,
})

/** Defined once in the OpenAPI document, and referenced by the webhooks below. */
export const WEBHOOK_HEADERS = {
  WebhookId: header('webhook-id', 'The `eventId`, the same in every attempt.', '0198c0de-0000-7000-8000-000000000003'),
  WebhookTimestamp: header(
    'webhook-timestamp',
    'When this attempt was made, in seconds since 1970. Reject a time that is more than five minutes off.',
    '1769846400',
  ),
  WebhookSignature: header(
    'webhook-signature',
    '`v1,` and the base64 of an HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>`, as defined by Standard Webhooks. One for each valid secret, separated by spaces; one match is enough.',
    'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
  ),
}

/** The events as they are posted, for the OpenAPI document's `webhooks`. */
export function describeWebhooks() {
  return Object.fromEntries(DESCRIBED.map(([kind, described]) => [kind, { post: describeWebhook(kind, described) }]))
}

function describeWebhook(kind: string, { summary, description }: Described) {
  return {
    operationId: kind,
    tags: [EVENTS_TAG.name],
    summary,
    ...(description && { description }),
    // The signature authenticates the sender.
    security: [],
    parameters: Object.keys(WEBHOOK_HEADERS).map((name) => ({ $ref: `#/components/parameters/${name}` })),
    requestBody: { required: true, content: { 'application/json': { schema: { $ref: `#/components/schemas/${kind}` } } } },
    responses: {
      '2XX': { description: 'Received. Respond within 15 seconds, before you process it. Any other response is retried, also a redirect.' },
    },
  }
}
