import { type HttpResponse, invalidField, ok, refusal } from '../http/responses.ts'
import { between, type Check, choice, record, text, webAddress } from '../rbm/checks.ts'
import { fileEvent, launchEvent, locationEvent, type RbmEvent, tapEvent, textEvent, userEvent } from '../webhooks/events.ts'
import type { Message, Messages } from './messages.ts'
import type { Offline } from './offline.ts'
import type { Steps } from './steps.ts'
import { findSuggestion, suggestionsOf } from './suggestions.ts'

export type Acting = {
  offline: Offline
  messages: Messages
  steps: Steps
  emit: (event: RbmEvent) => void
  /** Sends an SMS from the phone to a number. */
  writeSms: (phone: string, number: string, text: string) => void
}

type Body = Record<string, unknown>
type Action = { check: Check; act: (acting: Acting, phone: string, body: Body) => HttpResponse; whileOffline?: true }

const UNLIMITED = Number.POSITIVE_INFINITY
const id = text(UNLIMITED)
// One SMS with any characters: UCS-2 counts UTF-16 units, so an emoji has two.
const LONGEST_SMS_UNITS = 70
const number = text(15, { test: (value) => /^\d+$/.test(value), says: 'digits' })

const file = {
  url: webAddress,
  mimeType: text(UNLIMITED, { test: (value) => /^[\w.+-]+\/[\w.+-]+$/.test(value), says: 'a media type' }),
  fileName: text(255),
}

const button: Check = (value, path, violations) => {
  if (Number.isInteger(value) && (value as number) >= 0) return
  text(UNLIMITED)(value, path, violations)
}

/** The actions of a person with a phone. */
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
  ['typing', { check: record({ agentId: id }, { required: ['agentId'] }), act: type }],
  ['subscribe', { check: record({ agentId: id }, { required: ['agentId'] }), act: subscribe }],
  ['unsubscribe', { check: record({ agentId: id }, { required: ['agentId'] }), act: unsubscribe }],
  ['send-file', { check: record({ agentId: id, ...file }, { required: ['agentId', ...Object.keys(file)] }), act: sendFile }],
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
  ['offline', { check: record({}), act: (acting, phone) => setOnline(acting, phone, false), whileOffline: true }],
  ['online', { check: record({}), act: (acting, phone) => setOnline(acting, phone, true), whileOffline: true }],
])

/** Runs a checked action. A phone that is offline can only come online: it neither receives nor sends. */
export function performAction({ act, whileOffline }: Action, acting: Acting, phone: string, body: Body): HttpResponse {
  if (!whileOffline && acting.offline.has(phone)) return refusal('FAILED_PRECONDITION', `${phone} is offline; bring it online first.`)
  return act(acting, phone, body)
}

function setOnline({ offline, steps }: Acting, phone: string, online: boolean): HttpResponse {
  offline.set(phone, !online)
  if (online) steps.resume()
  return ok({ online })
}

function emitAll({ emit, messages }: Acting, events: RbmEvent[]): HttpResponse {
  for (const event of events) {
    // An event of an agent has no phone.
    if (event.phone !== '') messages.noteSent(event)
    emit(event)
  }
  return ok({ events: events.map(({ data }) => data) })
}

/** Returns the RCS messages of this phone with this id. There are several only if several agents used the id. */
function findMessages({ messages }: Acting, phone: string, { messageId, agentId }: Body): Message[] {
  const found = messages.withId(messageId as string)
  return found.filter(
    (message) => message.channel === 'rcs' && message.phone === phone && (agentId === undefined || message.origin === agentId),
  )
}

function deliver(acting: Acting, phone: string, body: Body): HttpResponse {
  const found = body.messageId === undefined ? undelivered(acting, phone) : findMessages(acting, phone, body)
  if (body.messageId !== undefined && found.length === 0) return noSuchMessage(phone)
  const revoked = found.find((message) => message.revokedAt !== null)
  if (revoked !== undefined) return refusal('FAILED_PRECONDITION', 'The message is revoked and cannot be delivered.')
  const due = found.filter((message) => message.deliveredAt === null)
  if (body.messageId !== undefined && due.length === 0) return refusal('FAILED_PRECONDITION', 'The message is already delivered.')
  for (const message of due) acting.steps.deliver(message)
  return ok({ delivered: due.map((message) => message.messageId) })
}

