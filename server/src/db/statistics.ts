import type pg from 'pg'
import { type Pool, transaction } from './pool.ts'

// PostgreSQL keeps the plan of a prepared statement until the statistics of its tables change. A plan that was made while a table was nearly
// empty may scan the whole table for every batch, and stays while the table grows: a batch took 78 to 116 ms instead of 1 once a month had
// 50,000 messages. Autovacuum looks for such tables only once a minute, and within a minute a new month, a new installation or the first
// campaign can have more messages than that. So Herald analyzes small tables more often.

/** Tables that keep growing. Queues need no statistics, since statements access them by key. */
const GROWING =
  '^(messages|message_events|sms_fallbacks|recipient_actions)_\\d{4}_\\d{2}$|' +
  '^(idempotency_keys|log_pages|webhook_deliveries|webhook_attempts|sms_segments|sms_contacts|short_links|opt_outs|capabilities|group_members|campaigns|contents|' +
  'accounts|integration_keys|agents|agent_assignments)$'
/** PostgreSQL plans well for a table that was analyzed with this many rows, so autovacuum is enough from then on. */
const LARGE = 10_000
/** A table is stale once it has this many rows more than twice the analyzed number. Until then, a scan of the whole table costs little. */
const SMALL = 500
// A table that was loaded in bulk may be large.
const TIMEOUT_MS = 30_000
const UNDEFINED_TABLE = '42P01'
const CLIENT_TIMEOUT = { query_timeout: TIMEOUT_MS + 1_000 }

/**
 * Runs ANALYZE on tables whose statistics are stale, and returns their names. From 500 rows to 10,000 that happens five times. All sessions of
 * every process then plan their statements on these tables again. A table that is being analyzed or vacuumed already is skipped.
 */
export async function refreshStatistics(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>({ name: 'find-stale-tables', text: FIND_STALE, values: [LARGE, SMALL, GROWING] })
  for (const { name } of rows) {
    await transaction(pool, async (tx) => {
      await tx.query(`set local statement_timeout = ${TIMEOUT_MS}`)
      await tx.query({ text: 'select analyze_table($1)', values: [name], ...CLIENT_TIMEOUT })
    }).catch((error: unknown) => {
      // The table of a month that was dropped meanwhile.
      if ((error as pg.DatabaseError).code !== UNDEFINED_TABLE) throw error
    })
  }
  return rows.map(({ name }) => name)
}

// reltuples is -1 for a table that was never analyzed.
const FIND_STALE = `
  select relname as name from pg_class
  where relnamespace = current_schema()::regnamespace and relkind = 'r' and relname ~ $3 and reltuples < $1
    and pg_stat_get_live_tuples(oid) > 2 * greatest(reltuples, 0) + $2`
