import pg from 'pg'
import type { Executor } from './pool.ts'

/** Creates the missing partitions of this month and the next three. If two processes do this at once, the second finds nothing to do. */
export async function ensurePartitions(db: Executor): Promise<void> {
  await db.query('select create_missing_partitions()')
}

/**
 * Runs a statement for the items of each month, and returns the rows of all. Statements that lock rows of `messages` name the table of the
 * month, not the parent: if such a statement waits for a lock and then reads the row again, PostgreSQL 18.4 no longer finds the partition of a
 * joined id, and loses the row or crashes (seen with 200 rows). So does a statement that locks rows of another table, and reads the parent in a
 * step of its own. The cost of a statement also does not grow with the number of months.
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
