import { inParallel } from '../support/in-parallel.ts'
import type { Ask } from './ledger.ts'

// What phones got, as the network has stored it.

/** `messageId`: ours by RCS; an SMS has none. `origin`: the agent, or the sender. */
export type PhoneMessage = {
  phone: string
  channel: 'rcs' | 'sms'
  messageId: string | undefined
  origin: string
  text: string
  buttons: string[]
  /** By RCS: until when the network was to try. */
  expiresAt: string | null
  /** By SMS: all its segments have arrived. */
  isWhole: boolean
}

const IN_PARALLEL = 24
const LONGEST_PAGE = 10_000

export async function readPhones(ask: Ask): Promise<PhoneMessage[]> {
  const phones: string[] = []
  for (let after: string | null = ''; after !== null; ) {
    const page: { phones: string[]; next: string | null } = await ask(`phones?limit=${LONGEST_PAGE}&after=${encodeURIComponent(after)}`)
    phones.push(...page.phones)
    after = page.next
  }
  const all: PhoneMessage[] = []
  await inParallel(phones, IN_PARALLEL, async (phone) => {
    const { messages } = await ask(`phones/${encodeURIComponent(phone)}`)
    all.push(...messages.map((message: any) => (message.channel === 'sms' ? ofSms(phone, message) : ofRcs(phone, message))))
  })
  return all
}

function ofRcs(phone: string, { messageId, agentId, agentMessage, expiresAt }: any): PhoneMessage {
  const { text, suggestions = [] } = agentMessage.contentMessage
  const buttons = suggestions.map((suggestion: any) => (suggestion.reply ?? suggestion.action).text)
  return { phone, channel: 'rcs', messageId, origin: agentId, text, buttons, expiresAt, isWhole: true }
}

function ofSms(phone: string, { sender, text, parts, totalParts }: any): PhoneMessage {
  const isWhole = parts === totalParts
  return { phone, channel: 'sms', messageId: undefined, origin: sender, text, buttons: [], expiresAt: null, isWhole }
}
