import pg from 'pg'
import type { Column } from '../reports/exports/columns.ts'
import { copyRows } from '../reports/exports/copy.ts'
import { endOf, startOf } from '../time.ts'
import { type AuditFilters, asLogged } from './list.ts'

const value = (name: string, sql: string): Column => ({ name, sql, isText: false })
const text = (name: string, sql: string): Column => ({ name, sql, isText: true })

/** The columns of the audit log as CSV, in the order of the API's fields. */
export const AUDIT_COLUMNS = [
  value('entryId', 'e.id'),
  value('at', 'e.at'),
  value('actorKind', 'e.actor_kind'),
  value('actorId', 'e.actor_id'),
  text('actorName', 'e.actor_name'),
  text('address', 'e.address'),
  text('requestId', 'e.request_id'),
  value('accountId', 'e.account_id'),
  text('action', 'e.action'),
  text('subject', 'e.subject'),
  text('before', 'e.before'),
  text('after', 'e.after'),
]

/** A COPY statement for the audit log, the newest entries first. */
export function copyAudit({ accountIds, action, actor, subject, from, to }: AuditFilters): string {
  const literal = pg.escapeLiteral
  const conditions = [
    accountIds && `e.account_id = any (array[${accountIds.map(Number).join(', ')}]::int[])`,
    action && `e.action = ${literal(action)}`,
    actor && `e.actor_name = ${literal(actor)}`,
    subject && `e.subject = ${literal(asLogged(subject) as string)}`,
    from && `e.at >= ${literal((startOf(from) as Date).toISOString())}`,
    to && `e.at < ${literal((endOf(to) as Date).toISOString())}`,
  ].filter((condition) => condition !== undefined)
  return copyRows(AUDIT_COLUMNS, `from audit_log e where ${['true', ...conditions].join(' and ')} order by e.id desc`)
}
