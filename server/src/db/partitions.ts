import pg from 'pg'
import { type Executor, type Pool, transaction } from './pool.ts'

/** By month, each month in a table of its own. */
export const PARTITIONED = ['messages', 'message_events', 'sms_fallbacks', 'recipient_actions']
const MONTHS_AHEAD = 3
// Leaves room on a page for the next version of its rows, which then touch no index. All messages of a page may change in one statement.
const FILL_FACTORS: Record<string, number> = { messages: 45, sms_fallbacks: 70 }
// Any number that nothing else in this database locks: "hrlp" in ASCII.
const PARTITION_LOCK = 0x68726c70
const LOCK_PATIENCE = '2s'

/**
 * Makes the missing partitions of this month and the next ones. Of two concurrent calls, the second waits and finds nothing to do. A
 * partition is made first and then attached, which does not block writers.
 */
export async function ensurePartitions(pool: Pool): Promise<void> {
  const { rows } = await pool.query<Missing>(MISSING, [PARTITIONED, MONTHS_AHEAD])
  if (rows.length === 0) return
  await transaction(pool, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [PARTITION_LOCK])
    // Attaching waits only for statements that change the table itself.
    await tx.query(`set local lock_timeout = '${LOCK_PATIENCE}'`)
    const missing = await tx.query<Missing>(MISSING, [PARTITIONED, MONTHS_AHEAD])
    for (const { parent, name, from, to } of missing.rows) {
      await tx.query(`create table ${name} (like ${parent} including all) with (fillfactor = ${FILL_FACTORS[parent] ?? 100})`)
      await tx.query(`alter table ${parent} attach partition ${name} for values from ('${from}') to ('${to}')`)
    }
  })
}

type Missing = { parent: string; name: string; from: string; to: string }

const MISSING = `
  select parent, name, uuid_v7_from(month at time zone 'UTC') as from, uuid_v7_from((month + interval '1 month') at time zone 'UTC') as to
  from unnest($1::text[]) as parent, (
    select generate_series(date_trunc('month', now() at time zone 'UTC'), date_trunc('month', now() at time zone 'UTC') + $2 * interval '1 month',
                           interval '1 month')
    union
    -- Every month that has messages, so that a kind of rows that a newer version brings is there for older messages too.
    select to_timestamp(right(tablename, 7), 'YYYY_MM')::timestamp from pg_tables
    where schemaname = current_schema() and tablename ~ '^messages_\\d{4}_\\d{2}$'
  ) as months (month),
    lateral (select format('%s_%s', parent, to_char(month, 'YYYY_MM')) as name) as named
  -- Not to_regclass(), which remembers from before the wait for the lock that there was none.
  where not exists (select from pg_tables where schemaname = current_schema() and tablename = name)
  order by name`

/**
 * Groups items by the table of their message's month. Statements that lock rows of `messages` name that table, not the parent: if such a
 * statement waits for a lock and then reads the row again, PostgreSQL 18.4 no longer finds the partition of a joined id, and loses the
 * row or crashes (seen with 200 rows). The cost also stays the same however many months there are.
 */
export function byMonth<Item>(items: Item[], idOf: (item: Item) => string): Map<string, Item[]> {
  return Map.groupBy(items, (item) => messagesTable(idOf(item)))
}

/** Runs a statement for each month, within a transaction. Skips a month that has been dropped with all its messages. */
export async function queryMonths<Item>(
  tx: Executor,
  months: Map<string, Item[]>,
  statement: (messages: string, ofMonth: Item[]) => { name: string; text: string; values: unknown[] },
): Promise<void> {
  for (const [messages, ofMonth] of months) {
    await tx.query('savepoint month')
    const rollBack = () => tx.query('rollback to savepoint month')
    await tx.query(statement(messages, ofMonth)).catch(ifMonthIsMissing(messages, rollBack))
  }
}

/** The SMS fallbacks of a month's messages. */
export function fallbacksTable(messages: string): string {
  return messages.replace('messages', 'sms_fallbacks')
}

/** Their timelines. */
export function eventsTable(messages: string): string {
  return messages.replace('messages', 'message_events')
}

/** The first 48 bits of an id are its time. */
export function timeOf(id: string): Date {
  return new Date(Number.parseInt(id.replace('-', '').slice(0, 12), 16))
}

/** An id that Herald did not make names a table that does not exist. */
function messagesTable(id: string): string {
  const at = timeOf(id)
  return `messages_${at.getUTCFullYear()}_${String(at.getUTCMonth() + 1).padStart(2, '0')}`
}

/** The table of the month does not exist: the month has been dropped, or never existed. */
function isMissingMonth(error: unknown, messages: string): boolean {
  const names = [messages, fallbacksTable(messages), eventsTable(messages)]
  return error instanceof pg.DatabaseError && error.code === '42P01' && names.some((name) => error.message.includes(`"${name}"`))
}

/** For the `catch` of a statement on a month's tables: what to do instead if the month does not exist. */
export function ifMonthIsMissing<T>(messages: string, instead: () => T | Promise<T>): (error: unknown) => T | Promise<T> {
  return (error) => {
    if (!isMissingMonth(error, messages)) throw error
    return instead()
  }
}
