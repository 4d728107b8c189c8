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
  | 'sent'
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
  /** Set for what a phone received, did with it, or sent: the bucket of its phone, and the offset of the previous entry of the bucket, or 0. */
  bucket?: number | undefined
  before?: number | undefined
}
type Link = Pick<EntryRecord, 'content' | 'about' | 'bucket' | 'before'>

export type Ledger = {
  /** Returns the entry as it is in the log, and its offset. */
  write: (entry: LedgerEntry, link?: Link) => { record: EntryRecord; offset: number }
  counts: () => Record<string, number>
  /** Waits for the next entry about a phone. Returns false if there was none in time. */
  next: (phone: string, waitMs: number) => Promise<boolean>
}

export function createLedger({ state, append }: Store): Ledger {
  const waiting: Waiting = new Map()
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
      const offset = append(fields)
      if (waiting.size > 0) wake(waiting, phone)
      return { record: fields, offset }
    },
    counts: () => Object.fromEntries(state.counts),
    next: (phone, waitMs) => waitForEntry(waiting, phone, waitMs),
  }
}

/** The requests that wait for an entry about a phone. */
type Waiting = Map<string, Set<() => void>>

function wake(waiting: Waiting, phone: string): void {
  for (const resume of waiting.get(phone) ?? []) resume()
}

function waitForEntry(waiting: Waiting, phone: string, waitMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const resumes = waiting.getOrInsertComputed(phone, () => new Set())
  function end(isWoken: boolean): void {
    clearTimeout(timer)
    resumes.delete(resume)
    if (resumes.size === 0 && waiting.get(phone) === resumes) waiting.delete(phone)
    resolve(isWoken)
  }
  const resume = () => end(true)
  // Does not keep a process running that has stopped otherwise.
  const timer = setTimeout(end, waitMs, false).unref()
  resumes.add(resume)
  return promise
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
