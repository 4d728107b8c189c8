import type pg from 'pg'
import { PARTITIONED } from './partitions.ts'
import { type Pool, transaction } from './pool.ts'

// PostgreSQL keeps the plan of a prepared statement until it learns something new of its tables. Made while a table is empty, or nearly so,
// a plan may go through the whole of it for every batch, and does so while it grows: 78 to 116 ms instead of 1 once a month had 50,000
// messages. It looks for tables that have grown once a minute, in which a new month, a new installation or the first campaign has
// more than that. So small tables are looked after more often.

/** Those that keep growing. Queues are bound by key, whatever is known of them. */
const GROWING =
  `^(${PARTITIONED.join('|')})_\\d{4}_\\d{2}$|` +
  '^(idempotency_keys|log_pages|webhook_deliveries|webhook_attempts|sms_parts|sms_contacts|short_links|opt_outs|group_members|campaigns|contents|' +
  'accounts|integration_keys|agents|agent_assignments)$'
/** What has this many rows is planned for as a large one, and left to PostgreSQL. */
const LARGE = 10_000
/** Rows that a table may have more than twice those it was known to have: until then, going through all of it costs little. */
const SMALL = 500
// What was loaded at once may be large.
const PATIENCE_MS = 30_000
const UNDEFINED_TABLE = '42P01'
const PATIENTLY = { query_timeout: PATIENCE_MS + 1_000 }

/**
 * Counts tables that have outgrown what PostgreSQL knows of them, and returns their names. From 500 rows to 10,000 that is five times. All
 * sessions, of every process, then plan anew what has to do with it. One that somebody counts or vacuums already is passed by.
 */
export async function refreshStatistics(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>({ name: 'find-outgrown', text: FIND_OUTGROWN, values: [LARGE, SMALL, GROWING] })
  for (const { name } of rows) {
    await transaction(pool, async (tx) => {
      await tx.query(`set local statement_timeout = ${PATIENCE_MS}`)
      await tx.query({ text: `analyze (skip_locked) ${name}`, ...PATIENTLY })
    }).catch((error: unknown) => {
      // A month that was dropped just now.
      if ((error as pg.DatabaseError).code !== UNDEFINED_TABLE) throw error
    })
  }
  return rows.map(({ name }) => name)
}

// Of one that was never counted PostgreSQL says -1. Only the owner of a table may count it.
const FIND_OUTGROWN = `
  select relname as name from pg_class
  where relnamespace = current_schema()::regnamespace and relkind = 'r' and relname ~ $3 and reltuples < $1
    and pg_stat_get_live_tuples(oid) > 2 * greatest(reltuples, 0) + $2 and pg_has_role(relowner, 'usage')`
