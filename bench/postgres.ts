import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { joinEmbeddedServer } from '../server/src/db/embedded/server.ts'
import { migrate } from '../server/src/db/migrate.ts'
import { ensurePartitions } from '../server/src/db/partitions.ts'
import { createPool, type Pool } from '../server/src/db/pool.ts'
import { keep } from './clean-up.ts'
import { say } from './measure.ts'
import { remove, temporaryDirectory } from './temporary.ts'

export type Connection = { host: string; port: number; user: string; database: string }
export type Postgres = { connection: Connection; dataDir: string; postmaster: number; stop: () => Promise<void> }

/** A PostgreSQL of the bench's own, set up as Herald sets up the one that it brings, durable as in production. `settings` differ from that. */
export async function startPostgres(settings: Record<string, string> = {}): Promise<Postgres> {
  const dataDir = temporaryDirectory()
  let joining = joinEmbeddedServer(dataDir, false, say)
  // Known before it is there: one that is being started when somebody breaks off is stopped as soon as it is through.
  const stop = keep(async () => {
    await (await joining).leave()
    remove(dataDir)
  })
  if (Object.keys(settings).length > 0) {
    await configure(await joining, settings)
    joining = joinEmbeddedServer(dataDir, false, say)
  }
  const server = await joining
  return { connection: server.connection as Connection, dataDir, postmaster: postmasterIn(dataDir), stop }
}

/** Stops the server, which takes some settings only when it starts. */
async function configure(server: Awaited<ReturnType<typeof joinEmbeddedServer>>, settings: Record<string, string>): Promise<void> {
  const { client, close } = await openClient(urlOf(server.connection as Connection))
  for (const [name, value] of Object.entries(settings)) await client.query(`alter system set ${name} = '${value}'`)
  await close()
  await server.leave()
}

/** The first line of its lock file. */
export function postmasterIn(dataDir: string): number {
  return Number(readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0])
}

export function urlOf({ host, user, database }: Connection): string {
  return `postgres://${user}@localhost/${database}?host=${encodeURIComponent(host)}`
}

/** `client` is without the limits and the settings of the service's own connections. */
export type Database = { url: string; pool: Pool; client: pg.Client; close: () => Promise<void> }

/** One of several of a server, with the tables of the service. */
export async function createDatabase(postgres: Postgres, name: string): Promise<Database> {
  await execute(postgres, `create database ${name}`)
  const database = await openDatabase(postgres, name)
  await migrate(database.pool)
  await ensurePartitions(database.pool)
  return database
}

/** With all that is in another, to which nobody is connected. */
export async function cloneDatabase(postgres: Postgres, other: string, name: string): Promise<Database> {
  await execute(postgres, `create database ${name} template ${other} strategy file_copy`)
  return await openDatabase(postgres, name)
}

export async function openDatabase({ connection }: Postgres, database: string): Promise<Database> {
  const own = { ...connection, database }
  const pool = createPool(own, () => {})
  const endPool = keep(() => pool.end())
  const { client, close: endClient } = await openClient(urlOf(own))
  async function close(): Promise<void> {
    await endPool()
    await endClient()
  }
  return { url: urlOf(own), pool, client, close }
}

async function execute({ connection }: Postgres, statement: string): Promise<void> {
  const { client, close } = await openClient(urlOf({ ...connection, database: 'postgres' }))
  await client.query(statement)
  await close()
}

const TOLD = [
  'server_version',
  'fsync',
  'synchronous_commit',
  'full_page_writes',
  'wal_level',
  'shared_buffers',
  'max_wal_size',
  'autovacuum',
]

/** What a figure depends on most, as a connection of the service has it. */
export async function readSettings(): Promise<Record<string, string>> {
  const postgres = await startPostgres()
  const pool = createPool(postgres.connection, () => {})
  const endPool = keep(() => pool.end())
  const { rows } = await pool.query<{ name: string; value: string }>(
    'select name, current_setting(name) as value from unnest($1::text[]) as name',
    [TOLD],
  )
  await endPool()
  await postgres.stop()
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]))
}

/** A connection of its own, for what takes longer than the pool allows. */
export async function openClient(connectionString: string): Promise<{ client: pg.Client; close: () => Promise<void> }> {
  const client = new pg.Client({ connectionString })
  // Idle when its server is stopped. A statement that is under way fails by itself.
  client.on('error', () => {})
  await client.connect()
  return { client, close: keep(() => client.end()) }
}
