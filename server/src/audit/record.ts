import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Executor } from '../db/pool.ts'

/** Who makes a change: a person, a token, or the command line, where the name is that of the user of the operating system. */
export type Actor = { kind: 'person' | 'token' | 'command'; id?: number; name: string; address?: string; requestId?: string }

/** What is changed. `action` is the operation of the admin API, such as `suspendAccount`; `subject` is what it is done to: an id, a number, a name. */
type Entry = { action: string; accountId?: number; subject?: string; before?: unknown; after?: unknown }

/**
 * Records a change that needs several transactions: the function that makes the change calls it in the one that makes the change visible.
 * `after`: null for a deletion. `subject`: needed if the path names it in another way.
 */
export type RecordChange = (tx: Executor, after?: unknown, before?: unknown, subject?: string) => Promise<void>

/** Adds an entry to the audit log. Call it in the transaction of the change, so that neither exists without the other. */
export async function recordChange(tx: Executor, actor: Actor, { action, accountId, subject, before, after }: Entry): Promise<void> {
  await tx.query(
    `insert into audit_log (actor_kind, actor_id, actor_name, address, request_id, account_id, action, subject, before, after)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [actor.kind, actor.id, actor.name, actor.address, actor.requestId, accountId, action, subject, toJson(before), toJson(after)],
  )
}

/** Whether there is something to record. `isChanged`: needed if the states do not show it. */
export function hasChanged({ before, after, isChanged }: { before?: unknown; after: unknown; isChanged?: boolean | undefined }): boolean {
  return isChanged ?? (before === undefined || !isDeepStrictEqual(before, after))
}

// Any number that no other advisory lock uses as its seed: "hrla" in ASCII.
const LOCK_SEED = 0x68726c61

type Subject = { accountId?: number | undefined; subject?: string | number | undefined }

/**
 * Lets one transaction at a time change a subject, until it ends. Call it before the state before the change is read: of two changes at once, the
 * later one would otherwise record a state that the earlier one has replaced, or find nothing changed and record nothing.
 */
export async function lockSubject(tx: Executor, { accountId, subject }: Subject): Promise<void> {
  await tx.query('select pg_advisory_xact_lock(hashtextextended($1, $2))', [`${accountId ?? ''} ${subject ?? ''}`, LOCK_SEED])
}

/** The account of an entry about a person or token with roles in these accounts. The admins of one account must not see another one. */
export function onlyAccount(accountIds: readonly number[]): { accountId?: number } {
  const [accountId, ...others] = accountIds
  return accountId === undefined || others.length > 0 ? {} : { accountId }
}

/** Fields whose values are secrets, wherever they are. */
const SECRET_FIELDS = new Set(['secret', 'password', 'token', 'signingSecret'])
/** The content of templates. Nothing can be erased from the log, so it has no texts of messages. */
const CONTENT_FIELD = 'message'
// A list of 100 networks of a key has 2 KB. A state has at most 20 fields, and nobody can delete it from the log.
const MAX_FIELD_BYTES = 4_096

function toJson(value: unknown): string | null {
  if (value === undefined || value === null) return null
  return JSON.stringify(inShort(JSON.parse(JSON.stringify(value, toEntry))))
}

function toEntry(name: string, inner: unknown): unknown {
  if (SECRET_FIELDS.has(name) && typeof inner === 'string') return '(secret)'
  if (name === CONTENT_FIELD && typeof inner === 'object' && inner !== null) return digestOf(JSON.stringify(inner))
  // The reasons quote the request, such as a mistyped phone number.
  return name === 'rejected' && Array.isArray(inner) ? inner.length : inner
}

/** The same state or list of states; each large field is replaced by its digest, which still shows whether the field was changed. */
function inShort(state: unknown): unknown {
  if (typeof state !== 'object' || state === null) return shortField(state)
  if (Array.isArray(state)) return shortField(state, 4 * MAX_FIELD_BYTES)
  return Object.fromEntries(Object.entries(state).map(([name, field]) => [name, shortField(field)]))
}

function shortField(field: unknown, maxBytes = MAX_FIELD_BYTES): unknown {
  const json = JSON.stringify(field)
  return Buffer.byteLength(json) > maxBytes ? digestOf(json) : field
}

function digestOf(json: string): { bytes: number; sha256: string } {
  return { bytes: Buffer.byteLength(json), sha256: createHash('sha256').update(json).digest('hex') }
}
