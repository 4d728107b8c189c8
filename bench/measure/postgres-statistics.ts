import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { openClient } from '../setup/postgres.ts'

// What PostgreSQL reports of its own work: rows written by table, the write-ahead log (WAL), and what its connections wait for.

/** An idle backend reports its statistics after 10 s (`PGSTAT_IDLE_INTERVAL`). */
export const STATISTICS_DELAY_MS = 11_000

/** Rows of a table. A HOT update writes no index entry. */
export type Rows = { inserted: number; updated: number; hot: number; deleted: number }
export type RowsByTable = Record<string, Rows>

/** Since the database was created. Partitions are added up under the name of their table. */
export async function readRows(client: pg.Client): Promise<RowsByTable> {
  const { rows } = await client.query<Rows & { table: string }>(
    `select coalesce(pg_partition_root(relid), relid)::regclass::text as table, sum(n_tup_ins)::float8 as inserted,
       sum(n_tup_upd)::float8 as updated, sum(n_tup_hot_upd)::float8 as hot, sum(n_tup_del)::float8 as deleted
     from pg_stat_user_tables group by 1 order by 1`,
  )
  return Object.fromEntries(rows.map(({ table, ...counts }) => [table, counts]))
}

/** What was written between two looks, for each message, without the tables to which nothing was written. */
export function rowsOfEach(from: RowsByTable, to: RowsByTable, messages: number): RowsByTable {
  const each = Object.entries(to).map(([table, now]) => {
    const of = (column: keyof Rows) => (now[column] - (from[table]?.[column] ?? 0)) / messages
    return [table, { inserted: of('inserted'), updated: of('updated'), hot: of('hot'), deleted: of('deleted') }] as const
  })
  return Object.fromEntries(each.filter(([, { inserted, updated, deleted }]) => inserted + updated + deleted > 0))
}

export function sumOfRows(rows: RowsByTable): Rows {
  const sum = (column: keyof Rows) => Object.values(rows).reduce((total, row) => total + row[column], 0)
  return { inserted: sum('inserted'), updated: sum('updated'), hot: sum('hot'), deleted: sum('deleted') }
}

/** `commits`: of transactions that wrote. `bytes`: without full page images, whose `pageBytes` depend on the last checkpoint. */
export type Wal = { records: number; commits: number; bytes: number; pageBytes: number }

type WalReader = {
  /** Writes all changed pages to the disk. The next change of each page then logs the whole page. */
  checkpoint: () => Promise<void>
  position: () => Promise<string>
  /** What was logged since a position, if there was no checkpoint since. */
  since: (position: string) => Promise<Wal>
}

/** By `pg_walinspect`, which reads the log itself: it is exact at any moment, and `pg_stat_wal` has no bytes of page images. */
export async function openWal(databaseUrl: string): Promise<WalReader> {
  const url = new URL(databaseUrl)
  // The service's own database stays as its checkout created it.
  url.pathname = '/postgres'
  const { client } = await openClient(url.href)
  await client.query('create extension if not exists pg_walinspect')
  async function checkpoint(): Promise<void> {
    await client.query('checkpoint')
  }
  async function position(): Promise<string> {
    const { rows } = await client.query<{ position: string }>('select pg_current_wal_flush_lsn()::text as position')
    return (rows[0] as { position: string }).position
  }
  async function since(from: string): Promise<Wal> {
    const { rows } = await client.query<Wal>(
      `select coalesce(sum(count), 0)::float8 as records, coalesce(sum(record_size), 0)::float8 as bytes,
         coalesce(sum(fpi_size), 0)::float8 as "pageBytes",
         coalesce(sum(count) filter (where "resource_manager/record_type" = 'Transaction/COMMIT'), 0)::float8 as commits
       from pg_get_wal_stats($1::text::pg_lsn, pg_current_wal_flush_lsn(), per_record => true)`,
      [from],
    )
    return rows[0] as Wal
  }
  return { checkpoint, position, since }
}

const WAITS_EVERY_MS = 50

/** How often a connection that was not idle waited for what, as `type: event`; `running` if it waited for nothing. */
export type Waits = { samples: number; seen: Record<string, number> }

/** Samples what connections wait for. The function that it returns ends that. */
export async function watchWaits(databaseUrl: string): Promise<() => Promise<Waits>> {
  const { client, close } = await openClient(databaseUrl)
  const waits: Waits = { samples: 0, seen: {} }
  let isOver = false
  async function sample(): Promise<void> {
    const { rows } = await client.query<{ what: string; count: number }>(
      `select coalesce(wait_event_type || ': ' || wait_event, 'running') as what, count(*)::int as count
       from pg_stat_activity
       where datname = current_database() and backend_type = 'client backend' and state <> 'idle' and pid <> pg_backend_pid()
       group by 1`,
    )
    waits.samples += 1
    for (const { what, count } of rows) waits.seen[what] = (waits.seen[what] ?? 0) + count
  }
  async function keepSampling(): Promise<void> {
    for (; !isOver; await sleep(WAITS_EVERY_MS)) await sample()
  }
  const sampling = keepSampling()
  return async () => {
    isOver = true
    await sampling
    await close()
    return waits
  }
}
