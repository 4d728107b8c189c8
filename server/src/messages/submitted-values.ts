import { randomBytes } from 'node:crypto'
import { ROW_BYTES } from '../accounts/usage.ts'
import { templateReferences } from '../content/references.ts'
import { columns, lists } from '../db/pool.ts'
import { parseTimestamp } from '../time.ts'
import type { Submission } from './accept.ts'

/** A message that a request asks for: most ask for one. `caller`: the place of a recalled caller in the list. */
type Asked = { submission: Submission; recipient: string; caller: number | null }

/** How a message is passed to the statement: the name, type and value of each of its columns. */
const COLUMNS: [name: string, type: string, value: (asked: Asked) => unknown][] = [
  ['account_id', 'int', ({ submission }) => submission.accountId],
  ['key', 'text', ({ submission }) => submission.idempotency?.key ?? null],
  ['hash', 'bytea', ({ submission }) => submission.idempotency?.hash ?? null],
  ['id_end', 'text', idEnd],
  ['agent_id', 'text', ({ submission }) => submission.agentId],
  ['recipient', 'text', ({ recipient }) => recipient],
  ['basic', 'bool', ({ submission }) => submission.basic ?? false],
  ['test', 'bool', ({ submission }) => submission.test],
  ['client_reference_id', 'text', ({ submission }) => submission.clientReferenceId ?? null],
  ['template_id', 'bigint', ({ submission }) => submission.message.templateId ?? null],
  ['content', 'json', ({ submission }) => contentOf(submission)],
  // As a time: PostgreSQL knows no offset from 16 hours on, which ISO 8601 has.
  ['own_expiry', 'timestamptz(3)', ({ submission: { expiresAt } }) => (expiresAt === undefined ? null : parseTimestamp(expiresAt))],
  ['fallback', 'json', ({ submission: { fallback } }) => (fallback === undefined ? null : JSON.stringify(fallback))],
  ['has_violations', 'bool', ({ submission: { fallback } }) => (fallback?.violations.length ?? 0) > 0],
  // A list of lists, which the driver would read as a table. Nearly always null, since there are none.
  ['targets', 'text', targetsOf],
  ['bytes', 'int', ({ submission }) => bytesOf(submission)],
  ['has_room', 'bool', ({ submission }) => submission.hasRoom ?? true],
  ['caller', 'bigint', ({ caller }) => caller],
  ['lease', 'uuid', ({ submission }) => submission.reserved?.lease ?? null],
]

/** In SQL: the messages of a batch, numbered by `n`. */
export const ASKED = `unnest(${lists(...COLUMNS.map(([, type]) => type))}) with ordinality as r (${COLUMNS.map(([name]) => name).join(', ')}, n)`

/** The parameters after those: the recalled callers of a batch, as lists of their keys, hashes and versions. */
export const CALLERS = [1, 2, 3].map((n) => `$${COLUMNS.length + n}`) as [string, string, string]

/** The last parameter: the duration of the leases in milliseconds. */
export const LEASE_MS = `$${COLUMNS.length + 4}`

export function valuesOf(batch: Submission[]): unknown[] {
  const callers = [...new Set(batch.flatMap(({ recalled = [] }) => recalled))]
  const asked = batch.flatMap((submission) => {
    const caller = submission.recalled === undefined ? null : callers.indexOf(submission.recalled) + 1
    return submission.recipients.map((recipient) => ({ submission, recipient, caller }))
  })
  // One duration for the batch, the longest: no lease may end earlier than its worker assumes.
  const leaseMs = Math.max(0, ...batch.map(({ reserved }) => reserved?.leaseMs ?? 0))
  return [...COLUMNS.map(([, , value]) => asked.map(value)), ...columns(callers, 'integrationKey', 'secretHash', 'accountVersion'), leaseMs]
}

/** The part of an id after its time, in hex: version 7, and 74 random bits. The time is the database's. */
function idEnd(): string {
  const random = randomBytes(10).toString('hex')
  return `7${random.slice(1, 4)}${'89ab'[Number.parseInt(random.slice(4, 5), 16) % 4]}${random.slice(5)}`
}

function contentOf({ message: { inline } }: Submission): string | null {
  return inline === undefined ? null : JSON.stringify(inline)
}

function targetsOf({ submission: { message } }: Asked): string | null {
  const targets = templateReferences(message.inline, '').map(({ templateId }) => templateId)
  return targets.length === 0 ? null : `{${targets.join()}}`
}

/** The bytes that one of its messages adds to the stored bytes of the quota. */
export function bytesOf(submission: Submission): number {
  const { clientReferenceId, fallback } = submission
  const texts = [contentOf(submission), clientReferenceId, fallback && JSON.stringify(fallback.plan)]
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text ?? ''), ROW_BYTES)
}
