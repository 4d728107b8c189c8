import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { joinEmbeddedServer } from '../../server/src/db/embedded/server.ts'
import { migrate } from '../../server/src/db/migrate.ts'
import { ensurePartitions } from '../../server/src/db/partitions.ts'
import { createHotPool, createOwnerPool, type Pool } from '../../server/src/db/pool.ts'
import { atEnd, say } from './clean-up.ts'
import { remove, temporaryDirectory } from './files.ts'

type Connection = { host: string; port: number; user: string; database: string }
export type Postgres = { connection: Connection; url: string; postmaster: number; stop: () => Promise<void> }

/** A PostgreSQL set up as Herald sets up its embedded one, durable as in production. `settings` are added to that. */
export async function startPostgres(settings: Record<string, string> = {}): Promise<Postgres> {
  const dataDir = temporaryDirectory()
  let joining = joinEmbeddedServer(dataDir, false, say)
  // Registered before it has started: an interrupt then stops it as soon as it has.
  const stop = atEnd(async () => {
    await (await joining).leave()
    remove(dataDir)
  })
  if (Object.keys(settings).length > 0) {
    await configure(await joining, settings)
    joining = joinEmbeddedServer(dataDir, false, say)
  }
  const connection = (await joining).connection as Connection
  return { connection, url: urlOf(connection), postmaster: postmasterIn(dataDir), stop }
}

/** Stops the server, since some settings apply only when it starts. */
async function configure(server: Awaited<ReturnType<typeof joinEmbeddedServer>>, settings: Record<string, string>): Promise<void> {
  const { client, close } = await openClient(urlOf(server.connection as Connection))
  for (const [name, value] of Object.entries(settings)) await client.query(`alter system set ${name} = '${value}'`)
  await close()
  await server.leave()
}

/** The first line of the server's lock file. */
export function postmasterIn(dataDir: string): number {
  return Number(readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0])
}

function urlOf({ host, user, database }: Connection): string {
  return `postgres://${user}@localhost/${database}?host=${encodeURIComponent(host)}`
}

/** `client` has PostgreSQL's defaults; `pool` has the service's settings, and ends statements after seconds. */
export type Database = { url: string; pool: Pool; client: pg.Client; close: () => Promise<void> }

/** A database with the tables of the service. */
export async function createDatabase(postgres: Postgres, name = 'bench'): Promise<Database> {
  await execute(postgres, `create database ${name}`)
  const owner = createOwnerPool({ ...postgres.connection, database: name }, () => {})
  await migrate(owner)
  await owner.end()
  const database = await openDatabase(postgres, name)
  await ensurePartitions(database.pool)
  return database
}

/** A copy of another database, which must have no connections. */
export async function cloneDatabase(postgres: Postgres, other: string, name: string): Promise<Database> {
  await execute(postgres, `create database ${name} template ${other} strategy file_copy`)
  return await openDatabase(postgres, name)
}

export async function openDatabase({ connection }: Postgres, database: string): Promise<Database> {
  const url = urlOf({ ...connection, database })
  const { pool, end } = openPool(url)
  const { client, close: endClient } = await openClient(url)
  async function close(): Promise<void> {
    await end()
    await endClient()
  }
  return { url, pool, client, close }
}

/** The pool of the service for hot statements. */
export function openPool(connectionString: string): { pool: Pool; end: () => Promise<void> } {
  const pool = createHotPool({ connectionString }, () => {})
  return { pool, end: atEnd(() => pool.end()) }
}

async function execute({ connection }: Postgres, statement: string): Promise<void> {
  const { client, close } = await openClient(urlOf({ ...connection, database: 'postgres' }))
  await client.query(statement)
  await close()
}

/** A single connection with PostgreSQL's defaults. */
export async function openClient(connectionString: string): Promise<{ client: pg.Client; close: () => Promise<void> }> {
  const client = new pg.Client({ connectionString })
  // An idle connection reports the end of its server. A pending statement fails by itself.
  client.on('error', () => {})
  await client.connect()
  return { client, close: atEnd(() => client.end()) }
}

const REPORTED = `
  select name, current_setting(name) as value from unnest(array['server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'wal_level',
    'shared_buffers', 'max_wal_size', 'autovacuum']) as name`

/** The settings that affect figures most, as the embedded server has them. */
export async function readSettings(): Promise<Record<string, string>> {
  const { url } = await startPostgres()
  const { rows } = await (await openClient(url)).client.query<{ name: string; value: string }>(REPORTED)
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]))
}
