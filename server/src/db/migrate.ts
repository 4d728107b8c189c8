import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { OperatorError } from '../errors.ts'
import { type Executor, type Pool, transaction } from './pool.ts'

type Migration = { name: string; checksum: string; sql: string }

const MIGRATIONS_DIR = new URL('./migrations/', import.meta.url)
// Any number that nothing else in this database locks: "hrld" in ASCII.
const MIGRATION_LOCK = 0x68726c64
// The longest that the driver can wait, instead of the seconds that the pool allows a statement.
const PATIENTLY = { query_timeout: 2 ** 31 - 1 }

let migrations: Migration[] | undefined

function readMigrations(): Migration[] {
  migrations ??= readdirSync(MIGRATIONS_DIR)
    .filter((file) => file.endsWith('.sql'))
    .sort()
    .map((file) => {
      const sql = readFileSync(new URL(file, MIGRATIONS_DIR), 'utf8')
      return { name: file.replace(/\.sql$/, ''), checksum: createHash('sha256').update(sql).digest('hex'), sql }
    })
  return migrations
}

/**
 * Applies what is missing, all in one transaction: a failed or killed run leaves the schema as it was. Of two processes that start at
 * once, the second waits on the lock and then finds nothing to do. Returns the names applied.
 */
export async function migrate(pool: Pool): Promise<string[]> {
  return await transaction(pool, async (tx) => {
    // A large table may take its time, and so may the wait for another process.
    await tx.query('set local statement_timeout = 0')
    await tx.query({ text: 'select pg_advisory_xact_lock($1)', values: [MIGRATION_LOCK], ...PATIENTLY })
    await tx.query(
      `create table if not exists schema_migrations (
         name text primary key,
         checksum text not null,
         applied_at timestamptz(3) not null default now()
       )`,
    )
    const pending = findPending(await appliedMigrations(tx))
    for (const { name, checksum, sql } of pending) {
      await tx.query({ text: sql, ...PATIENTLY })
      await tx.query('insert into schema_migrations (name, checksum) values ($1, $2)', [name, checksum])
    }
    return pending.map(({ name }) => name)
  })
}

export type SchemaState = 'empty' | 'behind' | 'current'

/** Compares the database with this program's migrations; refuses a schema that is newer or was altered. */
export async function schemaState(db: Executor): Promise<SchemaState> {
  const { rows } = await db.query<{ exists: boolean }>(`select to_regclass('schema_migrations') is not null as exists`)
  if (!rows[0]?.exists) return 'empty'
  return findPending(await appliedMigrations(db)).length > 0 ? 'behind' : 'current'
}

async function appliedMigrations(db: Executor): Promise<Map<string, string>> {
  const { rows } = await db.query<{ name: string; checksum: string }>('select name, checksum from schema_migrations order by name')
  return new Map(rows.map(({ name, checksum }) => [name, checksum]))
}

function findPending(applied: Map<string, string>): Migration[] {
  const known = readMigrations()
  const unknown = [...applied.keys()].filter((name) => !known.some((migration) => migration.name === name))
  if (unknown.length > 0) {
    throw new OperatorError(
      `The database has a newer schema (${unknown.join(', ')}) than this version of Herald knows; run the version that made it, or a later one.`,
    )
  }
  for (const { name, checksum } of known) {
    if (applied.has(name) && applied.get(name) !== checksum) {
      throw new OperatorError(
        `The migration ${name} is not the one that was applied to this database; restore the file as it was released.`,
      )
    }
  }
  return known.filter(({ name }) => !applied.has(name))
}
