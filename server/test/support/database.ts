import { randomBytes } from 'node:crypto'
import { after } from 'node:test'
import pg from 'pg'
import { createPool, type Pool } from '../../src/db/pool.ts'

export const TEMPLATE = 'herald_test_template'

/** The address of a database on the test server. */
export function databaseUrl(name: string): string {
  const url = new URL(process.env.HERALD_TEST_DATABASE_URL as string)
  url.pathname = `/${name}`
  return url.href
}

export type TestDatabase = { url: string; pool: Pool }

/** A database of one's own, with the schema and no rows; gone when the test file ends. `empty`: without the schema. */
export async function createTestDatabase(options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const name = `herald_test_${randomBytes(8).toString('hex')}`
  await asAdmin(`create database ${name} template ${options.empty ? 'template0' : TEMPLATE}`)
  const url = databaseUrl(name)
  const pool = createPool({ connectionString: url }, () => {})
  after(async () => {
    await pool.end()
    await asAdmin(`drop database ${name} with (force)`)
  })
  return { url, pool }
}

async function asAdmin(statement: string): Promise<void> {
  const client = new pg.Client(process.env.HERALD_TEST_DATABASE_URL)
  await client.connect()
  await client.query(statement)
  await client.end()
}
