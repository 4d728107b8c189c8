import { inParallel } from '../in-parallel.ts'
import type { Ask } from '../ledger.ts'

// What phones got, as the network has kept it: the other side of what was asked for.

/** `messageId`: ours by RCS; by SMS none. `origin`: the agent, or the sender. */
export type Received = {
  phone: string
  channel: 'rcs' | 'sms'
  messageId: string | undefined
  origin: string
  text: string
  buttons: string[]
  /** By RCS: until when the network was to try. */
  expiresAt: string | null
  /** Of an SMS: all its parts are there. */
  isWhole: boolean
}

const AT_ONCE = 24
const LONGEST_PAGE = 10_000

export async function readReceived(ask: Ask): Promise<Received[]> {
  const phones: string[] = []
  for (let after: string | null = ''; after !== null; ) {
    const page: { phones: string[]; next: string | null } = await ask(`phones?limit=${LONGEST_PAGE}&after=${encodeURIComponent(after)}`)
    phones.push(...page.phones)
    after = page.next
  }
  const received: Received[] = []
  await inParallel(phones, AT_ONCE, async (phone) => {
    const { messages } = await ask(`phones/${encodeURIComponent(phone)}`)
    received.push(...messages.map((message: any) => (message.channel === 'sms' ? ofSms(phone, message) : ofRcs(phone, message))))
  })
  return received
}

function ofRcs(phone: string, { messageId, agentId, agentMessage, expiresAt }: any): Received {
  const { text, suggestions = [] } = agentMessage.contentMessage
  const buttons = suggestions.map((suggestion: any) => (suggestion.reply ?? suggestion.action).text)
  return { phone, channel: 'rcs', messageId, origin: agentId, text, buttons, expiresAt, isWhole: true }
}

function ofSms(phone: string, { sender, text, parts, totalParts }: any): Received {
  const isWhole = parts === totalParts
  return { phone, channel: 'sms', messageId: undefined, origin: sender, text, buttons: [], expiresAt: null, isWhole }
}
