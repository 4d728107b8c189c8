import { createHash } from 'node:crypto'
import { structureProblem } from '../../json-structure.ts'
import { normalisePhoneNumber } from '../../phone-numbers.ts'
import { parseTimestamp } from '../../time.ts'
import type { CarrierEvent, CarrierEventKind } from '../carrier.ts'
import { fieldsOf, isObject, parseJson } from '../json.ts'
import { storableText } from '../storable-text.ts'
import { readPostback } from './postback.ts'

// Reads the network's events: UserMessage, UserEvent, ServerEvent and AgentLaunchEvent in Google's documentation. It ignores unknown fields,
// and turns an unknown event into one of the kind `unknown` instead of refusing it: Google would resend a refused event for seven days, and
// hold up all events behind it.

type Fields = Record<string, unknown>

export function eventOf(carrier: string, data: Buffer, postbackKey: Buffer): CarrierEvent {
  // An event has some 20 values. An event that exceeds the limits of a request body is not parsed, and counts as unknown.
  const fields = structureProblem(data) === undefined ? fieldsOf(parseJson(data)) : {}
  const phone = phoneOf(fields)
  return {
    carrier,
    eventId: idOf(fields) ?? createHash('sha256').update(data).digest('hex'),
    occurredAt: parseTimestamp(textOf(fields.sendTime)) ?? new Date(),
    phone: phone ?? '',
    ...kindOf(fields, phone, postbackKey),
  }
}

function kindOf(fields: Fields, phone: string | undefined, postbackKey: Buffer): CarrierEventKind {
  const agentId = agentIdOf(fields)
  if (agentId === undefined) return unknown('an event without an agent')
  if (typeof fields.newLaunchState === 'string') {
    return { kind: 'agent-launch', agentId, state: storableText(fields.newLaunchState.slice(0, 100)) }
  }
  if (phone === undefined) return unknown('an event without a phone number')
  if (fields.suggestionResponse !== undefined) return tapOf(agentId, fieldsOf(fields.suggestionResponse), postbackKey)
  if (fields.eventType !== undefined) return receiptOf(agentId, fields)
  return messageOf(agentId, fields)
}

const RECEIPTS = new Map<unknown, 'delivered' | 'read' | 'expired' | 'expiry-failed'>([
  ['DELIVERED', 'delivered'],
  ['READ', 'read'],
  ['TTL_EXPIRATION_REVOKED', 'expired'],
  ['TTL_EXPIRATION_REVOKE_FAILED', 'expiry-failed'],
])
const NOTICES = new Map<unknown, 'typing' | 'subscribed' | 'unsubscribed'>([
  ['IS_TYPING', 'typing'],
  ['SUBSCRIBE', 'subscribed'],
  ['UNSUBSCRIBE', 'unsubscribed'],
])
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

function receiptOf(agentId: string, { eventType, messageId }: Fields): CarrierEventKind {
  const notice = NOTICES.get(eventType)
  if (notice !== undefined) return { kind: notice, agentId }
  const receipt = RECEIPTS.get(eventType)
  if (receipt === undefined) return unknown('an event of an unknown type')
  // Herald's ids are UUIDs. Another id belongs to a message that another system sent for the same agent.
  if (!UUID.test(textOf(messageId))) return unknown('a receipt for a message that is not ours')
  return { kind: receipt, agentId, messageId: textOf(messageId).toLowerCase() }
}

function tapOf(agentId: string, { postbackData, text }: Fields, postbackKey: Buffer): CarrierEventKind {
  const postback = readPostback(postbackKey, textOf(postbackData))
  // The postback is forged, or comes from a message that another system sent for the same agent. Its text is not recorded as a reply either,
  // since the message that it replies to is unknown.
  if (postback === undefined) return unknown('a tap on a button that is not ours')
  return { kind: 'tapped', agentId, ...postback, text: typeof text === 'string' ? storableText(text) : undefined }
}

function messageOf(agentId: string, { text, location, userFile }: Fields): CarrierEventKind {
  if (typeof text === 'string') return { kind: 'wrote', agentId, text: storableText(text) }
  // Protocol buffers omit zeros from JSON.
  const { latitude = 0, longitude = 0 } = fieldsOf(location)
  if (isObject(location) && isDegrees(latitude, 90) && isDegrees(longitude, 180)) {
    return { kind: 'shared-location', agentId, latitude, longitude }
  }
  const { fileUri, mimeType, fileName } = fieldsOf(fieldsOf(userFile).payload)
  if (typeof fileUri !== 'string') return unknown('a message of an unknown type')
  const name = typeof fileName === 'string' ? storableText(fileName) : undefined
  return { kind: 'sent-file', agentId, url: storableText(fileUri), mimeType: storableText(textOf(mimeType)), name }
}

function isDegrees(value: unknown, max: number): value is number {
  return typeof value === 'number' && Math.abs(value) <= max
}

/** In events, an agent id may end with its domain. */
function agentIdOf({ agentId }: Fields): string | undefined {
  const id = storableText(textOf(agentId).replace(/@rbm\.goog$/, ''))
  return id === '' ? undefined : id
}

function phoneOf({ senderPhoneNumber, phoneNumber }: Fields): string | undefined {
  return normalisePhoneNumber(textOf(senderPhoneNumber) || textOf(phoneNumber))
}

/** A reply has only its own message id. A receipt has the id of the message that it is for, and a message has several receipts. */
function idOf({ eventId, messageId, eventType }: Fields): string | undefined {
  const id = storableText(textOf(eventId) || (eventType === undefined ? textOf(messageId) : ''))
  return id === '' || id.length > 200 ? undefined : id
}

function unknown(description: string): CarrierEventKind {
  return { kind: 'unknown', description }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
