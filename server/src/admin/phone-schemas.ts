import { type TProperties, Type } from 'typebox'
import { isObject } from '../carriers/json.ts'
import type { Violation } from '../errors.ts'
import { escapePointer } from '../validation.ts'

export const PHONE_ERRORS = ['RCS_NOT_FOUND', 'RCS_NOT_SIMULATED'] as const

export const PHONES_TAG = {
  name: 'Phones',
  description:
    'The phones of the simulated network, where the carrier of an agent is the simulator. All accounts share the phones, but an account sees only what its own agents sent and received.',
}

const object = { additionalProperties: false }
const nullable = (schema: object) => Type.Unsafe<never>({ anyOf: [schema, { type: 'null' }] })
const Time = Type.String({ format: 'date-time' })

const Behaviour = Type.Object(
  {
    rcs: Type.Enum(['accepted', 'not-found', 'refused', 'busy-twice'], {
      description: 'How the network responds to an RCS message to it.',
    }),
    delivers: Type.Boolean(),
    reads: Type.Boolean(),
    replies: Type.Optional(Type.Enum(['text', 'tap', 'stop'])),
    smsFails: Type.Boolean(),
  },
  { ...object, description: 'What the phone does by itself; the last two digits of its number choose.' },
)

const Last = Type.Object(
  {
    position: Type.Integer(),
    at: Time,
    kind: Type.Enum(['accepted', 'refused', 'sent', 'answered'], {
      description:
        '`accepted`, `refused`: a message to the phone. `sent`: an action of a person on the phone. `answered`: an action of the phone by itself.',
    }),
    agentId: Type.String(),
    messageId: Type.String({ description: 'The message; empty for a text that is no reply to one.' }),
    text: nullable(Type.String({ description: 'Null for a file, a location and a refused message.' })),
    detail: Type.Optional(Type.Unknown({ description: 'What was sent, or the status of the refusal.' })),
  },
  object,
)

export const Sms = Type.Object(
  {
    messageId: Type.String({ format: 'uuid', description: 'The message that the SMS is the fallback of.' }),
    sender: Type.String(),
    text: Type.String({ description: 'The whole text, as the phone shows it.' }),
    at: Time,
  },
  object,
)
export const SmsBody = Type.Object({ items: Type.Array(Sms) }, object)

export const PhoneBody = Type.Object(
  {
    phoneId: Type.String({ description: 'Names the phone in paths, also for viewers, who see only a masked number.' }),
    phone: Type.String(),
    online: Type.Boolean(),
    behaviour: Behaviour,
    last: Type.Unsafe<unknown>({
      anyOf: [Last, { type: 'null' }],
      description: 'The last RCS text. Null: none of this account so far; there may be a `lastSms`.',
    }),
    lastSms: Type.Optional({ ...Sms, description: 'The last SMS of the account on the phone, if it came after `last`.' }),
    messageIds: Type.Optional(
      Type.Array(Type.String({ format: 'uuid' }), {
        description:
          'The last three messages of the account to the phone, the newest first, also those that the network has not accepted. Absent in lists.',
      }),
    ),
  },
  { $id: 'Phone', ...object },
)

const Entry = Type.Object(
  {
    position: Type.Integer(),
    at: Time,
    kind: Type.Enum(['accepted', 'repeated', 'agent-event', 'delivered', 'read', 'revoked', 'expired', 'answered', 'sent']),
    agentId: Type.String(),
    messageId: Type.String({ description: 'The message that the entry is about; empty if it is about none.' }),
    agentMessage: Type.Optional(Type.Unknown({ description: 'With `accepted`: the message, in Google’s form.' })),
    agentEvent: Type.Optional(Type.Unknown()),
    detail: Type.Optional(Type.Unknown({ description: 'With `sent` and `answered`: the event, and what the phone shows of it.' })),
  },
  object,
)
export const HistoryBody = Type.Object(
  { entries: Type.Array(Entry), next: Type.Integer({ description: '`after` of the next request.' }) },
  object,
)

