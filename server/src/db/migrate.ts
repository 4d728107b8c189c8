import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { noSuch, OperatorError } from '../errors.ts'
import { BEFORE_EVERY_REQUEST, checkServer, EXPORTS_NAME, type Executor, type Pool, transaction } from './pool.ts'
import { grantPrivileges, hasNoPrivileges } from './privileges.ts'
import { ensureServiceRole, isRoleRefused, SERVICE_ROLE } from './service-role.ts'

type Migration = { name: string; checksum: string; sql: string }

const MIGRATIONS_DIR = new URL('./migrations/', import.meta.url)
// Any number that no other advisory lock uses: "hrld" in ASCII.
const MIGRATION_LOCK = 0x68726c64
const UNDEFINED_TABLE = '42P01'
const INSUFFICIENT_PRIVILEGE = '42501'
// The driver's longest timeout. The pool's timeout is only some seconds.
const NO_TIMEOUT = { query_timeout: 2 ** 31 - 1 }

// An export locks the tables that it reads until its client has the whole file, up to an hour. A migration would wait for the export, and all
// other statements for the migration. The client of an ended export sees a broken connection, so it knows that the file is incomplete.
const END_EXPORTS = `
  select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and pg_has_role(usesysid, 'usage') and application_name = '${EXPORTS_NAME}'`

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
 * Applies the missing migrations in one transaction: a failed or killed run leaves the schema as it was. If two processes start at once, the
 * second waits for the lock and finds nothing to do. Returns the names of the applied migrations. `owner`: a pool of `createOwnerPool`.
 */
export async function migrate(owner: Pool): Promise<string[]> {
  await checkServer(owner)
  await refuseStranger(owner)
  await ensureServiceRole(owner)
  return await transaction(owner, async (tx) => {
    // A migration of a large table takes long, and so does the wait for another process that migrates.
    await tx.query('set local statement_timeout = 0')
    await tx.query({ text: 'select pg_advisory_xact_lock($1)', values: [MIGRATION_LOCK], ...NO_TIMEOUT })
    // Functions that run as the owner keep this search path. It has no schema in which others may create functions, and temporary tables last.
    await tx.query(`select set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true)`)
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
      await tx.query({ text: sql, ...NO_TIMEOUT })
      await tx.query('insert into schema_migrations (name, checksum) values ($1, $2)', [name, checksum])
    }
    if (pending.length > 0 || (await hasNoPrivileges(tx))) await grantPrivileges(tx)
    return pending.map(({ name }) => name)
  })
}

/** Only the owner of the tables changes them. In an empty database, that is the user who may create them. */
async function refuseStranger(db: Executor): Promise<void> {
  const { rows } = await db.query<{ user: string; isOwner: boolean; mustJoin: boolean }>(STRANGER)
  const { user, isOwner, mustJoin } = rows[0] as { user: string; isOwner: boolean; mustJoin: boolean }
  if (isOwner) return
  throw new OperatorError(
    mustJoin
      ? `The user ${user} in HERALD_DATABASE_URL does not own Herald's tables. Let their owner run "grant ${SERVICE_ROLE} to ${user}", then try again.`
      : `The database lacks migrations, and the user ${user} may not apply them: run "npx herald migrate" with the user who owns the tables in HERALD_DATABASE_URL, then try again.`,
  )
}

const STRANGER = `
  select quote_ident(current_user) as user, coalesce(pg_has_role(c.relowner, 'usage'), has_schema_privilege(current_schema(), 'create'), false) as "isOwner",
    c.oid is not null and not coalesce(pg_has_role(to_regrole('${SERVICE_ROLE}')::oid, 'member'), false) as "mustJoin"
  from (select to_regclass('schema_migrations')::oid as found) as named left join pg_class c on c.oid = named.found`

/** `newer`: the schema has migrations that this program does not know. A running node continues to use it: nodes are upgraded one by one. */
type SchemaState = 'empty' | 'behind' | 'current' | 'newer'

/** Compares the database with this program's migrations. A migration also sets up the service role, if this server does not have it. */
export async function schemaState(db: Executor): Promise<SchemaState> {
  let applied: Map<string, string>
  try {
    applied = await appliedMigrations(db)
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === UNDEFINED_TABLE || isRoleRefused(error)) return 'empty'
    if (code === INSUFFICIENT_PRIVILEGE) return 'behind'
    throw error
  }
  const { pending, unknown } = compare(applied)
  if (pending.length > 0) return 'behind'
  return unknown.length > 0 ? 'newer' : 'current'
}

/**
 * Ensures that the schema is the one of this version. Applies missing migrations only if `mayUpgrade`, and refuses a newer schema. `owner` opens
 * a connection only for migrations.
 */
export async function ensureSchema({ pool, owner }: { pool: Pool; owner: Pool }, mayUpgrade: boolean): Promise<void> {
  const state = await schemaState(pool)
  if (state === 'current') return
  if (state === 'behind' && !mayUpgrade) throw olderSchema()
  await migrate(owner)
}

/** Fails unless the schema is the one of this version. Changes nothing. */
export async function requireSchema(db: Executor): Promise<void> {
  const state = await schemaState(db)
  if (state === 'empty') throw noSuch('The database has no tables yet: run "npx herald migrate" or "npx herald serve" first.')
  if (state === 'behind') throw olderSchema()
  refuseNewer(compare(await appliedMigrations(db)).unknown)
}

function olderSchema(): OperatorError {
  return new OperatorError('The database has an older schema than this version of Herald: run "npx herald migrate" first.')
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
    `The database has a newer schema (${unknown.join(', ')}) than this version of Herald knows; run the version that created it, or a later one.`,
  )
}
