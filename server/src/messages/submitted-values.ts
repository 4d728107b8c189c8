import { templateReferences } from '../content/references.ts'
import { parseTimestamp } from '../time.ts'
import type { Submission } from './accept.ts'

/** A batch as the parameters of the statement that accepts it: a list for each field. `contents` and `fallbacks` are two of them. */
export function valuesOf(batch: Submission[]) {
  const contents = batch.map(({ message }) => (message.inline === undefined ? null : JSON.stringify(message.inline)))
  const fallbacks = batch.map(({ fallback }) => (fallback === undefined ? null : JSON.stringify(fallback)))
  const values = [
    batch.map(({ accountId }) => accountId),
    batch.map(({ idempotency }) => idempotency?.key ?? null),
    batch.map(({ idempotency }) => idempotency?.hash ?? null),
    batch.map(({ agentId }) => agentId),
    batch.map(({ basic }) => basic ?? false),
    batch.map(({ test }) => test),
    batch.map(({ clientReferenceId }) => clientReferenceId ?? null),
    batch.map(({ message }) => message.templateId ?? null),
    contents,
    // As a time: PostgreSQL knows no offset from 16 hours on, which ISO 8601 has.
    batch.map(({ expiresAt }) => (expiresAt === undefined ? null : parseTimestamp(expiresAt))),
    fallbacks,
    // Lists of lists, which the driver would take for tables.
    batch.map(({ recipients }) => `{${recipients.join()}}`),
    batch.map(
      ({ message }) =>
        `{${templateReferences(message.inline, '')
          .map(({ templateId }) => templateId)
          .join()}}`,
    ),
  ]
  return { values, contents, fallbacks }
}
