import type { Entry } from '../../phone/drawn.ts'
import { type AgentMessage, placeText, receivedOf } from '../../phone/received.ts'

// The ledger of a phone: what it received, did and sent, in order, of the account's agents.

type Detail = {
  event?: string
  text?: string
  location?: { latitude?: number; longitude?: number }
  file?: { fileName?: string }
}

export type LedgerEntry = {
  position: number
  at: string
  kind: 'accepted' | 'repeated' | 'agent-event' | 'delivered' | 'read' | 'revoked' | 'expired' | 'answered' | 'sent'
  agentId: string
  messageId: string
  agentMessage?: AgentMessage
  detail?: Detail
}

/** An SMS of the account that reached the phone. */
export type PhoneSms = { messageId: string; sender: string; text: string; at: string }

export type Conversation = {
  key: string
  agentId: string | undefined
  name: string
  entries: Entry[]
  /** How many messages the phone has not got yet. */
  waiting: number
  /** The phone got older messages, which are not among the entries. */
  isCut: boolean
  lastAt: string
}

const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })

/**
 * The conversations of a phone, most recent first: a phone keeps one with each agent, and one with each sender of SMS. `hasOlder`: the ledger has
 * older entries.
 */
export function conversationsOf(entries: LedgerEntry[], hasOlder: boolean, sms: PhoneSms[]): Conversation[] {
  const byAgent = Map.groupBy(entries, ({ agentId }) => agentId)
  const bySender = Map.groupBy(sms, ({ sender }) => sender)
  const all = [
    ...[...byAgent].map(([agentId, own]) => withAgent(agentId, own, hasOlder)),
    ...[...bySender].map(([sender, own]) => bySms(sender, own)),
  ]
  return all.sort((one, other) => (one.lastAt < other.lastAt ? 1 : -1))
}

function withAgent(agentId: string, ledger: LedgerEntry[], hasOlder: boolean): Conversation {
  // Kept to the end: the network may deliver a message after its expiry.
  const contents = new Map<string, AgentMessage>()
  const waiting = new Set<string>()
  const entries: Entry[] = []
  let isCut = hasOlder
  for (const entry of ledger) {
    const { kind, messageId, agentMessage, at } = entry
    if (kind === 'accepted' && agentMessage !== undefined) {
      contents.set(messageId, agentMessage)
      waiting.add(messageId)
    } else if (ENDS.has(kind)) waiting.delete(messageId)
    if (kind === 'delivered') {
      const message = contents.get(messageId)
      // The content of a message is in its older entry `accepted`.
      if (message === undefined) isCut = true
      else entries.push({ from: 'sender', id: messageId, drawn: receivedOf(message), at: clock(at) })
    }
    entries.push(...sentIn(entry))
  }
  return { key: agentId, agentId, name: agentId, entries, waiting: waiting.size, isCut, lastAt: ledger.at(-1)?.at ?? '' }
}

/** A message that was delivered, revoked or expired no longer waits. */
const ENDS = new Set<LedgerEntry['kind']>(['delivered', 'revoked', 'expired'])

function sentIn({ kind, detail, position, at }: LedgerEntry): Entry[] {
  const sent = (kind === 'sent' || kind === 'answered') && detail ? sentBy(detail) : undefined
  return sent === undefined ? [] : [{ from: 'owner', id: `sent-${position}`, ...sent, at: clock(at) }]
}

/** What the phone shows of what its owner sent. A tapped action opens something else, and is no message. */
function sentBy({ event, text, location, file }: Detail): { text: string; icon?: 'map-pin' | 'file-text' } | undefined {
  if ((event === 'text' || event === 'tapped reply') && text !== undefined) return { text }
  if (location !== undefined) return { text: placeText(location.latitude ?? 0, location.longitude ?? 0), icon: 'map-pin' }
  return file === undefined ? undefined : { text: file.fileName ?? '', icon: 'file-text' }
}

function bySms(sender: string, sms: PhoneSms[]): Conversation {
  const entries = sms.map(({ messageId, text, at }): Entry => ({ from: 'sms', id: `sms-${messageId}`, text, at: clock(at) }))
  return { key: `sms ${sender}`, agentId: undefined, name: sender, entries, waiting: 0, isCut: false, lastAt: sms.at(-1)?.at ?? '' }
}

const clock = (at: string) => CLOCK.format(new Date(at))

/** The ids of the last messages to the phone, the newest last: ids are in the order of acceptance. */
export function lastMessages(entries: LedgerEntry[], more: string[], limit: number): string[] {
  const ids = entries.filter(({ kind }) => kind === 'accepted').map(({ messageId }) => messageId)
  return [...new Set([...ids, ...more])].sort().slice(-limit)
}
