import type { Executor } from '../db/pool.ts'
import { type ListDefinition, type PageQuery, readPage, withinPageBytes } from '../http/paging.ts'
import { phoneNumberInQuery } from '../phone-numbers.ts'
import { endOf, startOf } from '../time.ts'
import { maskWithPlus } from './mask.ts'

export type AuditEntry = {
  entryId: number
  at: Date
  actor: { kind: 'person' | 'token' | 'command'; id: number | null; name: string }
  address: string | null
  requestId: string | null
  accountId: number | null
  action: string
  subject: string | null
  before: unknown
  after: unknown
}

/** `accountIds`: only entries of these accounts. */
export type AuditFilters = { accountIds?: readonly number[]; action?: string; actor?: string; subject?: string; from?: string; to?: string }

/**
 * The log has phone numbers only masked, so a whole number finds the entries of all numbers that look the same there. Digits without a plus sign
 * may be an id. A plus sign that was not encoded arrives as a space.
 */
export function asLogged(subject: string | undefined): string | undefined {
  const isNumber = subject !== undefined && /^[+ ]/.test(subject)
  return subject && maskWithPlus((isNumber && phoneNumberInQuery(subject)) || subject)
}

/** Entries get their ids in the order in which they are written. */
export const AUDIT_LIST: ListDefinition<'entryId'> = {
  fields: { entryId: { column: 'e.id', type: 'bigint' } },
  id: 'entryId',
  defaultSort: '-entryId',
}

const ENTRY = `e.id as "entryId", e.at, json_build_object('kind', e.actor_kind, 'id', e.actor_id, 'name', e.actor_name) as actor, e.address,
  e.request_id as "requestId", e.account_id as "accountId", e.action, e.subject, e.before, e.after`

/** Lists the audit log, the newest entries first. */
export async function listAudit(db: Executor, query: PageQuery & AuditFilters) {
  const page = readPage(AUDIT_LIST, query, 8)
  const { accountIds, action, actor, subject, from, to } = query
  const { rows } = await db.query<AuditEntry & { found: number; bytesBefore: number | null }>(
    withinPageBytes(
      `select ${ENTRY} from audit_log e
       where ($1::int[] is null or e.account_id = any ($1))
         and ($2::text is null or e.action = $2)
         and ($3::text is null or e.actor_name = $3)
         and ($4::timestamptz is null or e.at >= $4)
         and ($5::timestamptz is null or e.at < $5)
         and ($7::text is null or e.subject = $7)
         and ${page.condition}
       order by ${page.orderBy} limit $6`,
      `300 + coalesce(octet_length("before"::text), 0) + coalesce(octet_length("after"::text), 0)`,
    ),
    [accountIds, action, actor, from && startOf(from), to && endOf(to), page.fetch, asLogged(subject), ...page.values],
  )
  return page.toBody(
    rows.map(({ found, bytesBefore, ...entry }) => entry),
    rows[0]?.found,
  )
}
