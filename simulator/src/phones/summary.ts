import type { Store } from '../state/store.ts'
import { behaviourOf } from './behaviours.ts'
import type { EntryRecord } from './ledger.ts'
import type { Offline } from './offline.ts'

/** The phones in contact with these agents (with any agent, if none is given), the most recent first. */
export function listRecentPhones(store: Store, offline: Offline, agents: Set<string>, limit: number) {
  const last = new Map<string, number>()
  for (const [agentId, phones] of store.state.recent) {
    if (agents.size > 0 && !agents.has(agentId)) continue
    for (const [phone, offset] of phones) last.set(phone, Math.max(offset, last.get(phone) ?? 0))
  }
  const newestFirst = [...last].sort(([, one], [, other]) => other - one).slice(0, limit)
  return { phones: newestFirst.map(([phone, offset]) => viewPhone(store, offline, phone, offset)) }
}

/** The same for one phone, also if it had no contact with the agents. */
export function summarizePhone(store: Store, offline: Offline, agents: Set<string>, phone: string) {
  const offsets = [...store.state.recent].map(([agentId, phones]) =>
    agents.size > 0 && !agents.has(agentId) ? 0 : (phones.get(phone) ?? 0),
  )
  return viewPhone(store, offline, phone, Math.max(0, ...offsets))
}

function viewPhone(store: Store, offline: Offline, phone: string, offset: number) {
  const last = offset === 0 ? null : viewLast(store.read(offset) as EntryRecord)
  return { phone, online: !offline.has(phone), behaviour: behaviourOf(phone), last }
}

function viewLast({ seq, at, kind, origin, messageId, detail, content }: EntryRecord) {
  const text = content === undefined ? detail?.text : textOf(JSON.parse(content.body).contentMessage)
  return { seq, at: new Date(at).toISOString(), kind, agentId: origin, messageId, text: text ?? null, ...(detail && { detail }) }
}

type Card = { title?: string; description?: string }
type ContentMessage = {
  text?: string
  richCard?: { standaloneCard?: { cardContent?: Card }; carouselCard?: { cardContents?: Card[] } }
}

/** The text that a list of conversations shows; undefined for a file. */
function textOf({ text, richCard }: ContentMessage): string | undefined {
  const card = richCard?.standaloneCard?.cardContent ?? richCard?.carouselCard?.cardContents?.[0]
  return text ?? card?.title ?? card?.description
}
