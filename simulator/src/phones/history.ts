import type { EntryRecord } from './ledger.ts'
import type { Messages } from './messages.ts'

type HistoryPage = { agents: Set<string>; after: number | undefined; limit: number }

// A message may have 250 KB. A page ends early, but has at least one entry.
const PAGE_MAX_CHARACTERS = 500_000

/**
 * What a phone received and sent, in order: the entries after a sequence number or, without one, the last entries. `agents`: only of these
 * agents; if it is empty, of all agents and senders of SMS.
 */
export function readHistory(messages: Messages, phone: string, { agents, after, limit }: HistoryPage) {
  const newestFirst: EntryRecord[] = []
  for (const entry of messages.history(phone)) {
    if (entry.seq <= (after ?? 0)) break
    if (agents.size > 0 && (entry.channel !== 'rcs' || !agents.has(entry.origin))) continue
    newestFirst.push(entry)
    if (after === undefined && newestFirst.length === limit) break
  }
  const page = after === undefined ? withinBytes(newestFirst).reverse() : withinBytes(newestFirst.reverse().slice(0, limit))
  return { phone, entries: page.map(viewEntry), next: page.at(-1)?.seq ?? after ?? 0 }
}

function withinBytes(entries: EntryRecord[]): EntryRecord[] {
  let characters = 0
  const end = entries.findIndex(({ content }, index) => {
    characters += content?.body.length ?? 0
    return index > 0 && characters > PAGE_MAX_CHARACTERS
  })
  return end === -1 ? entries : entries.slice(0, end)
}

function viewEntry({ seq, at, kind, channel, messageId, origin, detail, content }: EntryRecord) {
  return {
    seq,
    at: new Date(at).toISOString(),
    kind,
    channel,
    messageId,
    ...(channel === 'sms' ? { sender: origin } : { agentId: origin }),
    ...(detail && { detail }),
    ...(content && contentOf(kind, content.body)),
  }
}

function contentOf(kind: string, body: string) {
  if (kind === 'sms-part') return { text: body }
  return kind === 'accepted' ? { agentMessage: JSON.parse(body) } : { agentEvent: JSON.parse(body) }
}
