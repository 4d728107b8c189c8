import { BEFORE_EVERY_REQUEST, type Executor, listed } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { noSuchAccount } from './accounts.ts'

// The quotas and the usage of an account. docs/send-messages.md explains the defaults, which no legitimate caller should reach.

export const QUOTAS = {
  messagesPerDay: { column: 'quota_messages_per_day', byDefault: 5_000_000 },
  templates: { column: 'quota_templates', byDefault: 10_000 },
  storedBytes: { column: 'quota_stored_bytes', byDefault: 2 ** 40 },
  exports: { column: 'quota_exports', byDefault: 2 },
} as const
export type Quota = keyof typeof QUOTAS

const quotaOf = (quota: Quota) => `coalesce(a.${QUOTAS[quota].column}, ${QUOTAS[quota].byDefault})`

/**
 * A query that returns `usage`: the quota and the usage of the account's messages of the day, then the quota and the usage of its stored
 * bytes. It sees everything committed before its statement began, and reads only the deltas since the last fold, which runs every second.
 */
export const usageOf = (accountId: string) => `
    select array[
      ${quotaOf('messagesPerDay')}, coalesce(case when u.day = utc_day(now()) then u.messages end, 0) + coalesce(recent.messages, 0),
      ${quotaOf('storedBytes')}, coalesce(u.stored_bytes, 0) + coalesce(recent.bytes, 0)
    ]::bigint[] as usage
    from accounts a left join account_usage u on u.account_id = a.id, lateral (
      select sum(c.messages) filter (where c.at >= (select date_trunc('day', now(), 'UTC'))) as messages,
        sum(c.message_bytes + c.content_bytes) as bytes
      from account_usage_deltas c where c.account_id = a.id and c.at >= coalesce(u.folded_until, '-infinity')
    ) as recent
    where a.id = ${accountId}`

export type AccountUsage = {
  messages: { quota: number; used: number }
  bytes: { quota: number; used: number }
  secondsToMidnight: number
}

export async function readUsage(db: Executor, accountIds: number[]): Promise<Map<number, AccountUsage>> {
  const { rows } = await db.query<{ accountId: number; usage: string[]; secondsToMidnight: number }>({
    name: 'read-usage',
    text: READ_USAGE,
    values: [accountIds],
    ...BEFORE_EVERY_REQUEST,
  })
  return new Map(
    rows.map(({ accountId, usage, secondsToMidnight }) => {
      const [messagesQuota = 0, messages = 0, bytesQuota = 0, bytes = 0] = usage.map(Number)
      return [
        accountId,
        { messages: { quota: messagesQuota, used: messages }, bytes: { quota: bytesQuota, used: bytes }, secondsToMidnight },
      ]
    }),
  )
}

export const READ_USAGE = `
  select asked.id as "accountId", own.usage,
    ceil(extract(epoch from date_trunc('day', now(), 'UTC') + interval '1 day' - now()))::bigint as "secondsToMidnight"
  from unnest(${listed('$1::int[]')}) as asked (id), lateral (${usageOf('asked.id')}) as own`

// Retry-After for quotas that do not reset by themselves.
const RETRY_AFTER_SECONDS = 3_600
// The end of a running export is unknown. An export of a million messages takes some ten seconds.
const EXPORT_RETRY_AFTER_SECONDS = 10

const ADVICE: Record<Quota, string> = {
  messagesPerDay: 'the count starts again at 00:00 UTC',
  templates: 'delete templates that you no longer need, or ask the operator for a higher quota',
  storedBytes: 'ask the operator for a higher quota, or to drop old months',
  exports: 'try again when one of them has ended',
}

type Excess = {
  /** Set if the quota resets by itself. */
  retryAfterSeconds?: number
  /** Set if one request can need a large part of the quota. */
  needed?: number
}

/** The 429 for a request that exceeds a quota. */
export function quotaExceeded(quota: Quota, limit: number, used: number, { retryAfterSeconds, needed }: Excess = {}): ApiError {
  const seconds = retryAfterSeconds ?? (quota === 'exports' ? EXPORT_RETRY_AFTER_SECONDS : RETRY_AFTER_SECONDS)
  const more = needed === undefined ? '' : `, and the request needs ${needed} more`
  const reason = `The quota ${quota} of the account is ${limit}, and ${used} are used${more}: ${ADVICE[quota]}.`
  return new ApiError('RCS_QUOTA_EXCEEDED', { headers: { 'Retry-After': String(seconds) }, details: [{ path: '', reason }] })
}

type Used = { quota: number; isDefault: boolean; used: number }
export type Quotas = {
  accountId: number
  messagesPerDay: Used
  templates: Used
  storedBytes: Used
  /** Per node; each node counts its own exports. */
  exports: Omit<Used, 'used'>
}

type QuotasRow = Record<Quota, number | null> & { usage: string[]; ownTemplates: number }

export async function readQuotas(db: Executor, accountId: number): Promise<Quotas> {
  const columns = Object.entries(QUOTAS).map(([quota, { column }]) => `${column} as "${quota}"`)
  const { rows } = await db.query<QuotasRow>({
    name: 'read-quotas',
    text: `select ${columns.join(', ')}, (${usageOf('$1')}) as usage, (select count(*) from templates where account_id = $1) as "ownTemplates"
           from accounts where id = $1`,
    values: [accountId],
  })
  const row = rows[0] ?? noSuchAccount(accountId)
  const allowed = (quota: Quota) => ({ quota: row[quota] ?? QUOTAS[quota].byDefault, isDefault: row[quota] === null })
  const [, messages, , bytes] = row.usage.map(Number)
  return {
    accountId,
    messagesPerDay: { ...allowed('messagesPerDay'), used: messages as number },
    templates: { ...allowed('templates'), used: row.ownTemplates },
    storedBytes: { ...allowed('storedBytes'), used: bytes as number },
    exports: allowed('exports'),
  }
}

/**
 * Sets quotas. The new quotas apply on every node to requests that begin after the commit. `null` sets the default; an absent quota is not
 * changed.
 */
export async function setQuotas(db: Executor, accountId: number, quotas: Partial<Record<Quota, number | null>>): Promise<Quotas> {
  const given = Object.entries(quotas) as [Quota, number | null][]
  if (given.length > 0) {
    const columns = given.map(([quota], index) => `${QUOTAS[quota].column} = $${index + 2}`)
    await db.query(`update accounts set ${columns.join(', ')} where id = $1`, [accountId, ...given.map(([, value]) => value)])
  }
  return await readQuotas(db, accountId)
}

export async function readExportQuota(db: Executor, accountId: number): Promise<number> {
  const { rows } = await db.query<{ quota: number }>({
    name: 'read-export-quota',
    text: `select ${quotaOf('exports')}::bigint as quota from accounts a where id = $1`,
    values: [accountId],
  })
  return rows[0]?.quota ?? QUOTAS.exports.byDefault
}

/**
 * Throws if the account exceeds a quota, which rolls back the caller's transaction. A transaction that adds a template locks the account's
 * row, so the second of two concurrent transactions sees the template of the first.
 */
export async function refuseBeyondQuota(
  tx: Executor,
  accountId: number,
  added: { templates?: number; storedBytes: number },
): Promise<void> {
  const quotas = await readQuotas(tx, accountId)
  for (const name of ['templates', 'storedBytes'] as const) {
    const { quota, used } = quotas[name]
    const own = added[name] ?? 0
    if (own > 0 && used > quota) throw quotaExceeded(name, quota, used - own)
  }
}
