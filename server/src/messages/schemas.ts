import { type Static, Type } from 'typebox'
import { MessageContent } from '../content/content.ts'
import { invalid, PhoneNumber, PhoneNumbers, phoneRules } from '../content/fields.ts'
import { basicRules } from '../content/rules.ts'
import { fieldsOf } from '../content/untrusted.ts'
import { renderContent, Variables, variablesOf } from '../content/variables.ts'
import type { Violation } from '../errors.ts'
import { listQuery } from '../http/list-schemas.ts'
import { UUID } from '../ids.ts'
import { phoneNumberInQuery } from '../phone-numbers.ts'
import { OutgoingTime, refTo } from '../schemas.ts'
import { parseTimestamp } from '../time.ts'
import type { Prepared } from '../validation.ts'
import { DeliveryWindow, ShownWindow } from '../windows/window.ts'
import { MESSAGE_LIST } from './list.ts'
import { Routing, ShownRouting } from './routing.ts'
import { afterExpiryRules, SmsFallback, SmsFallbackAfterExpiry } from './sms-fallback.ts'
import { FALLBACK_STATUSES, STATUSES } from './states.ts'

const MAX_TEST_RECIPIENTS = 5
export const LONGEST_LIFE_DAYS = 15
export const LATEST_START_DAYS = 15

const ContentSource = Type.Object(
  {
    templateId: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'Id of an `APPROVED` template.' })),
    inline: Type.Optional(refTo(MessageContent)),
  },
  { additionalProperties: false, description: 'The content: exactly one of `templateId` and `inline`.', rules: exactlyOneSource },
)

function exactlyOneSource({ templateId, inline }: Record<string, unknown>): Violation[] {
  return (templateId === undefined) === (inline === undefined) ? invalid('must have exactly one of templateId and inline') : []
}

export const COMMON = {
  clientReferenceId: Type.Optional(
    Type.String({ maxLength: 255, description: 'Your own reference. Herald returns it with the message and its events.' }),
  ),
  agentId: Type.String({ minLength: 1, maxLength: 200, description: 'The agent that sends the message.' }),
  expiresAt: Type.Optional(
    Type.String({
      format: 'timestamp',
      description: `The latest time of delivery: in the future, at most ${LONGEST_LIFE_DAYS} days ahead. By default 48 hours from now.`,
    }),
  ),
  basic: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'RCS Basic: a text of at most 160 bytes in UTF-8, without buttons. If a template is used, it must have the same value.',
    }),
  ),
  message: ContentSource,
}

/** Puts the values of a request into its content and its SMS. */
export function prepareMessage(body: unknown): Prepared {
  const { message, smsFallback, variables } = fieldsOf(body)
  const parts = { message, ...(smsFallback !== undefined && { smsFallback }) }
  const { content, missing, explain } = renderContent(parts, variablesOf(variables))
  const value = content === parts ? body : { ...fieldsOf(body), ...fieldsOf(content) }
  return { checked: value, value, missing, explain }
}

function messageRules(request: Record<string, unknown>): Violation[] {
  return [...basicMode(request), ...afterExpiryRules(request), ...startRules(request, 'sendAt')]
}

const DAY_MS = 86_400_000

/** Rules for the times of a request that need no clock. `field`: when it starts. */
export function startRules(request: Record<string, unknown>, field: 'sendAt' | 'scheduledAt'): Violation[] {
  const sendTime = fieldsOf(fieldsOf(request.smsFallback).planParams).sendTime
  const [start, end, sms] = [request[field], request.expiresAt, sendTime].map((time) =>
    typeof time === 'string' ? parseTimestamp(time)?.getTime() : undefined,
  )
  if (start === undefined) return []
  return [
    ...(end !== undefined && end <= start ? [{ path: '/expiresAt', reason: `must be later than ${field}` }] : []),
    ...(end !== undefined && end > start + LONGEST_LIFE_DAYS * DAY_MS
      ? [{ path: '/expiresAt', reason: `must be at most ${LONGEST_LIFE_DAYS} days after ${field}` }]
      : []),
    ...(sms !== undefined && sms <= start ? [{ path: '/smsFallback/planParams/sendTime', reason: `must be later than ${field}` }] : []),
  ]
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
    variables: Variables,
    recipient: PhoneNumber,
    routing: Routing,
    sendAt: Type.Optional(
      Type.String({
        format: 'timestamp',
        description: `When to send it, at most ${LATEST_START_DAYS} days ahead; \`expiresAt\` must be later, and counts from it by default. If absent, or up to a minute ago: now.`,
      }),
    ),
    deliveryWindow: Type.Optional(DeliveryWindow),
    smsFallback: Type.Optional(SmsFallback),
    smsFallbackAfterExpiry: Type.Optional(SmsFallbackAfterExpiry),
  },
  { additionalProperties: false, rules: messageRules, prepare: prepareMessage, examples: [EXAMPLE] },
)
export type MessageRequest = Static<typeof MessageRequest>

const { recipient, ...unaddressed } = EXAMPLE

export const TestMessageRequest = Type.Object(
  {
    ...COMMON,
    variables: Variables,
    recipients: PhoneNumbers(MAX_TEST_RECIPIENTS),
  },
  {
    additionalProperties: false,
    rules: basicMode,
    prepare: prepareMessage,
    examples: [{ ...unaddressed, recipients: [recipient, '+48500100201'] }],
  },
)

