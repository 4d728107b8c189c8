import { isPhone } from '../phones/behaviours.ts'
import type { EntryRecord, LedgerKind } from '../phones/ledger.ts'
import { addPair, createTable, findPairs, hashOf, type Table } from './table.ts'

/** The lists of debts (state/owed.ts). `GET /simulator/counts` shows them as `owed`. */
export type ListName = 'steps' | 'webhooks' | 'deliverSm'
/** A debt. `offset`: the offset of its record in the log, which has its row. */
export type Debt = { id: number; dueAt: number; tries: number; offset: number }
/** No id is ever used twice. */
type DebtList = { lastId: number; debts: Map<number, Debt> }

/** A line of the log. */
export type LogRecord =
  | { is: 'log'; version: number; name: string }
  | { is: 'setting'; name: string; value: string }
  | { is: 'token'; token: string; at: number; expiresAt: number }
  | { is: 'owed'; list: ListName; id: number; dueAt: number; row: unknown }
  | { is: 'again'; list: ListName; id: number; dueAt: number }
  | { is: 'hurry'; list: ListName; at: number }
  | { is: 'paid'; list: ListName; ids: number[] }
  | EntryRecord

/** Everything that must be in memory. The log has the rest. All values can be written by `v8.serialize`. */
export type State = {
  settings: Map<string, string>
  /** The time at which each token expires. */
  tokens: Map<string, number>
  owed: Record<ListName, DebtList>
  counts: Map<LedgerKind, number>
  lastSeq: number
  /** The offsets of the ledger's entries with the numbers 1, 129, 257… */
  ledgerIndex: number[]
  /** Offsets of messages, by their ids. */
  messages: Table
  /** The numbers that received anything. */
  phones: Table
  /** The offset of the last entry of each bucket of phones. Each entry has the offset of the previous one. */
  lastOfBucket: Float64Array
  /** How often each message to a phone that refuses twice was refused. */
  refusals: Map<string, number>
  /** By agent: the last phones in contact with it, the latest at the end, and the offset of the last entry that shows something. */
  recent: Map<string, Map<string, number>>
}

export const ENTRIES_PER_OFFSET = 128
const BUCKETS = 65_536
const RECENT_PHONES_PER_AGENT = 200

export function createState(): State {
  const list = (): DebtList => ({ lastId: 0, debts: new Map() })
  return {
    settings: new Map(),
    tokens: new Map(),
    owed: { steps: list(), webhooks: list(), deliverSm: list() },
    counts: new Map(),
    lastSeq: 0,
    ledgerIndex: [],
    messages: createTable(OFFSET_BITS),
    phones: createTable(0),
    lastOfBucket: new Float64Array(BUCKETS),
    refusals: new Map(),
    recent: new Map(),
  }
}

/** Applies a record to the state, when it is written and when the log is replayed. */
export function applyRecord(state: State, record: LogRecord, offset: number): void {
  if (record.is === 'entry') applyEntry(state, record, offset)
  else if (record.is === 'setting') state.settings.set(record.name, record.value)
  else if (record.is === 'token') {
    for (const [token, expiresAt] of state.tokens) if (expiresAt <= record.at) state.tokens.delete(token)
    state.tokens.set(record.token, record.expiresAt)
  } else if (record.is !== 'log') applyToList(state.owed[record.list], record, offset)
}

type ListRecord = Extract<LogRecord, { list: ListName }>

function applyToList(list: DebtList, record: ListRecord, offset: number): void {
  const { debts } = list
  if (record.is === 'owed') {
    const { id, dueAt } = record
    debts.set(id, { id, dueAt, tries: 0, offset })
    list.lastId = id
  } else if (record.is === 'paid') {
    for (const id of record.ids) debts.delete(id)
  } else if (record.is === 'hurry') {
    for (const debt of debts.values()) if (debt.tries > 0) debt.dueAt = Math.min(debt.dueAt, record.at)
  } else {
    const debt = debts.get(record.id) as Debt
    debt.tries++
    debt.dueAt = record.dueAt
  }
}

function applyEntry(state: State, entry: EntryRecord, offset: number): void {
  const { seq, kind, phone, messageId, origin, content, bucket } = entry
  state.lastSeq = seq
  if (seq % ENTRIES_PER_OFFSET === 1) state.ledgerIndex.push(offset)
  state.counts.set(kind, (state.counts.get(kind) ?? 0) + 1)
  if (bucket !== undefined) state.lastOfBucket[bucket] = offset
  if (content !== undefined) {
    if (kind !== 'sms-part') addMessage(state, messageId, offset)
    addPhone(state, phone)
  }
  if (isShown(entry)) addRecent(state, origin, phone, offset)
  const key = refusalKey(origin, messageId)
  if (entry.isBusy) state.refusals.set(key, (state.refusals.get(key) ?? 0) + 1)
  else if (state.refusals.size > 0 && kind === 'accepted') state.refusals.delete(key)
}

// What a person writes or taps is shown; that they type, or unsubscribe in the settings of the phone, is not.
const SHOWN_EVENTS = new Set<unknown>(['text', 'location', 'file', 'tapped reply', 'tapped action'])

function isShown({ kind, detail, phone }: EntryRecord): boolean {
  if (kind === 'accepted') return true
  // A fault refuses a call before its number is checked.
  if (kind === 'refused') return isPhone(phone)
  return (kind === 'sent' || kind === 'answered') && SHOWN_EVENTS.has(detail?.event)
}

function addRecent({ recent }: State, agentId: string, phone: string, offset: number): void {
  const phones = recent.getOrInsertComputed(agentId, () => new Map<string, number>())
  // The latest entry is the last one of the map.
  phones.delete(phone)
  phones.set(phone, offset)
  if (phones.size > RECENT_PHONES_PER_AGENT) phones.delete(phones.keys().next().value ?? '')
}

export const refusalKey = (agentId: string, messageId: string): string => `${messageId} ${agentId}`

export const bucketOf = (phone: string): number => hashOf(phone) & (BUCKETS - 1)

// A message is a pair of numbers. The first has 24 bits of the hash of its id, then 8 bits of its offset; the second has the other 32 bits.
const OFFSET_BITS = 8
const HIGH = 2 ** 32
const markOf = (messageId: string): number => ((hashOf(messageId) >>> OFFSET_BITS) << OFFSET_BITS) >>> 0

function addMessage({ messages }: State, messageId: string, offset: number): void {
  addPair(messages, markOf(messageId) + Math.floor(offset / HIGH), offset % HIGH)
}

/** Returns the offsets of the messages that may have this id. Among a million ids, 6 in 100 share the hash bits of another: check the id. */
export function offsetsOf({ messages }: State, messageId: string): number[] {
  const mark = markOf(messageId)
  return findPairs(messages, mark).map(([first, second]) => (first - mark) * HIGH + second)
}

/** A pair holds a number of at most 15 digits. */
function addPhone({ phones }: State, phone: string): void {
  const number = Number(phone.slice(1))
  const [low, high] = [number % HIGH, Math.floor(number / HIGH)]
  if (!findPairs(phones, low).some(([, second]) => second === high)) addPair(phones, low, high)
}

export const phoneOf = (low: number, high: number): string => `+${high * HIGH + low}`
