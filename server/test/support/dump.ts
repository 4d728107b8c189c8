import type { Executor } from '../../src/db/pool.ts'

/** The tables of the database that have any of these texts in a row, in whatever column: as text, or as bytes. */
export async function tablesWith(db: Executor, texts: string[]): Promise<string[]> {
  const { rows: tables } = await db.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace order by 1`,
  )
  const needles = texts.flatMap((text) => [text, JSON.stringify(text).slice(1, -1), Buffer.from(text).toString('hex')])
  const patterns = [...new Set(needles)].map((needle) => `%${needle.replace(/[\\%_]/g, '\\$&')}%`)
  // One statement, so that it sees one moment.
  const text = tables.map(({ name }) => `select '${name}' as name where exists (select from ${name} t where t::text like any ($1))`)
  const { rows } = await db.query<{ name: string }>(text.join(' union all '), [patterns])
  return rows.map(({ name }) => name)
}