const MessageId = Type.String({ format: 'uuid', examples: ['0198c0de-0000-7000-8000-000000000001'] })

export const AcceptedMessage = Type.Object({ messageId: MessageId }, { additionalProperties: false })

export const AcceptedTestMessages = Type.Object(
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
        'WAITING: for the outcome of the RCS message. SCHEDULED, SENT, DELIVERED, FAILED. NOT_NEEDED: the RCS message was delivered. SKIPPED: a rule held the SMS back.',
    }),
    reason: Type.Optional(Type.String({ description: 'Why the SMS is sent, or is not. docs/errors.md lists the reasons.' })),
    campaign: Type.Optional(Type.String({ description: 'The label from the request.' })),
    dueAt: at('When the SMS is due.'),
    sentAt: at('When the network accepted the SMS.'),
    deliveredAt: at('When the phone had received the whole SMS.'),
    segments: Type.Integer({ description: 'How many SMS the text takes.' }),
  },
  { additionalProperties: false },
)

export const Message = Type.Object(
  {
    messageId: MessageId,
    clientReferenceId: Type.Optional(Type.String()),
    campaignId: Type.Optional(Type.String({ description: 'Present if the message belongs to a campaign.' })),
    agentId: Type.String(),
    recipient: Type.String({ description: '`+` and digits; `erased-` and 32 hex digits once the person was erased.' }),
    status: Type.Enum([...STATUSES], {
      description: 'SENDING: being sent, waiting for a retry, or held back until its receipt comes. READ, FAILED and EXPIRED are final.',
    }),
    basic: Type.Boolean(),
    test: Type.Boolean({ description: 'Whether it is a test message, which no report counts.' }),
    acceptedAt: OutgoingTime,
    scheduledAt: at('When it is sent, if the request had `sendAt`. Until then it is ACCEPTED, and can be cancelled.'),
    deliveryWindow: ShownWindow,
    sentAt: at('When the network accepted the message.'),
    deliveredAt: at('When the phone received the message.'),
    readAt: at('When the recipient read the message.'),
    failedAt: at('When the message failed permanently.'),
    expiredAt: at('When the message expired before delivery.'),
    expiresAt: OutgoingTime,
    failure: Type.Optional(
      Type.Object(
        { reason: Type.String({ description: 'A stable code. docs/errors.md lists all codes.' }), description: Type.String() },
        { additionalProperties: false },
      ),
    ),
    routing: ShownRouting,
    triggeredBy: Type.Optional(Type.String({ description: 'The message whose recipient requested this one by a tap or a text.' })),
    smsFallback: Type.Optional(FallbackState),
  },
  { $id: 'Message', additionalProperties: false },
)

const oneOf = STATUSES.join('|')
const incomingTime = (description: string) => Type.Optional(Type.String({ format: 'timestamp', description }))

export const MESSAGE_FILTERS = {
  recipient: Type.Optional(
    Type.String({
      description: 'A phone number.',
      rules: phoneRules(phoneNumberInQuery),
    }),
  ),
  clientReferenceId: Type.Optional(Type.String({ maxLength: 255, description: 'The reference of the message, or of its campaign.' })),
  campaignId: Type.Optional(
    Type.String({
      rules: (text: string) => (UUID.test(text) ? [] : invalid('must be the id of a campaign, as its creation returned it')),
    }),
  ),
  agentId: Type.Optional(Type.String({ maxLength: 200 })),
  status: Type.Optional(
    Type.String({
      pattern: `^(${oneOf})(,(${oneOf}))*$`,
      maxLength: 200,
      description: `one or more of ${STATUSES.join(', ')}, separated by commas`,
    }),
  ),
  test: Type.Optional(Type.Boolean({ default: false, description: 'Test messages instead of all others.' })),
  acceptedFrom: incomingTime('Accepted at this time or later.'),
  acceptedTo: incomingTime('Accepted before this time.'),
}

export const MessageListQuery = listQuery(MESSAGE_LIST, MESSAGE_FILTERS, { rules: timesInOrder })

export function timesInOrder({ acceptedFrom, acceptedTo }: Record<string, unknown>): Violation[] {
  const [from, to] = [acceptedFrom, acceptedTo].map((text) => (typeof text === 'string' ? parseTimestamp(text) : undefined))
  return from !== undefined && to !== undefined && to < from ? [{ path: '/acceptedTo', reason: 'must not be before acceptedFrom' }] : []
}

// If the pattern does not match, the error is "must be" and this description.
export const IdempotencyHeaders = Type.Object({
  'idempotency-key': Type.String({
    pattern: '^[ -~]{1,255}$',
    description: '1 to 255 printable ASCII characters, new for every message; the same ones again only to try the same request again',
  }),
})

export const BODY_ERRORS = [
  'RCS_INVALID_MESSAGE',
  'RCS_INVALID_RECIPIENT',
  'RCS_MISSING_VARIABLE',
  'RCS_TEMPLATE_NOT_APPROVED',
  'RCS_AGENT_NOT_FOUND',
  'RCS_TEMPLATE_NOT_FOUND',
  'RCS_PAYLOAD_TOO_LARGE',
  'RCS_UNSUPPORTED_MEDIA_TYPE',
  'RCS_QUOTA_EXCEEDED',
] as const
