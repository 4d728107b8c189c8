import pg from 'pg'
import { migrate } from '../../src/db/migrate.ts'
import { ensurePartitions } from '../../src/db/partitions.ts'
import { createPool } from '../../src/db/pool.ts'
import { databaseUrl, TEMPLATE } from './database.ts'
import { startPostgres } from './postgres.ts'

let stopServer: (() => Promise<void>) | undefined

/**
 * One PostgreSQL for the whole run, with a template database that has the schema; each test file clones it. HERALD_TEST_DATABASE_URL
 * names a server to use instead, as a user who may create databases.
 */
export async function globalSetup(): Promise<void> {
  if (process.env.HERALD_TEST_DATABASE_URL === undefined) {
    const server = await startPostgres()
    process.env.HERALD_TEST_DATABASE_URL = server.url
    stopServer = server.stop
  }
  const admin = new pg.Client(process.env.HERALD_TEST_DATABASE_URL)
  await admin.connect()
  await admin.query(`drop database if exists ${TEMPLATE}`)
  await admin.query(`create database ${TEMPLATE}`)
  await admin.end()
  const pool = createPool({ connectionString: databaseUrl(TEMPLATE) }, () => {})
  await migrate(pool)
  await ensurePartitions(pool)
  await pool.end()
}

export async function globalTeardown(): Promise<void> {
  await stopServer?.()
}
