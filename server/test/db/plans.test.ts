import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { after, describe, test } from 'node:test'
import type pg from 'pg'
import { type HotStatement, hotStatements } from '../../scripts/hot-statements.ts'
import { indented, sqlPages } from '../../scripts/sql-pages.ts'
import { messagesTableOf } from '../../src/db/partitions.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { fillDatabase } from './filled.ts'
import { locksRows, partitionedSteps, planOf, problemsOf, readIndexes } from './plan.ts'

// Plans of prepared statements, as the hot pool's sessions make and keep them, on a database of each kind that a plan can be made on.

const database = await createTestDatabase({ uncounted: 'rows are written by hand' })
const { pool, hotPool } = database
const { rows } = await pool.query<{ id: string }>('select uuid_v7() as id')
const { id: newId } = rows[0] as { id: string }
const messagesTable = messagesTableOf(newId)
const STATEMENTS = Object.values(hotStatements(messagesTable)).flat()
const indexes = await readIndexes(pool)

async function connect(from: pg.Pool): Promise<pg.PoolClient> {
  const client = await from.connect()
  after(() => client.release(true))
  await client.query('set plan_cache_mode = force_generic_plan')
  return client
}

async function problemsWith(client: pg.PoolClient, { text, settings = '' }: Pick<HotStatement, 'text' | 'settings'>): Promise<string[]> {
  await client.query(`begin; ${settings}`)
  const plan = await planOf(client, indented(text), newId)
  await client.query('rollback')
  return problemsOf(plan, indexes)
}

/** As autovacuum does: a table without rows is never analyzed. */
async function analyzeTables(): Promise<void> {
  const { rows } = await pool.query<{ name: string }>(
    `select oid::regclass::text as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace and pg_relation_size(oid) > 0`,
  )
  for (const { name } of rows) await ownerOf(pool).query(`analyze ${name}`)
}

const STATES: [state: string, prepare: () => Promise<void>][] = [
  ['in a new database', async () => {}],
  ['beside 20,000 messages that are not analyzed', () => fillDatabase(database, messagesTable)],
  ['beside 20,000 messages that are analyzed', analyzeTables],
]

for (const [state, prepare] of STATES) {
  test(`hot statements find their rows by key ${state}`, async (t) => {
    await prepare()
    const client = await connect(hotPool)
    for (const statement of STATEMENTS) {
      await t.test(statement.name, async () => assert.deepEqual(await problemsWith(client, statement), []))
    }
  })
}

// A statement that waits for a lock may read the changed row again, and then prepares all of its steps again. PostgreSQL 18.4 can crash when one of
// them chooses between partitions.
describe('a hot statement that locks rows reads no partitioned table in a step of its own', () => {
  /** Its transaction has locked the campaign before, so the statement never waits. */
  const NEVER_WAITS = ['create-retried-messages']
  const connected = connect(hotPool)
  for (const { name, text, settings = '' } of STATEMENTS.filter(({ name }) => !NEVER_WAITS.includes(name))) {
    test(name, async () => {
      const client = await connected
      await client.query(`begin; ${settings}`)
      const plan = await planOf(client, indented(text), newId)
      await client.query('rollback')
      assert.deepEqual(locksRows(plan) ? partitionedSteps(plan) : [], [])
    })
  }
})

describe('the check reports', () => {
  const reports = async (from: pg.Pool, text: string, problem: RegExp) => {
    const problems = await problemsWith(await connect(from), { text })
    assert.ok(problems.length > 0 && problems.every((each) => problem.test(each)), JSON.stringify(problems))
  }

  test('a sequential scan', async () => {
    await reports(pool, `select from queue where task = $1`, /^Seq Scan of queue/)
  })

  test('a scan of a whole index', async () => {
    await reports(hotPool, 'select from queue where task = $1 order by message_id', /^Index Scan of queue by queue_pkey: undefined$/)
  })

  test('an index whose first column has no condition', async () => {
    await reports(
      hotPool,
      `select from sms_segments where segment = $1`,
      /^Index .*Scan of sms_segments by sms_segments_pkey: \(segment = /,
    )
  })

  test('a join that begins with all messages of an account', async () => {
    const text =
      'select from messages m join queue q on q.message_id = m.id where m.account_id = $1 and m.campaign_id is null and not m.test'
    await reports(hotPool, text, /^Member Index (Only )?Scan of messages_\d{4}_\d{2} /)
  })

  test('a limit that needs all rows first', async () => {
    await reports(hotPool, 'select from queue order by expires_at limit $1', /^Outer Seq Scan of queue/)
  })
})

test('docs/sql has no page that "npm run generate" does not write', () => {
  const files = readdirSync(new URL('../../../docs/sql/', import.meta.url)).map((name) => `docs/sql/${name}`)
  assert.deepEqual(new Set(files), new Set(Object.keys(sqlPages())))
})
