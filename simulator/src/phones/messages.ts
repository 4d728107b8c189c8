import type { ReceiptNotes } from '../smpp/receipts.ts'
import { bucketOf, offsetsOf } from '../state/state.ts'
import type { Store } from '../state/store.ts'
import { type RbmEvent, sentDetail } from '../webhooks/events.ts'
import type { EntryRecord, Ledger, LedgerEntry } from './ledger.ts'

/** Of an SMS in several segments: which of them it is. */
export type SmsSegment = { reference: number; total: number; number: number }

/** What a phone received. `body`: the agentMessage as received, or the text of the SMS. `smpp`: the fields for the receipt of an SMS. */
export type Content = { body: string; expiresAt: number | null; segment?: SmsSegment | undefined; smpp?: ReceiptNotes | undefined }

/** A message to a phone, an agent's event or a segment of an SMS. Times are milliseconds since 1970. */
export type Message = Omit<Content, 'body'> & {
  /** The sequence number of its entry in the ledger. */
  id: number
  /** The offset of its entry in the log. */
  offset: number
  channel: 'rcs' | 'rcs-event' | 'sms'
  phone: string
  messageId: string
  origin: string
  attempts: number
  acceptedAt: number
  deliveredAt: number | null
  readAt: number | null
  revokedAt: number | null
  expiredAt: number | null
  failedAt: number | null
}
export type Received = { message: Message; body: string }

type NewEntry = LedgerEntry & { kind: keyof typeof CHANNELS }

export type Messages = {
  add: (entry: NewEntry, content: Content) => Message
  /** Keeps a message in memory for its next step. `take` returns it and forgets it; it reads the log if the message is not in memory. */
  hold: (message: Message) => void
  take: (offset: number) => Message
  /** The RCS messages and agents' events with this id, of any agent. */
  withId: (messageId: string) => Message[]
  of: (agentId: string, messageId: string) => Message | undefined
  /** Writes an entry about a message: a step of it, or a repeated send. */
  note: (message: Message, what: Pick<LedgerEntry, 'kind' | 'detail'> & { phone?: string }) => void
  bodyOf: (message: Message) => string
  /** Writes an entry about something that a phone sent. */
  noteSent: (event: RbmEvent) => void
  /** Yields what a phone received, did with it, and sent: the last entry first. */
  history: (phone: string) => Generator<EntryRecord>
  /** Returns everything that a phone received, in order. It reads every entry about the phone. */
  toPhone: (phone: string) => Received[]
}

const CHANNELS = { accepted: 'rcs', 'agent-event': 'rcs-event', 'sms-part': 'sms' } as const
// Other messages are read from the log, with the entries about them.
const MAX_HELD = 100_000

export function createMessages(store: Store, ledger: Ledger): Messages {
  const held = new Map<number, Message>()
  const entryAt = (offset: number) => store.read(offset) as EntryRecord
  const linkTo = (phone: string) => bucketEnd(store, phone)
  const entriesBack = (phone: string, to: number) => entriesOfBucket(store, phone, to)

  function load(offset: number, entry: EntryRecord): Message {
    const message = messageOf(entry, offset)
    for (const [, later] of entriesBack(message.phone, offset)) if (later.about === offset) change(message, later)
    return message
  }
  const at = (offset: number) => held.get(offset) ?? load(offset, entryAt(offset))

  function withId(messageId: string): Message[] {
    const entries = offsetsOf(store.state, messageId).map((offset) => [offset, entryAt(offset)] as const)
    return entries.filter(([, entry]) => entry.messageId === messageId).map(([offset, entry]) => held.get(offset) ?? load(offset, entry))
  }

  return {
    add: (entry, content) => {
      const { record, offset } = ledger.write(entry, { content, ...linkTo(entry.phone) })
      return messageOf(record, offset)
    },
    hold: (message) => {
      if (held.size < MAX_HELD) held.set(message.offset, message)
    },
    take: (offset) => {
      const message = at(offset)
      held.delete(offset)
      return message
    },
    withId,
    of: (agentId, messageId) => withId(messageId).find(({ origin }) => origin === agentId),
    note: (message, { kind, phone = message.phone, detail }) => {
      const { messageId, origin, offset: about } = message
      const channel = message.channel === 'sms' ? 'sms' : 'rcs'
      const { record } = ledger.write({ kind, channel, phone, messageId, origin, detail }, { about, ...linkTo(message.phone) })
      change(message, record)
    },
    noteSent: (event) => {
      const { phone, messageId, agentId: origin } = event
      ledger.write({ kind: 'sent', channel: 'rcs', phone, messageId, origin, detail: sentDetail(event) }, linkTo(phone))
    },
    history: function* (phone) {
      for (const [, entry] of entriesBack(phone, 0)) if (entry.phone === phone) yield entry
    },
    bodyOf: ({ offset }) => entryAt(offset).content?.body ?? '',
    toPhone: (phone) => {
      const received: Received[] = []
      const loaded = new Map<number, Message>()
      for (const [offset, entry] of [...entriesBack(phone, 0)].reverse()) {
        const known = loaded.get(entry.about ?? 0)
        if (known !== undefined) change(known, entry)
        if (entry.content === undefined || entry.phone !== phone) continue
        const message = messageOf(entry, offset)
        loaded.set(offset, message)
        // The message in memory is as new as the log, and later steps use it.
        received.push({ message: held.get(offset) ?? message, body: entry.content.body })
      }
      return received
    },
  }
}

function bucketEnd({ state }: Store, phone: string): { bucket: number; before: number } {
  const bucket = bucketOf(phone)
  return { bucket, before: state.lastOfBucket[bucket] as number }
}

/** Yields the entries of the phone's bucket, the last first, back to an offset. Several phones share a bucket. */
function* entriesOfBucket(store: Store, phone: string, to: number): Generator<[offset: number, entry: EntryRecord]> {
  for (let offset = bucketEnd(store, phone).before; offset > to; ) {
    const entry = store.read(offset) as EntryRecord
    yield [offset, entry]
    offset = entry.before ?? 0
  }
}

function messageOf({ seq, at, kind, phone, messageId, origin, content }: EntryRecord, offset: number): Message {
  const { expiresAt, segment, smpp } = content as Content
  return {
    id: seq,
    offset,
    channel: CHANNELS[kind as keyof typeof CHANNELS],
    phone,
    messageId,
    origin,
    expiresAt,
    segment,
    smpp,
    attempts: 1,
    acceptedAt: at,
    deliveredAt: null,
    readAt: null,
    revokedAt: null,
    expiredAt: null,
    failedAt: null,
  }
}

/** Applies an entry to the message that it is about. */
function change(message: Message, { kind, at, detail }: EntryRecord): void {
  if (kind === 'delivered' || kind === 'sms-delivered') message.deliveredAt = at
  else if (kind === 'read') message.readAt = at
  else if (kind === 'revoked') message.revokedAt = at
  else if (kind === 'expired' || (kind === 'sms-failed' && detail?.state === 'EXPIRED')) message.expiredAt = at
  else if (kind === 'sms-failed') message.failedAt = at
  else if (kind === 'repeated') message.attempts++
}

/** Whether the message has no further steps by itself. */
export function isSettled(message: Message): boolean {
  return message.deliveredAt !== null || message.revokedAt !== null || message.expiredAt !== null || message.failedAt !== null
}
