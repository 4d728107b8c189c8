import type { Content } from '../../phone/content.ts'
import type { Drawn, Entry } from '../../phone/drawn.ts'
import { meantOf } from '../../phone/meant.ts'
import { type AgentMessage, receivedOf } from '../../phone/received.ts'
import type { Message, TimelineItem } from '../../timeline/types.ts'

type Sms = { sender: string; text: string }

/** What a message says, as the request has it. */
export type SentContent = { content: Content; sms?: Sms & { hasShortLinks: boolean } }

/** What the simulated network received. A real network does not say it. */
export type Received = { isSimulated: boolean; agentMessage?: AgentMessage; deliveredAt?: string; sms?: Sms }

/** A phone with one message: an entry from a sender. `gone`: it was delivered, and the simulated network no longer has it. */
export type Shown = { is: 'entry'; entry: Entry; sender: string | undefined } | { is: 'nothing' | 'nothing-yet' | 'gone' }

const drawnAs = (id: string, drawn: Drawn): Shown => ({ is: 'entry', sender: undefined, entry: { from: 'sender', id, drawn } })

/** What the caller meant to be shown. */
export function meant({ messageId }: Message, { content }: SentContent): Shown {
  return drawnAs(messageId, meantOf(content))
}

/** What the phone has: as the simulated network received it, or as Herald sent it where the network is real. */
export function arrived(message: Message, items: TimelineItem[], sent: SentContent, received: Received): Shown {
  const id = message.messageId
  const { agentMessage, deliveredAt } = received
  // The simulated network knows what the phone has, even if its receipt was lost.
  if (agentMessage && deliveredAt) return drawnAs(id, receivedOf(agentMessage))
  const by = received.sms === undefined ? reportedBy(message, items) : 'sms'
  const sms = received.sms ?? sent.sms
  if (by === 'sms' && sms !== undefined) return { is: 'entry', sender: sms.sender, entry: { from: 'sms', id, text: sms.text } }
  if (by === 'nothing' || by === 'nothing-yet') return { is: by }
  return received.isSimulated ? { is: 'gone' } : meant(message, sent)
}

/** How a message reached the phone, as far as the networks have reported. */
function reportedBy({ status, deliveredAt, smsFallback }: Message, items: TimelineItem[]): 'rcs' | 'sms' | 'nothing' | 'nothing-yet' {
  const sms = smsFallback?.status
  const isLate = items.some(({ step }) => step === 'delivered-late' || step === 'read-late')
  // Not needed: the RCS message arrived, perhaps late.
  if (deliveredAt !== undefined || isLate || sms === 'NOT_NEEDED') return 'rcs'
  if (sms === 'DELIVERED') return 'sms'
  const isOver = (status === 'FAILED' || status === 'EXPIRED') && (sms === undefined || sms === 'FAILED' || sms === 'SKIPPED')
  return isOver ? 'nothing' : 'nothing-yet'
}
