import { bareAgentId } from '../agents.ts'
import { type FieldViolation, type HttpResponse, invalidField, ok, refusal } from '../http/responses.ts'
import { parseJson, textOf } from '../http/server.ts'
import { hasRcs, isPhone } from '../phones/behaviours.ts'
import { choice, isPresent, list, record, text } from './checks.ts'
import { isUuid, type Rbm, type Target } from './messages.ts'

const FEATURES = [
  'RICHCARD_STANDALONE',
  'RICHCARD_CAROUSEL',
  'ACTION_CREATE_CALENDAR_EVENT',
  'ACTION_DIAL',
  'ACTION_OPEN_URL',
  'ACTION_OPEN_URL_IN_WEBVIEW',
  'ACTION_SHARE_LOCATION',
  'ACTION_VIEW_LOCATION',
]

export function capabilities({ faults }: Rbm, { phone, agentId }: Target, requestId: string | null): HttpResponse {
  if (!isUuid(requestId)) return invalidField('requestId', 'requestId must be a UUID as in RFC 4122.')
  if (!hasRcs(phone) || !faults.isLaunched(agentId)) return refusal('NOT_FOUND', 'The phone number is not reachable by RCS.')
  return ok({ features: FEATURES })
}

const agentEvent = record(
  { eventType: choice('IS_TYPING', 'READ'), messageId: text(Number.POSITIVE_INFINITY), name: () => {}, sendTime: () => {} },
  {
    required: ['eventType'],
    rule: (event, _path, violations) => {
      const wanted = event.eventType === 'READ'
      if (isPresent(event, 'messageId') === wanted) return
      violations.push({ field: 'messageId', description: wanted ? 'READ requires a messageId.' : 'messageId is allowed only with READ.' })
    },
  },
)

/** Accepts an agent's event. No message can have its id: events and messages share one set of ids, as at Google. */
export function sendEvent({ messages }: Rbm, { phone, agentId }: Target, eventId: string | null, body: Buffer): HttpResponse {
  if (!isUuid(eventId)) return invalidField('eventId', 'eventId must be a UUID as in RFC 4122.')
  const input = parseJson(textOf(body)) as Record<string, unknown> | undefined
  if (input === undefined) return refusal('INVALID_ARGUMENT', 'Invalid JSON payload received.')
  const violations: FieldViolation[] = []
  agentEvent(input, '', violations)
  if (violations.length > 0) return refusal('INVALID_ARGUMENT', violations[0]?.description ?? '', violations)
  if (!hasRcs(phone)) return refusal('NOT_FOUND', 'The phone number is not reachable by RCS.')
  // The caller's name and sendTime are ignored.
  const { eventType, messageId } = input
  const event = { eventType, ...(isPresent(input, 'messageId') && { messageId }) }
  const known = messages.of(agentId, eventId)
  const entry = { kind: 'agent-event', channel: 'rcs', phone, messageId: eventId, origin: agentId } as const
  if (known === undefined) messages.add(entry, { body: JSON.stringify(event), expiresAt: null })
  else messages.note(known, { kind: 'repeated', phone })
  return ok({ ...event, name: `phones/${phone}/agentEvents/${eventId}`, sendTime: new Date().toISOString() })
}

const batch = record(
  {
    users: list(
      (value, path, violations) => {
        if (!isPhone(value)) violations.push({ field: path, description: `${path} must be a phone number in E.164.` })
      },
      1,
      10_000,
    ),
    agentId: text(Number.POSITIVE_INFINITY),
  },
  { required: ['users'] },
)

// Google draws no sample from fewer numbers; from more numbers, it draws about three quarters.
const SMALLEST_SAMPLED = 500
const CALLS_PER_MINUTE = 600

/** Handles users:batchGet, at most 600 times in each minute. */
export function createBatchGet(rbm: Rbm): (agentInQuery: string | null, body: Buffer) => HttpResponse {
  let minute = 0
  let calls = 0
  return (agentInQuery, body) => {
    const now = Math.floor(Date.now() / 60_000)
    calls = now === minute ? calls + 1 : 1
    minute = now
    if (calls > CALLS_PER_MINUTE) return refusal('RESOURCE_EXHAUSTED', `Quota exceeded: ${CALLS_PER_MINUTE} calls of batchGet a minute.`)
    return batchGet(rbm, agentInQuery, body)
  }
}

function batchGet(rbm: Rbm, agentInQuery: string | null, body: Buffer): HttpResponse {
  const request = parseJson(textOf(body)) as { users: string[]; agentId?: string } | undefined
  if (request === undefined) return refusal('INVALID_ARGUMENT', 'Invalid JSON payload received.')
  const violations: FieldViolation[] = []
  batch(request, '', violations)
  if (violations.length > 0) return refusal('INVALID_ARGUMENT', violations[0]?.description ?? '', violations)
  const agentId = typeof request.agentId === 'string' ? bareAgentId(request.agentId) : agentInQuery
  if (!agentId) return refusal('PERMISSION_DENIED', 'The agent could not be found for this project.')
  if (!rbm.faults.isLaunched(agentId)) return refusal('PERMISSION_DENIED', 'The agent is not launched.')
  const reachableUsers = request.users.filter(hasRcs)
  const sample = request.users.length < SMALLEST_SAMPLED ? [] : request.users.filter((_user, index) => index % 4 !== 3)
  return ok({
    reachableUsers,
    totalRandomSampleUserCount: sample.length,
    reachableRandomSampleUserCount: sample.filter(hasRcs).length,
  })
}
