import { ENTRIES_PER_OFFSET } from '../state/state.ts'
import type { Store } from '../state/store.ts'
import type { Content } from './messages.ts'

/** The kinds of entries. Tests count them. */
export type LedgerKind =
  | 'accepted'
  | 'repeated'
  | 'refused'
  | 'agent-event'
  | 'delivered'
  | 'read'
  | 'revoked'
  | 'expired'
  | 'answered'
  | 'sms-part'
  | 'sms-refused'
  | 'sms-delivered'
  | 'sms-failed'
  | 'webhook-accepted'
  | 'webhook-lost'
  | 'webhook-dropped'
  | 'receipt-accepted'
  | 'receipt-lost'

export type LedgerEntry = {
  kind: LedgerKind
  channel: 'rcs' | 'sms'
  phone: string
  messageId: string
  /** The agent, or the sender of an SMS. */
  origin: string
  detail?: Record<string, unknown> | undefined
  /** A refusal by a phone that refuses each message twice. */
  isBusy?: boolean | undefined
}

/** An entry in the log. `content`: set if the entry is a message to a phone. `about`: the offset of the message that the entry is about. */
export type EntryRecord = LedgerEntry & {
  is: 'entry'
  seq: number
  at: number
  content?: Content | undefined
  about?: number | undefined
  /** Set if `content` or `about` is set: the bucket of the message's phone, and the offset of the previous entry of the bucket, or 0. */
  bucket?: number | undefined
  before?: number | undefined
}
type Link = Pick<EntryRecord, 'content' | 'about' | 'bucket' | 'before'>

export type Ledger = {
  /** Returns the entry as it is in the log, and its offset. */
  write: (entry: LedgerEntry, link?: Link) => { record: EntryRecord; offset: number }
  counts: () => Record<string, number>
}

export function createLedger({ state, append }: Store): Ledger {
  return {
    // Field by field, since spreading the two objects takes twice as long.
    write: ({ kind, channel, phone, messageId, origin, detail, isBusy }, { content, about, bucket, before } = {}) => {
      const [seq, at] = [state.lastSeq + 1, Date.now()]
      const fields = {
        is: 'entry',
        seq,
        at,
        kind,
        channel,
        phone,
        messageId,
        origin,
        detail,
        isBusy,
        content,
        about,
        bucket,
        before,
      } as const
      return { record: fields, offset: append(fields) }
    },
    counts: () => Object.fromEntries(state.counts),
  }
}

/** The committed entries, in order. */
export function readLedger({ state, records }: Store, after: number, limit: number) {
  const found: EntryRecord[] = []
  const from = state.ledgerIndex[Math.floor(after / ENTRIES_PER_OFFSET)]
  if (from === undefined || limit === 0) return []
  for (const record of records(from)) {
    if (record.is === 'entry' && record.seq > after && found.push(record) === limit) break
  }
  return found.map(({ seq, at, kind, channel, phone, messageId, origin, detail }) => ({
    seq,
    at: new Date(at).toISOString(),
    kind,
    channel,
    phone,
    messageId,
    ...(channel === 'sms' ? { sender: origin } : { agentId: origin }),
    ...(detail && { detail }),
  }))
}
