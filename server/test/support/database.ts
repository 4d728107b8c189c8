import { randomBytes } from 'node:crypto'
import { after } from 'node:test'
import pg from 'pg'
import { ensurePartitions } from '../../src/db/partitions.ts'
import { createHotPool, createPool, type Pool } from '../../src/db/pool.ts'
import { auditDatabase } from './audit.ts'
import { assertAllCounted, assertUsageCounted } from './counted.ts'

export const TEMPLATE = 'herald_test_template'

/** The address of a database on the test server. */
export function databaseUrl(name: string): string {
  const url = new URL(process.env.HERALD_TEST_DATABASE_URL as string)
  url.pathname = `/${name}`
  return url.href
}

/** As in a service, hot statements run on `hotPool`. */
export type TestDatabase = { url: string; pool: Pool; hotPool: Pool }

export type DatabaseOptions = {
  /** Without the schema. */
  empty?: boolean
  /** Why what reports count can't be what the rows say: the test writes or moves messages by hand. */
  uncounted?: string
  /** Why the usage of an account can't be what its rows say: the test writes or moves some of its messages by hand, and sends others. */
  unmetered?: string
}

/** A database of one's own, with the schema and no rows; gone when the test file ends, which fails where reports would have counted wrong. */
export async function createTestDatabase({ empty = false, uncounted, unmetered }: DatabaseOptions = {}): Promise<TestDatabase> {
  const name = `herald_test_${randomBytes(8).toString('hex')}`
  // Copied as files: 25 ms instead of 60, since nothing of it goes through the log.
  await asAdmin(`create database ${name} template ${empty ? 'template0' : TEMPLATE} strategy file_copy`)
  const url = databaseUrl(name)
  const pool = createPool({ connectionString: url }, () => {})
  const hotPool = createHotPool({ connectionString: url }, () => {})
  // Tests hold locks in more sessions than one process would.
  for (const each of [pool, hotPool]) each.options.max = 10
  after(async () => {
    for (const each of [pool, hotPool]) if (!each.ending) await each.end()
    await check(url, { isCounted: uncounted === undefined, isMetered: unmetered === undefined })
    await asAdmin(`drop database ${name} with (force)`)
  })
  return { url, pool, hotPool }
}

/** A database that is new has this month's partitions and later ones; these are of the two months before. */
export async function makePastMonths(pool: Pool): Promise<void> {
  await pool.query(`do $$ declare month timestamp; begin
    for n in 1..2 loop
      month := date_trunc('month', now() at time zone 'UTC') - n * interval '1 month';
      execute format('create table messages_%s partition of messages for values from (%L) to (%L)', to_char(month, 'YYYY_MM'),
        uuid_v7_from(month at time zone 'UTC'), uuid_v7_from((month + interval '1 month') at time zone 'UTC'));
    end loop; end $$`)
  await ensurePartitions(pool)
}

const ANYTHING =
  '(select from messages limit 1) union all (select from report_totals limit 1) union all (select from report_deltas limit 1) limit 1'

/**
 * Not thrown: what a test has registered to run after this, such as the end of its services, would not run, and the file would never end. The
 * services may go on meanwhile, since all is compared as of one moment.
 */
async function check(url: string, { isCounted, isMetered }: { isCounted: boolean; isMetered: boolean }): Promise<void> {
  const client = new pg.Client(url)
  try {
    await client.connect()
    const { rowCount: hasSchema } = await client.query(`select from pg_tables where schemaname = 'public' and tablename = 'log_pages'`)
    if (hasSchema === 0) return
    // Many have nothing to compare, and 25 ms are much for that.
    const { rowCount: hasAny } = await client.query(ANYTHING)
    if (hasAny === 0) return
    await auditDatabase(client, { isMovedByHand: !isCounted })
    if (isCounted) await assertAllCounted(client)
    if (isCounted && isMetered) await assertUsageCounted(client)
  } catch (error) {
    console.error(
      `After the tests, ${(error as Error).message}\nIf the tests write or move messages by hand: createTestDatabase({ uncounted }), or ({ unmetered }) for usage`,
    )
    process.exitCode = 1
  } finally {
    await client.end()
  }
}

async function asAdmin(statement: string): Promise<void> {
  const client = new pg.Client(process.env.HERALD_TEST_DATABASE_URL)
  await client.connect()
  await client.query(statement)
  await client.end()
}
