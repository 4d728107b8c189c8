import { type TProperties, Type } from 'typebox'
import { errorResponses } from '../http/error-answers.ts'
import { OutgoingTime, refTo } from '../schemas.ts'

export const EVENTS_TAG = {
  name: 'Events',
  description:
    'What happened, in two ways: posted to the endpoints that the operator sets up for the account, each at least once; and to be asked for, each exactly once and in order.',
}

export const DEFAULT_PAGE = 50
const MAX_PAGE = 200

const object = (fields: TProperties) => Type.Object(fields, { additionalProperties: false })
const uuid = (last: number) => Type.String({ format: 'uuid', examples: [`0198c0de-0000-7000-8000-00000000000${last}`] })
const text = (example: string, description?: string) => Type.String({ examples: [example], ...(description && { description }) })

const agentId = text('demo-single')
const recipient = text('+48500100200', '`+` and digits.')
const clientReferenceId = Type.Optional(text('order-1001', 'The one that the request gave.'))
const campaignId = Type.Optional(Type.String({ ...uuid(2), description: 'Where the message is of a campaign.' }))

const MESSAGE = {
  messageId: uuid(1),
  clientReferenceId,
  agentId,
  recipient,
  campaignId,
  test: Type.Boolean({ description: 'It was sent by `POST /messages/test`.', examples: [false] }),
}

/** For what recipients do: they may follow a link of a message long after its retention has ended. */
const FOLLOWED = { ...MESSAGE, test: Type.Optional(MESSAGE.test) }

/** Nor do their actions need to be about a message. */
const ANSWERED = {
  ...FOLLOWED,
  messageId: Type.Optional(Type.String({ ...uuid(1), description: 'The message that they answered; absent where there is none.' })),
}

const failure = object({
  reason: text('NOT_REACHABLE', 'A stable code; docs/errors.md lists them.'),
  description: text('The number can’t be reached by RCS.', 'The same in words, with what the network said.'),
})
const segments = Type.Integer({ description: 'How many SMS the text took.', examples: [1] })
const channel = Type.Enum(['rcs', 'sms'])

const CAMPAIGN = {
  campaignId: uuid(2),
  clientReferenceId: Type.Optional(text('spring-2027', 'The one that the request gave.')),
  name: text('Spring sale'),
  agentId,
  recipients: Type.Optional(Type.Integer({ description: 'How many messages it has; absent until all are made.', examples: [25000] })),
}

const endpointId = Type.Integer({ examples: [1] })

type Described = { summary: string; description?: string; data: TProperties }

/** The kinds of events that callers get, and can select. */
const KINDS = {
  'message.sent': { summary: 'The network has a message', data: MESSAGE },
  'message.delivered': { summary: 'The phone has a message', data: MESSAGE },
  'message.read': { summary: 'The recipient has seen a message', data: MESSAGE },
  'message.failed': { summary: 'A message was given up', data: { ...MESSAGE, failure } },
  'message.expired': { summary: 'A message ran out undelivered', data: MESSAGE },
  'message.clicked': {
    summary: 'The recipient followed a link',
    description: 'A `url` button of the RCS message, or the short link of an SMS, by its first click.',
    data: {
      ...FOLLOWED,
      channel,
      action: Type.Literal('clicked'),
      buttonId: Type.Optional(text('track', 'Of a button.')),
      text: Type.Optional(text('Track it', 'What the button says.')),
      url: text('https://example.com/track', 'Where the link leads.'),
    },
  },
  'message.replied': {
    summary: 'The recipient answered',
    description: 'By a button, a text, a place or a file. Who writes STOP is told as `recipient.opted_out` alone.',
    data: {
      ...ANSWERED,
      channel,
      action: Type.Enum(['tapped', 'wrote', 'shared-location', 'sent-file']),
      buttonId: Type.Optional(text('yes', '`tapped`: which button.')),
      text: Type.Optional(text('Yes, please', 'What the button says, what they wrote, or the name of the file.')),
      payload: Type.Optional(text('confirm:1001', '`tapped`: that of a `quick_reply`. `sent-file`: the media type.')),
      url: Type.Optional(text('https://example.com/a.jpg', '`sent-file`: where the network keeps it.')),
      latitude: Type.Optional(Type.Number({ description: '`shared-location`.', examples: [52.2297] })),
      longitude: Type.Optional(Type.Number({ description: '`shared-location`.', examples: [21.0122] })),
    },
  },
  'sms.sent': { summary: 'The SMS network has the fallback of a message', data: { ...MESSAGE, segments } },
  'sms.delivered': { summary: 'The phone has the whole SMS', data: { ...MESSAGE, segments } },
  'sms.failed': { summary: 'The SMS was given up', data: { ...MESSAGE, segments, failure } },
  'campaign.started': { summary: 'A campaign began', description: 'Its messages are being made.', data: CAMPAIGN },
  'campaign.completed': {
    summary: 'Every message of a campaign was handed over, or has its outcome',
    description: 'Receipts of its messages still come.',
    data: CAMPAIGN,
  },
  'campaign.cancelled': {
    summary: 'The operator ended a campaign',
    description: 'A `message.failed` with `CAMPAIGN_CANCELLED` follows for each message that had not been handed over.',
    data: CAMPAIGN,
  },
  'recipient.opted_out': {
    summary: 'A recipient wants no more messages from an agent',
    data: {
      ...ANSWERED,
      channel: Type.Optional(Type.Enum(['rcs', 'sms'], { description: 'Absent where the operator entered it.' })),
      source: Type.Enum(['word', 'unsubscribe', 'operator'], {
        description: 'They wrote STOP, unsubscribed on the phone, or had the operator do it.',
      }),
      text: Type.Optional(text('STOP', 'What they wrote; absent where they unsubscribed on the phone.')),
    },
  },
  'webhook.disabled': {
    summary: 'An endpoint was given up',
    description: 'It took nothing for five days. It is told to the other endpoints, and in the feed.',
    data: { endpointId, url: text('https://example.com/herald', 'Without its query.'), failingSince: OutgoingTime },
  },
  'webhook.test': { summary: 'The operator tried an endpoint', description: 'Posted to that endpoint alone.', data: { endpointId } },
} satisfies Record<string, Described>

