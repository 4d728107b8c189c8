import pg from 'pg'
import { type Executor, type Pool, transaction } from './pool.ts'

/** Tables that are partitioned by month. */
export const PARTITIONED = ['messages', 'message_events', 'sms_fallbacks', 'recipient_actions']
const MONTHS_AHEAD = 3
// Leaves room on a page for new versions of its rows, so that updates touch no index. One statement may update all messages of a page.
const FILL_FACTORS: Record<string, number> = { messages: 45, sms_fallbacks: 70 }
// Any number that no other advisory lock uses: "hrlp" in ASCII.
const PARTITION_LOCK = 0x68726c70
const LOCK_TIMEOUT = '2s'

/**
 * Creates the missing partitions of this month and the next three. If two processes do this at once, the second waits and finds nothing to do.
 * It creates a partition first and then attaches it, which does not block writers.
 */
export async function ensurePartitions(pool: Pool): Promise<void> {
  const { rows } = await pool.query<Missing>(MISSING, [PARTITIONED, MONTHS_AHEAD])
  if (rows.length === 0) return
  await transaction(pool, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [PARTITION_LOCK])
    // Attaching waits only for statements that change the table itself, not for reads and writes.
    await tx.query(`set local lock_timeout = '${LOCK_TIMEOUT}'`)
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
    -- Every month that has messages: a table that a newer version adds needs partitions for older messages, too.
    select to_timestamp(right(tablename, 7), 'YYYY_MM')::timestamp from pg_tables
    where schemaname = current_schema() and tablename ~ '^messages_\\d{4}_\\d{2}$'
  ) as months (month),
    lateral (select format('%s_%s', parent, to_char(month, 'YYYY_MM')) as name) as named
  -- Not to_regclass(), which would return the result from before the wait for the lock.
  where not exists (select from pg_tables where schemaname = current_schema() and tablename = name)
  order by name`

/**
 * Runs a statement for the items of each month, and returns the rows of all. Statements that lock rows of `messages` name the table of the
 * month, not the parent: if such a statement waits for a lock and then reads the row again, PostgreSQL 18.4 no longer finds the partition of a
 * joined id, and loses the row or crashes (seen with 200 rows). The cost of a statement also does not grow with the number of months.
 *
 * The items of a month are in the order of their ids. Statements lock queue entries and messages in that order, so that none deadlock.
 *
 * `ifMissing` returns the rows of a month whose tables have been dropped, or never existed. Without it, such a month is an error.
 */
export async function forEachMonth<Item, Row>(
  items: Item[],
  idOf: (item: Item) => string,
  run: (messagesTable: string, ofMonth: Item[]) => Promise<Row[]>,
  ifMissing?: (ofMonth: Item[]) => Row[] | Promise<Row[]>,
): Promise<Row[]> {
  const sorted = items.toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1))
  const rows: Row[] = []
  for (const [messagesTable, ofMonth] of Map.groupBy(sorted, (item) => messagesTableOf(idOf(item)))) {
    try {
      rows.push(...(await run(messagesTable, ofMonth)))
    } catch (error) {
      if (ifMissing === undefined || !isMissingMonth(error, messagesTable)) throw error
      rows.push(...(await ifMissing(ofMonth)))
    }
  }
  return rows
}

/** Runs a statement in a savepoint, so that the transaction can continue if the statement fails. */
export async function queryInSavepoint(tx: Executor, query: { name: string; text: string; values: unknown[] }): Promise<void> {
  await tx.query('savepoint month')
  try {
    await tx.query(query)
  } catch (error) {
    await tx.query('rollback to savepoint month')
    throw error
  }
}

/** The table of the SMS fallbacks of a month's messages. */
export function fallbacksTable(messagesTable: string): string {
  return messagesTable.replace('messages', 'sms_fallbacks')
}

/** The table of the timelines of a month's messages. */
export function eventsTable(messagesTable: string): string {
  return messagesTable.replace('messages', 'message_events')
}

/** Returns the time in an id: the first 48 bits of a UUIDv7. */
export function timeOf(id: string): Date {
  return new Date(Number.parseInt(id.replace('-', '').slice(0, 12), 16))
}

/** Returns the table of a message. The table of an id that Herald did not create may not exist. */
export function messagesTableOf(id: string): string {
  const at = timeOf(id)
  return `messages_${at.getUTCFullYear()}_${String(at.getUTCMonth() + 1).padStart(2, '0')}`
}

/** Whether a statement failed because the tables of the month do not exist: they have been dropped, or never existed. */
function isMissingMonth(error: unknown, messagesTable: string): boolean {
  const names = [messagesTable, fallbacksTable(messagesTable), eventsTable(messagesTable)]
  return error instanceof pg.DatabaseError && error.code === '42P01' && names.some((name) => error.message.includes(`"${name}"`))
}
