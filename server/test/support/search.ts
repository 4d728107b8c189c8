import type { Pool } from '../../src/db/pool.ts'
import { ownerOf } from './database.ts'

// Searches stored rows and output for secrets, in every encoding.

export type Secret = { what: string; value: string | Buffer }

/** The text, and its bytes as PostgreSQL, JSON and headers encode them, without padding, which may be absent. */
function formsOf(value: string | Buffer): string[] {
  const bytes = Buffer.from(value as string)
  const encoded = (['hex', 'base64', 'base64url', 'latin1'] as const).map((encoding) => bytes.toString(encoding).replace(/=+$/, ''))
  return typeof value === 'string' ? [value, ...encoded] : encoded
}

/** The secrets that a text contains. */
export function findSecrets(secrets: readonly Secret[], text: string): string[] {
  return secrets.filter(({ value }) => formsOf(value).some((form) => text.includes(form))).map(({ what }) => what)
}

/** Every row of every table, including partitions and the statistics of ANALYZE, by table name. */
export async function dumpTables(pool: Pool): Promise<Map<string, string>> {
  await ownerOf(pool).query('analyze')
  const { rows: tables } = await pool.query<{ name: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema')`,
  )
  const names = [...tables.map(({ name }) => name), `(select * from pg_stats where schemaname not in ('pg_catalog', 'information_schema'))`]
  const dump = new Map<string, string>()
  for (const name of names) {
    const { rows } = await pool.query<{ row: string }>(`select t::text as row from ${name} as t`)
    dump.set(name, rows.map(({ row }) => row).join('\n'))
  }
  return dump
}