export type EventKind = keyof typeof KINDS
export const EVENT_KINDS = Object.keys(KINDS) as EventKind[]
const DESCRIBED = Object.entries<Described>(KINDS)

// Each under the name of its kind, which is what a discriminator without a mapping looks for.
const VARIANTS = DESCRIBED.map(([kind, { summary, data }]) =>
  Type.Object(
    {
      eventId: Type.String({ ...uuid(3), description: 'The same wherever and whenever the event is told: drop what you had already.' }),
      type: Type.Literal(kind),
      occurredAt: Type.Unsafe<Date>({ ...OutgoingTime, description: 'When it happened, which may be before events that you have.' }),
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

const EventPage = object({
  items: Type.Array(refTo(Event), { description: 'In the order of the log, which is that of the changes for each message.' }),
  nextCursor: Type.String({ description: 'Where to go on, also from an empty page. It does not run out.' }),
  hasMore: Type.Boolean({ description: 'Whether there was more when this page was read.' }),
})

export const OPERATIONS = {
  follow: {
    operationId: 'followEvents',
    tags: [EVENTS_TAG.name],
    summary: 'Read what happened since the last time',
    description:
      'Every event of the last 30 days, once, in an order that nothing is ever put into behind you. Keep `nextCursor` with what you made of the page.',
    querystring: Type.Object(
      {
        after: Type.Optional(
          Type.String({ minLength: 1, maxLength: 100, description: '`nextCursor` of the page before. Without it, from the beginning.' }),
        ),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_PAGE, default: DEFAULT_PAGE })),
      },
      { additionalProperties: false },
    ),
    response: {
      // A string here, since the response is put together from the events as they are stored.
      200: Type.Unsafe<string>({ ...EventPage, description: 'The next events. None where nothing has happened since.' }),
      ...errorResponses(),
    },
  },
}

const header = (name: string, description: string, example: string) => ({
  name,
  in: 'header' as const,
  required: true,
  description,
  schema: { type: 'string' as const },
  example,
})

/** Named once in the document, by the webhooks below. */
export const WEBHOOK_HEADERS = {
  WebhookId: header('webhook-id', 'The `eventId`, the same on every try.', '0198c0de-0000-7000-8000-000000000003'),
  WebhookTimestamp: header(
    'webhook-timestamp',
    'When this try was made, in seconds since 1970. Refuse what is over five minutes off.',
    '1769846400',
  ),
  WebhookSignature: header(
    'webhook-signature',
    '`v1,` and the base64 of an HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>`, as Standard Webhooks has it. One for each valid secret, separated by spaces; one that fits is enough.',
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
      '2XX': { description: 'You have it. Say so within 15 seconds, and before you work on it. All else, a redirect too, is tried again.' },
    },
  }
}
