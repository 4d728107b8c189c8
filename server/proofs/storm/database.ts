import { spawnSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type Cluster, disownStaleLock, findPostmaster, prepareCluster, startPostmaster } from '../../src/db/embedded/cluster.ts'
import { until } from '../../test/support/until.ts'
import type { Restartable } from './process.ts'

// A PostgreSQL server of its own, from the binaries and with the durable settings that Herald runs it with, and nobody who starts it again
// but us. Killed: its first process alone, as a crash would; the others notice. Frozen: all of them.

export type DatabaseServer = Restartable & { url: string; logFile: string; stop: () => Promise<void> }

const START_TIMEOUT_MS = 60_000

export async function createDatabaseServer(dir: string): Promise<DatabaseServer> {
  const cluster = await prepareCluster(dir)
  const host = encodeURIComponent(cluster.socketDir)
  const addressOf = (name: string) => `postgres://herald@localhost/${name}?host=${host}`
  const pid = () => findPostmaster(cluster)?.pid
  async function kill(): Promise<void> {
    signal([pid()], 'SIGKILL')
    await until('PostgreSQL is gone', () => pid() === undefined)
  }
  async function start(): Promise<void> {
    await startServer(cluster)
    await until('PostgreSQL lets us in', () => canEnter(addressOf('postgres')), START_TIMEOUT_MS)
    await ensureDatabase(addressOf('postgres'))
  }
  let starting = Promise.resolve()
  return {
    name: 'database',
    url: addressOf('herald'),
    logFile: cluster.logFile,
    start: () => {
      starting = start()
      return starting
    },
    kill,
    // The first process first: from then on there are no new ones.
    freeze: () => {
      signal([pid()], 'SIGSTOP')
      signal(childrenOf(pid()), 'SIGSTOP')
    },
    thaw: () => signal([...childrenOf(pid()), pid()], 'SIGCONT'),
    isRunning: () => pid() !== undefined,
    stop: async () => {
      signal([...childrenOf(pid()), pid()], 'SIGCONT')
      // Or what is just being started would outlive us.
      await starting.catch(() => {})
      signal([pid()], 'SIGQUIT')
      await until('PostgreSQL is gone', () => pid() === undefined)
    },
  }
}

/** Again where the memory of a server that was killed is still held by processes of it. */
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

async function canEnter(address: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: address, connectionTimeoutMillis: 2_000 })
  client.on('error', () => {})
  return await client.connect().then(
    () => client.end().then(() => true),
    () => false,
  )
}

async function ensureDatabase(address: string): Promise<void> {
  const client = new pg.Client(address)
  await client.connect()
  const { rowCount } = await client.query(`select from pg_database where datname = 'herald'`)
  if (rowCount === 0) await client.query('create database herald')
  await client.end()
}

function childrenOf(pid: number | undefined): number[] {
  const lines = spawnSync('ps', ['-A', '-o', 'pid=,ppid=']).stdout.toString().split('\n')
  return lines.map((line) => line.trim().split(/\s+/).map(Number)).flatMap(([child = 0, parent]) => (parent === pid ? [child] : []))
}

function signal(pids: (number | undefined)[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      if (pid !== undefined) process.kill(pid, name)
    } catch (error) {
      // It has ended meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}
