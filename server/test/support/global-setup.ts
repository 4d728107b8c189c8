import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { migrate } from '../../src/db/migrate.ts'
import { ensurePartitions } from '../../src/db/partitions.ts'
import { createOwnerPool } from '../../src/db/pool.ts'
import { newKeyLine } from '../../src/encryption/key-file.ts'
import { writePrivateFile } from '../../src/files.ts'
import { databaseUrl, TEMPLATE } from './database.ts'
import { startPostgres } from './postgres.ts'

let stopServer: (() => Promise<void>) | undefined
let keyDir: string | undefined

/**
 * Starts one PostgreSQL for the whole run, with a template database that test files copy. HERALD_TEST_DATABASE_URL names a server to use
 * instead, with a user who may create databases.
 */
export async function globalSetup(): Promise<void> {
  keyDir = mkdtempSync(join(tmpdir(), 'herald-keys-'))
  process.env.HERALD_TEST_KEY_FILE = join(keyDir, 'keys')
  writePrivateFile(process.env.HERALD_TEST_KEY_FILE, `${newKeyLine()}\n`)
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
  const pool = createOwnerPool({ connectionString: databaseUrl(TEMPLATE) }, () => {})
  await migrate(pool)
  await ensurePartitions(pool)
  await pool.end()
}

export async function globalTeardown(): Promise<void> {
  await stopServer?.()
  if (keyDir !== undefined) rmSync(keyDir, { recursive: true })
}
