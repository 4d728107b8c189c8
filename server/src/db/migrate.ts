import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type { Keyring } from '../encryption/keyring.ts'
import { OperatorError } from '../errors.ts'
import { encryptPlainSecrets } from './encrypt-plain.ts'
import { BEFORE_EVERY_REQUEST, EXPORTS_NAME, type Executor, type Pool, transaction } from './pool.ts'

type Migration = { name: string; checksum: string; sql: string }
/** Loads the key file, to encrypt secrets that a database has in plain text. Makes the file where it is missing. */
export type LoadKeys = () => Keyring

const MIGRATIONS_DIR = new URL('./migrations/', import.meta.url)
// Any number that nothing else in this database locks: "hrld" in ASCII.
const MIGRATION_LOCK = 0x68726c64
const UNDEFINED_TABLE = '42P01'
// The longest that the driver can wait, instead of the seconds that the pool allows a statement.
const PATIENTLY = { query_timeout: 2 ** 31 - 1 }

// An export of another node holds on to the tables that it reads for as long as its client takes, an hour at most: a migration would wait for
// that, and all others for the migration. To its client, a broken connection says that the file is not whole.
const END_EXPORTS = `
  select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and usename = current_user and application_name = '${EXPORTS_NAME}'`

// What a migration has to do beyond its SQL, in the same transaction.
const STEPS: Record<string, (tx: Executor, loadKeys: LoadKeys) => Promise<void>> = { '0012_encrypted_secrets': encryptPlainSecrets }

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
export async function migrate(pool: Pool, loadKeys: LoadKeys = noKeys): Promise<string[]> {
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
    const { pending, unknown } = compare(await appliedMigrations(tx))
    refuseNewer(unknown)
    if (pending.length > 0) await tx.query(END_EXPORTS)
    for (const { name, checksum, sql } of pending) {
      await tx.query({ text: sql, ...PATIENTLY })
      await STEPS[name]?.(tx, loadKeys)
      await tx.query('insert into schema_migrations (name, checksum) values ($1, $2)', [name, checksum])
    }
    return pending.map(({ name }) => name)
  })
}

/** `newer`: it has all that this program knows, and more. A program that runs goes on with it, as nodes are upgraded one by one. */
export type SchemaState = 'empty' | 'behind' | 'current' | 'newer'

/** Compares the database with this program's migrations. */
export async function schemaState(db: Executor): Promise<SchemaState> {
  let applied: Map<string, string>
  try {
    applied = await appliedMigrations(db)
  } catch (error) {
    if ((error as { code?: string }).code === UNDEFINED_TABLE) return 'empty'
    throw error
  }
  const { pending, unknown } = compare(applied)
  if (pending.length > 0) return 'behind'
  return unknown.length > 0 ? 'newer' : 'current'
}

/** Sees to it that the schema is this program's: applies what is missing where that is allowed, refuses a newer one. */
export async function ensureSchema(pool: Pool, mayUpgrade: boolean, loadKeys?: LoadKeys): Promise<void> {
  const state = await schemaState(pool)
  if (state === 'current') return
  if (state === 'behind' && !mayUpgrade) {
    throw new OperatorError('The database has an older schema than this version of Herald: run "npx herald migrate" first.')
  }
  await migrate(pool, loadKeys)
}

function noKeys(): never {
  throw new Error('this database has secrets in plain text, and a key to encrypt them was not given')
}

async function appliedMigrations(db: Executor): Promise<Map<string, string>> {
  const { rows } = await db.query<{ name: string; checksum: string }>({
    text: 'select name, checksum from schema_migrations order by name',
    ...BEFORE_EVERY_REQUEST,
  })
  return new Map(rows.map(({ name, checksum }) => [name, checksum]))
}

function compare(applied: Map<string, string>): { pending: Migration[]; unknown: string[] } {
  const known = readMigrations()
  for (const { name, checksum } of known) {
    if (applied.has(name) && applied.get(name) !== checksum) {
      throw new OperatorError(
        `The migration ${name} is not the one that was applied to this database; restore the file as it was released.`,
      )
    }
  }
  return {
    pending: known.filter(({ name }) => !applied.has(name)),
    unknown: [...applied.keys()].filter((name) => !known.some((migration) => migration.name === name)),
  }
}

function refuseNewer(unknown: string[]): void {
  if (unknown.length === 0) return
  throw new OperatorError(
    `The database has a newer schema (${unknown.join(', ')}) than this version of Herald knows; run the version that made it, or a later one.`,
  )
}
