import { randomUUID } from 'node:crypto'
import type { Message } from '../phones/messages.ts'
import type { Suggestion } from '../phones/suggestions.ts'

/** What Google tells of a phone. `data` is what its webhook carries in base64. */
export type RbmEvent = {
  agentId: string
  phone: string
  /** The agent's message that it is about, where it is about one. */
  messageId: string
  name: string
  data: Record<string, unknown>
}

type Who = { agentId: string; phone: string }

// Google's events carry the agent's full name, though requests have only what stands before the @.
const fullAgentId = (agentId: string): string => `${agentId}@rbm.goog`

function fromUser({ agentId, phone }: Who) {
  return { senderPhoneNumber: phone, agentId: fullAgentId(agentId), sendTime: new Date().toISOString() }
}

export const aboutMessage = (message: Message): Who => ({ agentId: message.origin, phone: message.phone })

export function receiptEvent(message: Message, eventType: 'DELIVERED' | 'READ'): RbmEvent {
  const who = aboutMessage(message)
  const messageId = message.message_id
  return { ...who, messageId, name: eventType, data: { ...fromUser(who), eventType, eventId: randomUUID(), messageId } }
}

/** Of the platform, not of the user: the number has another name in it. */
export function expiryEvent(message: Message): RbmEvent {
  const eventType = 'TTL_EXPIRATION_REVOKED'
  const { phone, origin: agentId, message_id: messageId } = message
  const sendTime = new Date().toISOString()
  const data = { phoneNumber: phone, agentId: fullAgentId(agentId), eventType, eventId: randomUUID(), messageId, sendTime }
  return { agentId, phone, messageId, name: eventType, data }
}

export function subscriptionEvent(who: Who, eventType: 'UNSUBSCRIBE' | 'SUBSCRIBE'): RbmEvent {
  return { ...who, messageId: '', name: eventType, data: { ...fromUser(who), eventType, eventId: randomUUID() } }
}

export function textEvent(who: Who, text: string): RbmEvent {
  return { ...who, messageId: '', name: 'text', data: { ...fromUser(who), messageId: randomUUID(), text } }
}

export function locationEvent(who: Who, location: { latitude: number; longitude: number }): RbmEvent {
  return { ...who, messageId: '', name: 'location', data: { ...fromUser(who), messageId: randomUUID(), location } }
}

/** A tapped reply is a message with its text; a tapped action is an event without one. Neither says which message it belonged to. */
export function tapEvent(message: Message, { kind, text, postbackData }: Suggestion): RbmEvent {
  const who = aboutMessage(message)
  const data =
    kind === 'reply'
      ? { ...fromUser(who), messageId: randomUUID(), suggestionResponse: { postbackData, text } }
      : { ...fromUser(who), eventId: randomUUID(), suggestionResponse: { postbackData } }
  return { ...who, messageId: message.message_id, name: `tapped ${kind}`, data }
}