function undelivered({ messages }: Acting, phone: string): Message[] {
  const received = messages.toPhone(phone).map(({ message }) => message)
  return received.filter(({ channel, deliveredAt, revokedAt }) => channel === 'rcs' && deliveredAt === null && revokedAt === null)
}

function read(acting: Acting, phone: string, body: Body): HttpResponse {
  const [message] = findMessages(acting, phone, body)
  if (message === undefined) return noSuchMessage(phone)
  if (message.deliveredAt === null) return refusal('FAILED_PRECONDITION', 'The message is not delivered yet.')
  if (message.readAt !== null) return refusal('FAILED_PRECONDITION', 'The message is already read.')
  acting.steps.read(message)
  return ok({ read: message.messageId })
}

function reply(acting: Acting, phone: string, body: Body): HttpResponse {
  if (typeof body.agentId === 'string') return emitAll(acting, [textEvent({ agentId: body.agentId, phone }, body.text as string)])
  if ((body.text as string).length > LONGEST_SMS_UNITS) {
    return invalidField('text', `An SMS of a phone may have at most ${LONGEST_SMS_UNITS} UTF-16 units.`)
  }
  acting.writeSms(phone, body.number as string, body.text as string)
  return ok({ sms: { number: body.number, text: body.text } })
}

function tap(acting: Acting, phone: string, body: Body): HttpResponse {
  const [message] = findMessages(acting, phone, body)
  if (message === undefined) return noSuchMessage(phone)
  if (message.deliveredAt === null) return refusal('FAILED_PRECONDITION', 'The message is not delivered yet.')
  const suggestions = suggestionsOf(JSON.parse(acting.messages.bodyOf(message)))
  const suggestion = findSuggestion(suggestions, body.button as string | number)
  if (suggestion === undefined) {
    const names = suggestions.map(({ text }) => text).join(', ')
    return invalidField('button', names === '' ? 'The message has no buttons.' : `The message has no such button; it has ${names}.`)
  }
  return emitAll(acting, [tapEvent(message, suggestion)])
}

const senderOf = (phone: string, body: Body) => ({ agentId: body.agentId as string, phone })

function type(acting: Acting, phone: string, body: Body): HttpResponse {
  return emitAll(acting, [userEvent(senderOf(phone, body), 'IS_TYPING')])
}

/** A phone sends both the event and the text. */
function unsubscribe(acting: Acting, phone: string, body: Body): HttpResponse {
  const sender = senderOf(phone, body)
  return emitAll(acting, [userEvent(sender, 'UNSUBSCRIBE'), textEvent(sender, 'STOP')])
}

function subscribe(acting: Acting, phone: string, body: Body): HttpResponse {
  const sender = senderOf(phone, body)
  return emitAll(acting, [userEvent(sender, 'SUBSCRIBE'), textEvent(sender, 'START')])
}

/** The file is never fetched, so its size is invented. */
function sendFile(acting: Acting, phone: string, body: Body): HttpResponse {
  const { url, mimeType, fileName } = body as Record<string, string>
  const payload = { mimeType: mimeType ?? '', fileSizeBytes: 1024, fileUri: url ?? '', fileName: fileName ?? '' }
  return emitAll(acting, [fileEvent(senderOf(phone, body), payload)])
}

function shareLocation(acting: Acting, phone: string, body: Body): HttpResponse {
  const location = { latitude: body.latitude as number, longitude: body.longitude as number }
  return emitAll(acting, [locationEvent(senderOf(phone, body), location)])
}

const LAUNCH_STATES = ['PENDING', 'LAUNCHED', 'REJECTED', 'SUSPENDED', 'UNLAUNCHED']
export const launchBody = record({ state: choice(...LAUNCH_STATES) }, { required: ['state'] })

/** Emits the event of a launch state. It changes nothing else: the fault `notLaunched` decides what an agent may do. */
export function launch(acting: Acting, agentId: string, state: string): HttpResponse {
  return emitAll(acting, [launchEvent(agentId, state)])
}

const noSuchMessage = (phone: string): HttpResponse => refusal('NOT_FOUND', `${phone} was sent no RCS message with this id.`)