const MessageId = Type.String({ minLength: 1, maxLength: 100 })
const ofMessage = { messageId: MessageId }

/** What a person can do with a phone: path, operation, summary, and the fields of the body besides `agentId`. */
export const PHONE_ACTIONS: [action: string, operationId: string, summary: string, fields: TProperties][] = [
  ['deliver', 'deliverToPhone', 'Deliver a message that the phone does not get by itself, even after its expiry', ofMessage],
  ['read', 'readOnPhone', 'Read a message', ofMessage],
  [
    'tap',
    'tapOnPhone',
    'Tap a button of a message',
    {
      ...ofMessage,
      button: Type.Unsafe<string | number>({
        type: ['string', 'integer'],
        minimum: 0,
        maximum: 100,
        description: 'The text of the button, its postback data or its index; chips come first.',
      }),
    },
  ],
  ['reply', 'replyFromPhone', 'Write a text to an agent', { text: Type.String({ minLength: 1, maxLength: 3072 }) }],
  ['stop', 'stopFromPhone', 'Write STOP to an agent', {}],
  ['subscribe', 'subscribeFromPhone', 'Subscribe to an agent in the settings of the phone', {}],
  ['unsubscribe', 'unsubscribeFromPhone', 'Unsubscribe from an agent in the settings of the phone', {}],
  ['typing', 'typeOnPhone', 'Begin to type', {}],
  [
    'share-location',
    'shareLocationFromPhone',
    'Share a location with an agent',
    { latitude: Type.Number({ minimum: -90, maximum: 90 }), longitude: Type.Number({ minimum: -180, maximum: 180 }) },
  ],
  [
    'send-file',
    'sendFileFromPhone',
    'Send a file to an agent; it is not fetched',
    {
      url: Type.String({ minLength: 1, maxLength: 2048 }),
      mimeType: Type.String({ minLength: 1, maxLength: 100 }),
      fileName: Type.String({ minLength: 1, maxLength: 255 }),
    },
  ],
]

/** Each fault has `count` or `rate`, and its own settings, which the simulator checks. */
function faultRules(faults: Record<string, unknown>): Violation[] {
  return Object.entries(faults).flatMap(([name, fault]) => {
    const isFlat = isObject(fault) && Object.values(fault).every((value) => typeof value === 'number' || typeof value === 'string')
    return isFlat ? [] : [{ path: `/${escapePointer(name)}`, reason: 'must be an object of numbers and texts' }]
  })
}

const PARTS = ['api', 'token', 'webhooks', 'smpp']
const Seed = Type.Optional(
  Type.Integer({ minimum: 0, maximum: 0xffffffff, description: 'The seed of the random generator that decides the cases of a `rate`.' }),
)
const AgentFaults = Type.Optional(
  Type.Object({ notLaunched: Type.Array(Type.String({ maxLength: 200 }), { maxItems: 100, description: 'Ids of agents.' }) }, object),
)
const partsWith = (schema: object) => Object.fromEntries(PARTS.map((part) => [part, Type.Optional(Type.Unsafe<object>(schema))]))

const Part = { type: 'object', maxProperties: 50, additionalProperties: { type: 'object' }, rules: faultRules }
export const NewFaults = Type.Object(
  { seed: Seed, agents: AgentFaults, ...partsWith(Part) },
  {
    ...object,
    description: 'simulator/README.md lists the faults.',
    examples: [{ api: { tooManyRequests: { count: 3, retryAfterSeconds: 2 } }, webhooks: { duplicated: { rate: 0.1 } } }],
  },
)
export const FaultsBody = Type.Object(
  { seed: Seed, agents: AgentFaults, ...partsWith({ type: 'object', additionalProperties: true }) },
  { ...object, description: 'The faults that are on, with their remaining counts.' },
)
