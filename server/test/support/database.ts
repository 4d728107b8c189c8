import { randomBytes } from 'node:crypto'
import { after } from 'node:test'
import pg from 'pg'
import { ensurePartitions } from '../../src/db/partitions.ts'
import { createHotPool, createOwnerPool, createPool, type Pool } from '../../src/db/pool.ts'
import { TABLE_PRIVILEGES } from '../../src/db/privileges.ts'
import { SERVICE_ROLE } from '../../src/db/service-role.ts'
import { auditDatabase } from './audit.ts'
import { assertAllCounted, assertUsageCounted } from './counted.ts'
import { assertAllEmitted } from './emitted.ts'

export const TEMPLATE = 'herald_test_template'

/** The address of a database on the test server. */
export function databaseUrl(name: string): string {
  const url = new URL(process.env.HERALD_TEST_DATABASE_URL as string)
  url.pathname = `/${name}`
  return url.href
}

/** As in a service, hot statements run on `hotPool`. */
export type TestDatabase = { url: string; pool: Pool; hotPool: Pool }

/** Each option but `empty` is a reason: why a comparison of the dropped database with its rows would fail. */
export type DatabaseOptions = {
  /** Without the schema. */
  empty?: boolean
  /** Why counters, events and usage differ from the rows: the test moves or removes messages by hand. */
  uncounted?: string
  /** Why events and usage differ from the rows: the test writes messages and their counters by hand. */
  unlogged?: string
  /** Why usage differs from the rows: the test writes some messages of an account by hand, with their events, and sends others. */
  unmetered?: string
}

/**
 * A database with the schema and no rows. It is dropped when the test file ends. Before that, its rows are compared with the counters, the
 * event log and the usage, and a difference fails the run.
 */
export async function createTestDatabase({ empty = false, ...reasons }: DatabaseOptions = {}): Promise<TestDatabase> {
  const name = `herald_test_${randomBytes(8).toString('hex')}`
  // Copied as files: 25 ms instead of 60, because the copy bypasses the write-ahead log.
  await asAdmin(`create database ${name} template ${empty ? 'template0' : TEMPLATE} strategy file_copy`)
  const url = databaseUrl(name)
  const pool = createPool({ connectionString: url }, () => {})
  const hotPool = createHotPool({ connectionString: url }, () => {})
  // Tests hold locks in more sessions than one process would.
  for (const each of [pool, hotPool]) each.options.max = 10
  after(async () => {
    for (const each of [pool, hotPool, ownerOf(pool)]) if (!each.ending) await each.end()
    await check(url, reasons)
    await asAdmin(`drop database ${name} with (force)`)
  })
  return { url, pool, hotPool }
}

const owners = new Map<string, Pool>()

/** The database of a pool, as the owner of the tables: for what the service role may not do, such as to see what other sessions wait for. */
export function ownerOf({ options }: Pool): Pool {
  const { connectionString } = options as { connectionString: string }
  const owner = owners.get(connectionString) ?? createOwnerPool({ connectionString }, () => {})
  owners.set(connectionString, owner)
  return owner
}

/** Creates a table of a test, such as `marks (mark text)`, which the service role may use. */
export async function createTable(pool: Pool, definition: string): Promise<void> {
  const [name] = definition.split(' ')
  await ownerOf(pool).query(
    `create table if not exists ${definition}; grant all on ${name} to ${SERVICE_ROLE}; grant all on all sequences in schema public to ${SERVICE_ROLE}`,
  )
}

/** A new database has partitions from this month on. Creates those of the months before. */
export async function makePastMonths(pool: Pool, count = 2): Promise<void> {
  await createMonths(
    pool,
    `select date_trunc('month', now() at time zone 'UTC') - n * interval '1 month' from generate_series(1, ${count}) as n`,
  )
}

/** Creates the partitions of the months that a query returns. */
export async function createMonths(pool: Pool, months: string): Promise<void> {
  await ownerOf(pool).query(`do $$ declare begins timestamp; name text; begin
       for begins in ${months} loop
         name := 'messages_' || to_char(begins, 'YYYY_MM');
         execute format('create table %s partition of messages for values from (%L) to (%L)', name,
           uuid_v7_from(begins at time zone 'UTC'), uuid_v7_from((begins + interval '1 month') at time zone 'UTC'));
         execute format('grant ${TABLE_PRIVILEGES.messages} on %s to ${SERVICE_ROLE}', name);
       end loop; end $$`)
  await ensurePartitions(pool)
}

const ANYTHING =
  '(select from messages limit 1) union all (select from report_totals limit 1) union all (select from report_deltas limit 1) limit 1'

/**
 * Reports a difference without throwing: after an error, hooks that a test registered later, such as the stop of its services, would not run,
 * and the file would never end. Services may still run, since each comparison is one statement.
 */
async function check(url: string, { uncounted, unlogged, unmetered }: DatabaseOptions): Promise<void> {
  const client = new pg.Client(url)
  try {
    await client.connect()
    const { rowCount: hasSchema } = await client.query(`select from pg_tables where schemaname = 'public' and tablename = 'log_pages'`)
    if (hasSchema === 0) return
    // Most databases have nothing to compare, and the comparison takes 25 ms.
    const { rowCount: hasAny } = await client.query(ANYTHING)
    if (hasAny === 0) return
    await auditDatabase(client, { isMovedByHand: uncounted !== undefined })
    if (uncounted !== undefined) return
    await assertAllCounted(client)
    if (unlogged !== undefined) return
    await assertAllEmitted(client)
    if (unmetered === undefined) await assertUsageCounted(client)
  } catch (error) {
    console.error(
      `After the tests, ${(error as Error).message}\nIf the tests write or move rows by hand, name the reason: createTestDatabase({ uncounted }), ({ unlogged }) or ({ unmetered })`,
    )
    process.exitCode = 1
  } finally {
    await client.end()
  }
}

let admin: pg.Pool | undefined

/** Runs the statement on a connection that all files of this process share: a new one takes 6 ms of CPU. It does not keep the process running. */
async function asAdmin(statement: string): Promise<void> {
  admin ??= new pg.Pool({ connectionString: process.env.HERALD_TEST_DATABASE_URL, max: 1, idleTimeoutMillis: 0, allowExitOnIdle: true })
  if (admin.listenerCount('error') === 0) admin.on('error', () => {})
  await admin.query(statement)
}
