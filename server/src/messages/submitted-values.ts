import { randomBytes } from 'node:crypto'
import { ROW_BYTES } from '../accounts/usage.ts'
import { templateReferences } from '../content/references.ts'
import { columns, lists } from '../db/pool.ts'
import { parseTimestamp } from '../time.ts'
import type { Submission } from './accept.ts'
import { storedRouting } from './routing.ts'
import { DEFAULT_LIFE_HOURS } from './store.ts'

const HOUR_MS = 3_600_000

/** A message of a request; most requests have one. `place`: the position of its caller in the list of callers, from 1. */
type Requested = { submission: Submission; recipient: string; place: number | null }

/** How a message is passed to the statement: the name, type and value of each of its columns. */
const COLUMNS: [name: string, type: string, value: (requested: Requested) => unknown][] = [
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
  ['rendered_from', 'bigint', ({ submission }) => submission.renderedFrom ?? null],
  // Parsed here: PostgreSQL rejects offsets of 16 hours and more, which ISO 8601 allows.
  ['scheduled_at', 'timestamptz(3)', ({ submission: { sendAt } }) => (sendAt === undefined ? null : parseTimestamp(sendAt))],
  ['delivery_window', 'text', ({ submission: { window } }) => window?.text ?? null],
  ['opens_at', 'timestamptz', ({ submission: { window } }) => window?.opensAt ?? null],
  ['own_expiry', 'timestamptz(3)', ownExpiry],
  ['fallback', 'json', ({ submission: { fallback } }) => (fallback === undefined ? null : JSON.stringify(fallback))],
  ['has_violations', 'bool', ({ submission: { fallback } }) => (fallback?.violations.length ?? 0) > 0],
  // As text, since the driver would write lists of lists as a two-dimensional array. Nearly always null.
  ['targets', 'text', targetsOf],
  ['bytes', 'int', ({ submission }) => bytesOf(submission)],
  ['has_room', 'bool', ({ submission }) => submission.hasRoom ?? true],
  ['caller', 'bigint', ({ place }) => place],
  ['routing', 'text', ({ submission }) => storedRouting(submission)],
  ['lease', 'uuid', ({ submission }) => submission.reserved?.lease ?? null],
]

/** In SQL: the messages of a batch, numbered by `n`. */
export const REQUESTED = `unnest(${lists(...COLUMNS.map(([, type]) => type))})
      with ordinality as r (${COLUMNS.map(([name]) => name).join(', ')}, n)`

/** The next three parameters: the callers of a batch, as lists of their keys, and of the versions of their keys and accounts. */
export const CALLERS = [1, 2, 3].map((n) => `$${COLUMNS.length + n}`) as [string, string, string]

/** The last parameter: the duration of the leases in milliseconds. */
export const LEASE_MS = `$${COLUMNS.length + 4}`

export function valuesOf(batch: Submission[]): unknown[] {
  const callers = [...new Set(batch.flatMap(({ caller = [] }) => caller))]
  const requested = batch.flatMap((submission) => {
    const place = submission.caller === undefined ? null : callers.indexOf(submission.caller) + 1
    return submission.recipients.map((recipient) => ({ submission, recipient, place }))
  })
  // The batch has one duration, the longest: no lease may end earlier than its worker assumes.
  const leaseMs = Math.max(0, ...batch.map(({ reserved }) => reserved?.leaseMs ?? 0))
  return [
    ...COLUMNS.map(([, , value]) => requested.map(value)),
    ...columns(callers, 'integrationKey', 'keyVersion', 'accountVersion'),
    leaseMs,
  ]
}

/** The end of an id, in hex: version 7 and 74 random bits. The statement puts the database's time before it. */
function idEnd(): string {
  const random = randomBytes(10).toString('hex')
  return `7${random.slice(1, 4)}${'89ab'[Number.parseInt(random.slice(4, 5), 16) % 4]}${random.slice(5)}`
}

/** The default lifetime of a message with `sendAt` counts from that time, so its expiry does not follow from its id. */
function ownExpiry({ submission: { sendAt, expiresAt } }: Requested): Date | null {
  if (expiresAt !== undefined) return parseTimestamp(expiresAt) as Date
  if (sendAt === undefined) return null
  return new Date((parseTimestamp(sendAt) as Date).getTime() + DEFAULT_LIFE_HOURS * HOUR_MS)
}

function contentOf({ message: { inline } }: Submission): string | null {
  return inline === undefined ? null : JSON.stringify(inline)
}

function targetsOf({ submission: { message } }: Requested): string | null {
  const targets = templateReferences(message.inline, '').map(({ templateId }) => templateId)
  return targets.length === 0 ? null : `{${targets.join()}}`
}

/** The bytes that one message of a submission adds to the quota of stored bytes. */
export function bytesOf(submission: Submission): number {
  const { clientReferenceId, fallback } = submission
  const texts = [contentOf(submission), clientReferenceId, fallback && JSON.stringify(fallback.plan)]
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text ?? ''), ROW_BYTES)
}
