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
  /** What the phone shows of it, if it is something that its owner sent. */
  shown?: Record<string, unknown>
}

type Parties = { agentId: string; phone: string }

function fromUser({ agentId, phone }: Parties) {
  return { senderPhoneNumber: phone, agentId: fullAgentId(agentId), sendTime: isoTime(Date.now()) }
}

export const aboutMessage = (message: Message): Parties => ({ agentId: message.origin, phone: message.phone })

export function receiptEvent(message: Message, eventType: 'DELIVERED' | 'READ'): RbmEvent {
  const parties = aboutMessage(message)
  const { messageId } = message
  return { ...parties, messageId, name: eventType, data: { ...fromUser(parties), eventType, eventId: randomUUID(), messageId } }
}

/** Returns an event of the platform, not of the user. Its field for the number has another name. */
export function expiryEvent(message: Message, eventType: 'TTL_EXPIRATION_REVOKED' | 'TTL_EXPIRATION_REVOKE_FAILED'): RbmEvent {
  const { phone, origin: agentId, messageId } = message
  const sendTime = isoTime(Date.now())
  const data = { phoneNumber: phone, agentId: fullAgentId(agentId), eventType, eventId: randomUUID(), messageId, sendTime }
  return { agentId, phone, messageId, name: eventType, data }
}

/** An action of the user that is about no message. */
export function userEvent(parties: Parties, eventType: 'UNSUBSCRIBE' | 'SUBSCRIBE' | 'IS_TYPING'): RbmEvent {
  return { ...parties, messageId: '', name: eventType, data: { ...fromUser(parties), eventType, eventId: randomUUID() } }
}

export function textEvent(parties: Parties, text: string): RbmEvent {
  return { ...parties, messageId: '', name: 'text', data: { ...fromUser(parties), messageId: randomUUID(), text }, shown: { text } }
}

export function locationEvent(parties: Parties, location: { latitude: number; longitude: number }): RbmEvent {
  return {
    ...parties,
    messageId: '',
    name: 'location',
    data: { ...fromUser(parties), messageId: randomUUID(), location },
    shown: { location },
  }
}

type UserFile = { mimeType: string; fileSizeBytes: number; fileUri: string; fileName: string }

export function fileEvent(parties: Parties, payload: UserFile): RbmEvent {
  const data = { ...fromUser(parties), messageId: randomUUID(), userFile: { payload } }
  return { ...parties, messageId: '', name: 'file', data, shown: { file: payload } }
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
  const parties = aboutMessage(message)
  const data =
    kind === 'reply'
      ? { ...fromUser(parties), messageId: randomUUID(), suggestionResponse: { postbackData, text } }
      : { ...fromUser(parties), eventId: randomUUID(), suggestionResponse: { postbackData } }
  return { ...parties, messageId: message.messageId, name: `tapped ${kind}`, data, shown: { text, postbackData } }
}

/** What the ledger has about an event that a phone sent. */
export const sentDetail = ({ name, shown }: RbmEvent): Record<string, unknown> => ({ event: name, ...shown })
