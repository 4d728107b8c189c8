import { type Static, Type } from 'typebox'
import { MessageContent } from '../content/content.ts'
import { fault, PhoneNumber } from '../content/fields.ts'
import { basicRules } from '../content/rules.ts'
import { fieldsOf } from '../content/unchecked.ts'
import type { Violation } from '../errors.ts'
import { errorResponses } from '../http/error-answers.ts'
import { normalisePhoneNumber } from '../phone-numbers.ts'
import { NoQuery, OutgoingTime, refTo } from '../schemas.ts'
import { afterExpiryRules, SmsFallback, SmsFallbackAfterExpiry } from './sms-fallback.ts'
import { FALLBACK_STATUSES, STATUSES } from './states.ts'

export const MESSAGES_TAG = { name: 'Messages', description: 'One message to one recipient, and what became of it.' }

const MAX_TEST_RECIPIENTS = 5

const Said = Type.Object(
  {
    templateId: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'Of an `APPROVED` template.' })),
    inline: Type.Optional(refTo(MessageContent)),
  },
  { additionalProperties: false, description: 'What is said: exactly one of `templateId` and `inline`.', rules: exactlyOneSource },
)

function exactlyOneSource({ templateId, inline }: Record<string, unknown>): Violation[] {
  return (templateId === undefined) === (inline === undefined) ? fault('must have exactly one of templateId and inline') : []
}

export const COMMON = {
  clientReferenceId: Type.Optional(
    Type.String({ maxLength: 255, description: 'A reference of your own; it comes back with the message.' }),
  ),
  agentId: Type.String({ minLength: 1, maxLength: 200, description: 'Who sends it.' }),
  expiresAt: Type.Optional(
    Type.String({
      format: 'timestamp',
      description: 'Until when it may be delivered: in the future, at most 15 days ahead. Without it, 48 hours from now.',
    }),
  ),
  basic: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'RCS Basic: a text of at most 160 bytes in UTF-8, with no buttons. Equal to that of a template.',
    }),
  ),
  message: Said,
}

function messageRules(request: Record<string, unknown>): Violation[] {
  return [...basicMode(request), ...afterExpiryRules(request)]
}

export function basicMode({ basic, message }: Record<string, unknown>): Violation[] {
  const { inline } = fieldsOf(message)
  return basic === true && inline !== undefined ? basicRules(inline, '/message/inline') : []
}

export const EXAMPLE = {
  clientReferenceId: 'order-1001',
  agentId: 'demo-single',
  recipient: '+48500100200',
  message: { inline: { type: 'MESSAGE', content: 'Your parcel is on its way.' } },
}

export const MessageRequest = Type.Object(
  {
    ...COMMON,
    recipient: PhoneNumber,
    smsFallback: Type.Optional(SmsFallback),
    smsFallbackAfterExpiry: Type.Optional(SmsFallbackAfterExpiry),
  },
  { additionalProperties: false, rules: messageRules, examples: [EXAMPLE] },
)
export type MessageRequest = Static<typeof MessageRequest>

const { recipient, ...unaddressed } = EXAMPLE

export const TestMessageRequest = Type.Object(
  {
    ...COMMON,
    recipients: Type.Array(PhoneNumber, {
      minItems: 1,
      maxItems: MAX_TEST_RECIPIENTS,
      description: 'Each number once.',
      rules: noNumberTwice,
    }),
  },
  { additionalProperties: false, rules: basicMode, examples: [{ ...unaddressed, recipients: [recipient, '+48500100201'] }] },
)

/** However they are written. */
function noNumberTwice(numbers: unknown[]): Violation[] {
  if (numbers.length > MAX_TEST_RECIPIENTS) return []
  const normalised = numbers.map((number) => (typeof number === 'string' ? normalisePhoneNumber(number) : undefined))
  return normalised.flatMap((number, index) => {
    const first = normalised.indexOf(number)
    return number !== undefined && first < index ? [{ path: `/${index}`, reason: `is the same number as /recipients/${first}` }] : []
  })
}

const MessageId = Type.String({ format: 'uuid', examples: ['0198c0de-0000-7000-8000-000000000001'] })

const AcceptedMessage = Type.Object({ messageId: MessageId }, { additionalProperties: false })

const AcceptedTestMessages = Type.Object(
  {
    items: Type.Array(Type.Object({ recipient: Type.String(), messageId: MessageId }, { additionalProperties: false }), {
      description: 'In the order of the recipients.',
    }),
  },
  { additionalProperties: false },
)

const at = (description: string) => Type.Optional(Type.Unsafe<Date>({ ...OutgoingTime, description }))

