import type pg from 'pg'
import { openClient } from './postgres.ts'

// What PostgreSQL says it has done: the rows that were written, by table, and the write-ahead log (WAL), by its records.

/** A backend that is idle hands its statistics in after 10 s (`PGSTAT_IDLE_INTERVAL`). */
export const STATISTICS_DELAY_MS = 11_000

/** Rows of a table. A HOT update writes no index entry. */
export type Rows = { inserted: number; updated: number; hot: number; deleted: number }
export type RowsByTable = Record<string, Rows>

/** Since the database was created. Partitions are added up under the name of their table. */
export async function readRows(client: pg.Client): Promise<RowsByTable> {
  const { rows } = await client.query<{ table: string; inserted: string; updated: string; hot: string; deleted: string }>(
    `select coalesce(pg_partition_root(relid), relid)::regclass::text as table, sum(n_tup_ins) as inserted, sum(n_tup_upd) as updated,
       sum(n_tup_hot_upd) as hot, sum(n_tup_del) as deleted
     from pg_stat_user_tables group by 1 order by 1`,
  )
  return Object.fromEntries(
    rows.map(({ table, inserted, updated, hot, deleted }) => [
      table,
      { inserted: Number(inserted), updated: Number(updated), hot: Number(hot), deleted: Number(deleted) },
    ]),
  )
}

/** What was written between two looks, for each message; without tables to which nothing was written. */
export function rowsOfEach(from: RowsByTable, to: RowsByTable, messages: number): RowsByTable {
  const each = Object.entries(to).map(([table, now]) => {
    const before = from[table] ?? { inserted: 0, updated: 0, hot: 0, deleted: 0 }
    const of = (column: keyof Rows) => (now[column] - before[column]) / messages
    return [table, { inserted: of('inserted'), updated: of('updated'), hot: of('hot'), deleted: of('deleted') }] as const
  })
  return Object.fromEntries(each.filter(([, { inserted, updated, deleted }]) => inserted + updated + deleted > 0))
}

export function sumOf(rows: RowsByTable): Rows {
  const sum = (column: keyof Rows) => Object.values(rows).reduce((total, row) => total + row[column], 0)
  return { inserted: sum('inserted'), updated: sum('updated'), hot: sum('hot'), deleted: sum('deleted') }
}

/** `commits`: of transactions that wrote something. `bytes` are those of the records alone; `pageBytes` those of the full page images, which depend on how long ago a checkpoint was. */
export type Wal = { records: number; commits: number; bytes: number; pageBytes: number }

export type WalReader = {
  /** All changed pages are on the disk afterwards. The next change of each page then logs the whole page. */
  checkpoint: () => Promise<void>
  position: () => Promise<string>
  /** What was logged since a position, if there was no checkpoint since. */
  since: (position: string) => Promise<Wal>
  close: () => Promise<void>
}

/** By `pg_walinspect`, which reads the log itself: it is exact at any moment, unlike `pg_stat_wal`, which has no bytes of page images. */
export async function openWal(databaseUrl: string): Promise<WalReader> {
  const url = new URL(databaseUrl)
  // Not in the service's own database, which stays as its checkout made it.
  url.pathname = '/postgres'
  const { client, close } = await openClient(url.href)
  await client.query('create extension if not exists pg_walinspect')
  async function checkpoint(): Promise<void> {
    await client.query('checkpoint')
  }
  async function position(): Promise<string> {
    const { rows } = await client.query<{ position: string }>('select pg_current_wal_flush_lsn()::text as position')
    return (rows[0] as { position: string }).position
  }
  async function since(from: string): Promise<Wal> {
    const { rows } = await client.query<Record<keyof Wal, string>>(
      `select coalesce(sum(count), 0) as records, coalesce(sum(record_size), 0) as bytes, coalesce(sum(fpi_size), 0) as "pageBytes",
         coalesce(sum(count) filter (where "resource_manager/record_type" = 'Transaction/COMMIT'), 0) as commits
       from pg_get_wal_stats($1::text::pg_lsn, pg_current_wal_flush_lsn(), per_record => true)`,
      [from],
    )
    const { records, commits, bytes, pageBytes } = rows[0] as Record<keyof Wal, string>
    return { records: Number(records), commits: Number(commits), bytes: Number(bytes), pageBytes: Number(pageBytes) }
  }
  return { checkpoint, position, since, close }
}
