import { randomUUID } from 'node:crypto'
import { fullAgentId } from '../agents.ts'
import type { Message } from '../phones/messages.ts'
import type { Suggestion } from '../phones/suggestions.ts'
import { isoTime } from '../timing.ts'

/** An event of a phone. `data` is what the webhook carries in base64. */
export type RbmEvent = {
  agentId: string
  phone: string
  /** The agent's message that it is about, if any. */
  messageId: string
  name: string
  data: Record<string, unknown>
}

type Who = { agentId: string; phone: string }

function fromUser({ agentId, phone }: Who) {
  return { senderPhoneNumber: phone, agentId: fullAgentId(agentId), sendTime: isoTime(Date.now()) }
}

export const aboutMessage = (message: Message): Who => ({ agentId: message.origin, phone: message.phone })

export function receiptEvent(message: Message, eventType: 'DELIVERED' | 'READ'): RbmEvent {
  const who = aboutMessage(message)
  const { messageId } = message
  return { ...who, messageId, name: eventType, data: { ...fromUser(who), eventType, eventId: randomUUID(), messageId } }
}

/** An event of the platform, not of the user: the field of the number has another name. */
export function expiryEvent(message: Message, eventType: 'TTL_EXPIRATION_REVOKED' | 'TTL_EXPIRATION_REVOKE_FAILED'): RbmEvent {
  const { phone, origin: agentId, messageId } = message
  const sendTime = isoTime(Date.now())
  const data = { phoneNumber: phone, agentId: fullAgentId(agentId), eventType, eventId: randomUUID(), messageId, sendTime }
  return { agentId, phone, messageId, name: eventType, data }
}

/** An action of the user that is about no message. */
export function userEvent(who: Who, eventType: 'UNSUBSCRIBE' | 'SUBSCRIBE' | 'IS_TYPING'): RbmEvent {
  return { ...who, messageId: '', name: eventType, data: { ...fromUser(who), eventType, eventId: randomUUID() } }
}

export function textEvent(who: Who, text: string): RbmEvent {
  return { ...who, messageId: '', name: 'text', data: { ...fromUser(who), messageId: randomUUID(), text } }
}

export function locationEvent(who: Who, location: { latitude: number; longitude: number }): RbmEvent {
  return { ...who, messageId: '', name: 'location', data: { ...fromUser(who), messageId: randomUUID(), location } }
}

type UserFile = { mimeType: string; fileSizeBytes: number; fileUri: string; fileName: string }

export function fileEvent(who: Who, payload: UserFile): RbmEvent {
  return { ...who, messageId: '', name: 'file', data: { ...fromUser(who), messageId: randomUUID(), userFile: { payload } } }
}

export const LAUNCH_EVENT = 'agent launch'

/** A change of the agent's launch state, which is about no phone. */
export function launchEvent(agentId: string, newLaunchState: string): RbmEvent {
  const eventId = randomUUID()
  const data = { eventId, agentId: fullAgentId(agentId), newLaunchState, sendTime: isoTime(Date.now()) }
  return { agentId, phone: '', messageId: '', name: LAUNCH_EVENT, data }
}

/** A tapped reply is a message with its text; a tapped action is an event without one. Neither names the agent's message. */
export function tapEvent(message: Message, { kind, text, postbackData }: Suggestion): RbmEvent {
  const who = aboutMessage(message)
  const data =
    kind === 'reply'
      ? { ...fromUser(who), messageId: randomUUID(), suggestionResponse: { postbackData, text } }
      : { ...fromUser(who), eventId: randomUUID(), suggestionResponse: { postbackData } }
  return { ...who, messageId: message.messageId, name: `tapped ${kind}`, data }
}
