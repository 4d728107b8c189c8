import { Type } from 'typebox'
import type { Violation } from '../errors.ts'
import { EVENT_KINDS } from '../events/kinds.ts'
import { listQuery } from '../http/list-schemas.ts'
import type { WebhookHosts } from '../public-host.ts'
import { OutgoingTime } from '../schemas.ts'
import { parseTimestamp } from '../time.ts'
import { COUNTED_UP_TO } from './endpoints.ts'
import { ATTEMPT_LIST, ENDPOINT_LIST } from './lists.ts'
import { urlProblem } from './url.ts'

export const WEBHOOKS_TAG = {
  name: 'Webhook endpoints',
  description: 'Where the events of the account are posted to. An account has at most 20 endpoints.',
}

const object = { additionalProperties: false }

export const EndpointPath = Type.Object({ id: Type.Integer() }, object)
export const ENDPOINT_NOT_FOUND = 'RCS_WEBHOOK_ENDPOINT_NOT_FOUND'
export const BODY_ERRORS = ['RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'] as const

const at = (description: string) => Type.Optional(Type.Unsafe<Date>({ ...OutgoingTime, description }))
const counted = (description: string) => Type.Integer({ description: `${description} Counted up to ${COUNTED_UP_TO}.` })
const STATUSES = ['ACTIVE', 'DISABLED'] as const

const ENDPOINT = {
  endpointId: Type.Integer(),
  url: Type.String(),
  types: Type.Union([Type.Array(Type.Enum([...EVENT_KINDS])), Type.Null()], {
    description: 'The types of events that are posted; null means all, including types that later versions add.',
  }),
  status: Type.Enum([...STATUSES], { description: 'Nothing is posted to a `DISABLED` endpoint.' }),
  disabledAt: at('When it was disabled.'),
  disabledBecause: Type.Optional(
    Type.Enum(['FAILING', 'OPERATOR', 'CALLER'], {
      description:
        '`FAILING`: it accepted nothing for five days. `OPERATOR`: an operator disabled it, and only an operator can enable it. `CALLER`: the account disabled it.',
    }),
  ),
  failingSince: at('The first failed attempt since the last accepted event.'),
  createdAt: OutgoingTime,
  pending: counted('Events that are to be posted, now or later.'),
  oldestPendingAt: at(
    `When the oldest pending event happened; absent if none is pending. Above ${COUNTED_UP_TO}, the oldest of those that are due first.`,
  ),
  failed: counted('Events that were attempted and never accepted. A replay posts them again.'),
  secrets: Type.Array(Type.Object({ createdAt: OutgoingTime, endsAt: at('Until when a replaced secret signs.') }, object), {
    description: 'When each secret that signs was made, newest first.',
  }),
}
const EXAMPLE = {
  endpointId: 1,
  url: 'https://hooks.example.com/herald',
  types: ['message.delivered', 'message.failed'],
  status: 'ACTIVE',
  createdAt: '2026-01-31T08:00:00.000Z',
  pending: 0,
  failed: 0,
  secrets: [{ createdAt: '2026-01-31T08:00:00.000Z' }],
}
const secret = Type.String({ description: 'Signs the events. It is returned only this once.', examples: ['whsec_…'] })

export const WebhookEndpoint = Type.Object(ENDPOINT, { $id: 'WebhookEndpoint', ...object, examples: [EXAMPLE] })
export const NewWebhookEndpoint = Type.Object({ ...ENDPOINT, secret }, { ...object, examples: [{ ...EXAMPLE, secret: 'whsec_…' }] })
export const ChangedWebhookEndpoint = Type.Object(
  {
    ...ENDPOINT,
    missedSince: at('Present if the request enabled the endpoint: a replay `from` this time posts the events that it missed.'),
  },
  { ...object, examples: [EXAMPLE] },
)
export const RotatedSecret = Type.Object(
  { endpointId: Type.Integer(), secret, earlierSecretsEndAt: at('Until then, events are signed with the earlier secrets as well.') },
  object,
)

/** All types, as callers write it. */
const ALL = '*'
const types = Type.Array(Type.Enum([...EVENT_KINDS, ALL]), {
  minItems: 1,
  maxItems: EVENT_KINDS.length,
  description: 'The types of events to post. `["*"]`: all, including types that later versions add.',
  rules: typesRule,
  examples: [['message.delivered', 'message.failed']],
})

function typesRule(given: unknown[]): Violation[] {
  const repeated = given.findIndex((type, index) => given.indexOf(type) < index)
  if (repeated >= 0) return [{ path: `/${repeated}`, reason: 'appears twice' }]
  return given.includes(ALL) && given.length > 1 ? [{ path: '', reason: 'must have no other item than "*"' }] : []
}

/** The types as they are stored; null means all. */
export function storedTypes<Given extends string>(given: Given[]): Exclude<Given, '*'>[] | null {
  return given.some((type) => type === ALL) ? null : (given as Exclude<Given, '*'>[])
}

