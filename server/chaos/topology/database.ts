import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type Cluster, disownStaleLock, findPostmaster, prepareCluster, startPostmaster } from '../../src/db/embedded/cluster.ts'
import { until } from '../../test/support/until.ts'
import type { Target } from './program.ts'
import { freezeAll, signal, thawAll } from './signals.ts'

// A PostgreSQL server with the binaries and the durable settings of the embedded database; only this program starts it again. A kill hits
// the postmaster alone, as a crash does, and the other processes notice. A freeze stops all of them.

export type DatabaseServer = Target & { url: string; socketDir: string; logFile: string; stop: () => Promise<void> }

const START_TIMEOUT_MS = 180_000

export async function createDatabaseServer(dir: string): Promise<DatabaseServer> {
  const cluster = await prepareCluster(dir)
  const urlOf = (name: string) => `postgres://herald@localhost/${name}?host=${encodeURIComponent(cluster.socketDir)}`
  const pid = () => findPostmaster(cluster)?.pid
  const untilGone = () => until('PostgreSQL is gone', () => pid() === undefined, START_TIMEOUT_MS)
  async function start(): Promise<void> {
    async function isUp(): Promise<boolean> {
      await startServer(cluster)
      return await canConnect(urlOf('postgres'))
    }
    await until('PostgreSQL lets us in', isUp, START_TIMEOUT_MS)
    await ensureDatabase(urlOf('postgres'))
  }
  let starting = Promise.resolve()
  return {
    name: 'database',
    url: urlOf('herald'),
    socketDir: cluster.socketDir,
    logFile: cluster.logFile,
    start: () => {
      starting = start()
      return starting
    },
    kill: async () => {
      signal([pid()], 'SIGKILL')
      await untilGone()
    },
    freeze: () => freezeAll(pid()),
    thaw: () => thawAll(pid()),
    isRunning: () => pid() !== undefined,
    stop: async () => {
      thawAll(pid())
      // A server that is just being started would outlive this program.
      await starting.catch(() => {})
      signal([pid()], 'SIGQUIT')
      await untilGone()
    },
  }
}

/** Tries again while processes of a killed server still hold its memory or its socket. Returns at once if it runs. */
async function startServer(cluster: Cluster): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS
  while (findPostmaster(cluster) === undefined) {
    if (performance.now() > deadline) throw new Error(`PostgreSQL does not start: see ${cluster.logFile}`)
    disownStaleLock(cluster)
    let hasEnded = false
    void startPostmaster(cluster).then(() => {
      hasEnded = true
    })
    await until('PostgreSQL has its lock, or has ended', () => hasEnded || findPostmaster(cluster) !== undefined, START_TIMEOUT_MS)
    if (hasEnded) await sleep(100)
  }
}

export async function canConnect(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
  client.on('error', () => {})
  return await client.connect().then(
    () => client.end().then(() => true),
    () => false,
  )
}

async function ensureDatabase(url: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  const { rowCount } = await client.query(`select from pg_database where datname = 'herald'`)
  if (rowCount === 0) await client.query('create database herald')
  await client.end()
}