const FallbackState = Type.Object(
  {
    status: Type.Enum([...FALLBACK_STATUSES], {
      description:
        'WAITING for the outcome of the RCS message; SCHEDULED; SENT; DELIVERED; FAILED; NOT_NEEDED, since the RCS message was delivered; SKIPPED, since a rule held it back.',
    }),
    reason: Type.Optional(Type.String({ description: 'Why it is sent, or is not; docs/errors.md lists the reasons.' })),
    campaign: Type.Optional(Type.String({ description: 'The label that the request gave it.' })),
    dueAt: at('When it is to be sent.'),
    sentAt: at('When the network had taken it.'),
    deliveredAt: at('When the phone had all of it.'),
    segments: Type.Integer({ description: 'How many SMS the text takes.' }),
  },
  { additionalProperties: false },
)

export const Message = Type.Object(
  {
    messageId: MessageId,
    clientReferenceId: Type.Optional(Type.String()),
    campaignId: Type.Optional(Type.String({ description: 'Where it is of a campaign.' })),
    agentId: Type.String(),
    recipient: Type.String({ description: '`+` and digits.' }),
    status: Type.Enum([...STATUSES], {
      description: 'SENDING: handed to the network, waiting to be tried again, or for a receipt. READ, FAILED and EXPIRED are final.',
    }),
    basic: Type.Boolean(),
    test: Type.Boolean({ description: 'No report counts it.' }),
    acceptedAt: OutgoingTime,
    sentAt: at('When the network had taken it.'),
    deliveredAt: at('When the phone had it.'),
    readAt: at('When the recipient had seen it.'),
    failedAt: at('When it was given up.'),
    expiredAt: at('When it ran out undelivered.'),
    expiresAt: OutgoingTime,
    failure: Type.Optional(
      Type.Object(
        { reason: Type.String({ description: 'A stable code; docs/errors.md lists them.' }), description: Type.String() },
        { additionalProperties: false },
      ),
    ),
    triggeredBy: Type.Optional(Type.String({ description: 'The message whose recipient asked for this one, by tapping or writing.' })),
    smsFallback: Type.Optional(FallbackState),
  },
  { $id: 'Message', additionalProperties: false },
)

// The header's pattern is its own description in an error: "must be …".
export const IdempotencyHeaders = Type.Object({
  'idempotency-key': Type.String({
    pattern: '^[ -~]{1,255}$',
    description: '1 to 255 printable ASCII characters, new for every message; the same ones again only to try the same request again',
  }),
})

const tags = [MESSAGES_TAG.name]
export const BODY_ERRORS = [
  'RCS_INVALID_MESSAGE',
  'RCS_INVALID_RECIPIENT',
  'RCS_TEMPLATE_NOT_APPROVED',
  'RCS_AGENT_NOT_FOUND',
  'RCS_TEMPLATE_NOT_FOUND',
  'RCS_PAYLOAD_TOO_LARGE',
  'RCS_UNSUPPORTED_MEDIA_TYPE',
  'RCS_QUOTA_EXCEEDED',
] as const

export const OPERATIONS = {
  send: {
    operationId: 'sendMessage',
    tags,
    summary: 'Send a message to one recipient',
    querystring: NoQuery,
    headers: IdempotencyHeaders,
    body: MessageRequest,
    response: {
      202: {
        ...AcceptedMessage,
        description: 'It is stored, and will be sent. The same answer comes for the same request under the same key, for at least 7 days.',
        headers: {
          Location: { type: 'string', description: 'Where to follow it.' },
          'Idempotent-Replayed': { type: 'string', description: '`true` where the message had been accepted before.' },
        },
      },
      ...errorResponses('RCS_IDEMPOTENCY_KEY_REQUIRED', 'RCS_IDEMPOTENCY_CONFLICT', 'RCS_INVALID_SMS_FALLBACK', ...BODY_ERRORS),
    },
  },
  sendTest: {
    operationId: 'sendTestMessage',
    tags,
    summary: 'Send the same message to up to five numbers of your own; no report counts it',
    querystring: NoQuery,
    body: TestMessageRequest,
    response: { 202: { ...AcceptedTestMessages, description: 'They are stored, and will be sent.' }, ...errorResponses(...BODY_ERRORS) },
  },
  read: {
    operationId: 'readMessage',
    tags,
    summary: 'Read what became of a message',
    params: Type.Object({ messageId: Type.String() }, { additionalProperties: false }),
    querystring: NoQuery,
    response: {
      200: refTo(Message, { description: 'The message. What has not happened is absent.' }),
      ...errorResponses('RCS_MESSAGE_NOT_FOUND'),
    },
  },
}