const urlOf = (hosts: WebhookHosts) =>
  Type.String({
    minLength: 1,
    maxLength: 2048,
    description: 'With `https:`, at a public host, without credentials and fragment. Unique in the account.',
    examples: ['https://hooks.example.com/herald'],
    rules: (url: string): Violation[] => {
      const reason = url === '' ? undefined : urlProblem(url, hosts)
      return reason === undefined ? [] : [{ path: '', reason }]
    },
  })

export const endpointRequest = (hosts: WebhookHosts) => Type.Object({ url: urlOf(hosts), types: Type.Optional(types) }, object)

export const endpointChange = (hosts: WebhookHosts) =>
  Type.Object(
    {
      url: Type.Optional(urlOf(hosts)),
      types: Type.Optional(types),
      status: Type.Optional(
        Type.Enum([...STATUSES], {
          description: '`ACTIVE` also ends a pause after failures, and clears them. `DISABLED` posts nothing more.',
        }),
      ),
    },
    { ...object, minProperties: 1, examples: [{ types: ['*'] }] },
  )

const timestamp = (description: string) =>
  Type.Optional(Type.String({ format: 'timestamp', description, examples: ['2026-01-31T08:00:00Z'] }))

export const ReplayRequest = Type.Object(
  {
    eventId: Type.Optional(Type.String({ minLength: 1, maxLength: 100, description: 'Replay this event only.' })),
    from: timestamp('Replay events recorded at this time or later.'),
    to: timestamp('Replay events recorded before this time. Absent: until now.'),
    failed: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Replay only events that have failed attempts and no accepted one, also those that wait for a retry.',
      }),
    ),
  },
  { ...object, rules: replayRules, examples: [{ failed: true, from: '2026-01-31T08:00:00Z' }] },
)

function replayRules({ eventId, from, to, failed }: Record<string, unknown>): Violation[] {
  if (eventId !== undefined) {
    return Object.entries({ from, to, failed }).flatMap(([name, value]) =>
      value === undefined ? [] : [{ path: `/${name}`, reason: 'must be absent if eventId is given' }],
    )
  }
  if (from === undefined && failed !== true) return [{ path: '', reason: 'must have eventId or from, or failed: true' }]
  const [start, end] = [from, to].map((time) => (typeof time === 'string' ? parseTimestamp(time) : undefined))
  return start !== undefined && end !== undefined && end <= start ? [{ path: '/to', reason: 'must be later than from' }] : []
}

export const ReplayCount = Type.Object(
  {
    endpointId: Type.Integer(),
    replayed: Type.Integer({ description: 'How many events will be posted again.' }),
    alreadyDue: Type.Integer({ description: 'How many were about to be posted already.' }),
  },
  object,
)

const ATTEMPT = {
  attemptId: Type.String(),
  eventId: Type.Optional(Type.String({ description: 'Absent if the event is no longer in the log.' })),
  type: Type.Optional(Type.String({ description: 'The type of the event; absent with `eventId`.' })),
  attempt: Type.Integer({ description: 'The number of the attempt: 1 for the first, also after a replay.' }),
  attemptedAt: OutgoingTime,
  status: Type.Optional(Type.Integer({ description: 'The status of the response. 2xx means accepted.' })),
  error: Type.Optional(Type.String({ description: 'Why there was no response.' })),
  durationMs: Type.Integer(),
  response: Type.Optional(Type.String({ description: 'The first KiB of the response body; absent if it was empty.' })),
  nextAttemptAt: at('When the next attempt follows. Only the latest attempt to post an event can have it.'),
}
const SentRequest = Type.Object(
  {
    url: Type.String({ description: 'The URL of the endpoint now.' }),
    headers: Type.Record(Type.String(), Type.String(), { description: 'Without the signature, which is not stored.' }),
    body: Type.String({ description: 'The event, as the log has it: the bytes that were signed.' }),
  },
  { ...object, description: 'What was posted; absent if the event is no longer in the log.' },
)
export const WebhookAttempt = Type.Object(ATTEMPT, { $id: 'WebhookAttempt', ...object })
export const AttemptWithRequest = Type.Object({ ...ATTEMPT, request: Type.Optional(SentRequest) }, object)
export const AttemptPath = Type.Object({ id: Type.Integer(), attemptId: Type.String({ minLength: 1, maxLength: 100 }) }, object)
export const TestResult = Type.Object({ endpointId: Type.Integer(), ...ATTEMPT }, object)

export const EndpointQuery = listQuery(ENDPOINT_LIST, { status: Type.Optional(Type.Enum([...STATUSES])) })
export const AttemptQuery = listQuery(ATTEMPT_LIST, {
  eventId: Type.Optional(Type.String({ minLength: 1, maxLength: 100, description: 'Attempts to post this event.' })),
  failed: Type.Optional(Type.Boolean({ description: '`true`: only failed attempts. `false`: only accepted ones.' })),
})
