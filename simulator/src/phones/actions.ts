import { type Answer, invalidField, ok, refusal } from '../http/answers.ts'
import { between, type Check, record, text } from '../rbm/checks.ts'
import type { Store } from '../state/store.ts'
import { locationEvent, type RbmEvent, subscriptionEvent, tapEvent, textEvent } from '../webhooks/events.ts'
import type { Message } from './messages.ts'
import type { Steps } from './steps.ts'
import { findSuggestion, suggestionsOf } from './suggestions.ts'

export type Acting = {
  store: Store
  steps: Steps
  tell: (event: RbmEvent) => void
  /** An SMS that the phone writes to a number. */
  writeSms: (phone: string, number: string, text: string) => void
}

type Body = Record<string, unknown>
type Action = { check: Check; act: (acting: Acting, phone: string, body: Body) => Answer }

const UNLIMITED = Number.POSITIVE_INFINITY
const id = text(UNLIMITED)
// One SMS, whatever its letters.
const shortText = text(70)
const number = text(15, { pattern: /^\d+$/, says: 'digits' })

const button: Check = (value, path, violations) => {
  if (Number.isInteger(value) && (value as number) >= 0) return
  text(UNLIMITED)(value, path, violations)
}

/** What a person could do with the phone. */
export const ACTIONS = new Map<string, Action>([
  ['deliver', { check: record({ messageId: id, agentId: id }), act: deliver }],
  ['read', { check: record({ messageId: id, agentId: id }, { required: ['messageId'] }), act: read }],
  ['reply', { check: record({ agentId: id, number, text: text(3072) }, { required: ['text'], one: ['agentId', 'number'] }), act: reply }],
  ['tap', { check: record({ messageId: id, agentId: id, button }, { required: ['messageId', 'button'] }), act: tap }],
  [
    'stop',
    {
      check: record({ agentId: id, number }, { one: ['agentId', 'number'] }),
      act: (acting, phone, body) => reply(acting, phone, { ...body, text: 'STOP' }),
    },
  ],
  ['unsubscribe', { check: record({ agentId: id }, { required: ['agentId'] }), act: unsubscribe }],
  [
    'share-location',
    {
      check: record(
        { agentId: id, latitude: between(-90, 90), longitude: between(-180, 180) },
        { required: ['agentId', 'latitude', 'longitude'] },
      ),
      act: shareLocation,
    },
  ],
])

function tellAll({ tell }: Acting, events: RbmEvent[]): Answer {
  for (const event of events) tell(event)
  return ok({ events: events.map(({ data }) => data) })
}

/** The RCS messages of this phone with this id; of several agents at most, which hardly happens. */
function findMessages({ store }: Acting, phone: string, { messageId, agentId }: Body): Message[] {
  const rows = store.all<Message>(`select * from messages where message_id = ? and channel <> 'sms' order by id`, messageId as string)
  return rows.filter((row) => row.channel === 'rcs' && row.phone === phone && (agentId === undefined || row.origin === agentId))
}

function deliver(acting: Acting, phone: string, body: Body): Answer {
  const found = body.messageId === undefined ? undelivered(acting.store, phone) : findMessages(acting, phone, body)
  if (body.messageId !== undefined && found.length === 0) return noSuchMessage(phone)
  const revoked = found.find((message) => message.revoked_at !== null)
  if (revoked !== undefined) return refusal('FAILED_PRECONDITION', 'The message was revoked: no phone can get it any more.')
  const due = found.filter((message) => message.delivered_at === null)
  if (body.messageId !== undefined && due.length === 0) return refusal('FAILED_PRECONDITION', 'The phone has the message already.')
  for (const message of due) acting.steps.deliver(message)
  return ok({ delivered: due.map((message) => message.message_id) })
}

function undelivered(store: Store, phone: string): Message[] {
  return store.all<Message>(
    `select * from messages where phone = ? and channel = 'rcs' and delivered_at is null and revoked_at is null order by id`,
    phone,
  )
}

function read(acting: Acting, phone: string, body: Body): Answer {
  const [message] = findMessages(acting, phone, body)
  if (message === undefined) return noSuchMessage(phone)
  if (message.delivered_at === null) return refusal('FAILED_PRECONDITION', 'The phone does not have the message yet.')
  if (message.read_at !== null) return refusal('FAILED_PRECONDITION', 'The message was read already.')
  acting.steps.read(message)
  return ok({ read: message.message_id })
}

function reply(acting: Acting, phone: string, body: Body): Answer {
  if (typeof body.agentId === 'string') return tellAll(acting, [textEvent({ agentId: body.agentId, phone }, body.text as string)])
  const violations: { field: string; description: string }[] = []
  shortText(body.text, 'text', violations)
  if (violations.length > 0) return invalidField('text', 'An SMS that a phone writes here may have 70 characters.')
  acting.writeSms(phone, body.number as string, body.text as string)
  return ok({ sms: { number: body.number, text: body.text } })
}

function tap(acting: Acting, phone: string, body: Body): Answer {
  const [message] = findMessages(acting, phone, body)
  if (message === undefined) return noSuchMessage(phone)
  if (message.delivered_at === null) return refusal('FAILED_PRECONDITION', 'The phone does not have the message yet.')
  const suggestions = suggestionsOf(JSON.parse(message.body))
  const suggestion = findSuggestion(suggestions, body.button as string | number)
  if (suggestion === undefined) {
    const names = suggestions.map(({ text }) => text).join(', ')
    return invalidField('button', names === '' ? 'The message has no buttons.' : `The message has no such button; it has ${names}.`)
  }
  return tellAll(acting, [tapEvent(message, suggestion)])
}

/** The phone sends both, the event and the word. */
function unsubscribe(acting: Acting, phone: string, body: Body): Answer {
  const who = { agentId: body.agentId as string, phone }
  return tellAll(acting, [subscriptionEvent(who, 'UNSUBSCRIBE'), textEvent(who, 'STOP')])
}

function shareLocation(acting: Acting, phone: string, body: Body): Answer {
  const location = { latitude: body.latitude as number, longitude: body.longitude as number }
  return tellAll(acting, [locationEvent({ agentId: body.agentId as string, phone }, location)])
}

const noSuchMessage = (phone: string): Answer => refusal('NOT_FOUND', `${phone} was sent no RCS message with this id.`)
