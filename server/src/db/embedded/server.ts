import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { OperatorError } from '../../errors.ts'
import { type ConnectionOptions, isLockedOut, isUnavailable } from '../pool.ts'
import {
  type Cluster,
  disownStaleLock,
  findPostmaster,
  isPostmaster,
  lastLoggedError,
  type Postmaster,
  prepareCluster,
  removeSocketDirectory,
  startPostmaster,
} from './cluster.ts'
import { oneAtATime } from './start-lock.ts'

/**
 * One PostgreSQL server for a data directory, shared by the service and by every `herald` command that runs meanwhile. The first process
 * starts it and the last one stops it. Each process may be killed at any moment: all state is in locks, which end with their holder. Two of
 * them are advisory locks of PostgreSQL:
 *
 *   PRESENT  held shared by every process. A process that gets it exclusively is alone and may stop the server. A new process then waits for
 *            the lock, loses its connection in the shutdown, and starts the server again.
 *   SERVICE  held exclusively by the one service.
 *
 * If no server runs, a lock on a file ensures that only one process at a time starts it.
 */
const PRESENT = 1
const SERVICE = 2
const LOCK_SPACE = 0x6872

type EmbeddedServer = {
  connection: ConnectionOptions
  /** Stops the server unless another process uses it. Close every other connection first. */
  leave: () => Promise<void>
}

type Options = { isService: boolean; onProgress: (sentence: string) => void }

const POLL_MS = 50
// PostgreSQL notices at once that a service was killed, and releases its lock, but on a loaded machine that takes a moment.
const SERVICE_LOCK_TIMEOUT_MS = 3_000
const START_TIMEOUT_MS = 15_000
const PROGRESS_EVERY_MS = 5_000
const STOP_TIMEOUT_MS = 5_000
// A server that does not respond within this time is frozen; the shutdown must not hang with it.
const SHORT_TIMEOUT = { query_timeout: 1_000 }

export async function joinEmbeddedServer(
  dataDir: string,
  isService: boolean,
  onProgress: (sentence: string) => void,
): Promise<EmbeddedServer> {
  const options = { isService, onProgress }
  // PG* variables are meant for another server, but the driver would use them for options that are not set here.
  for (const name of Object.keys(process.env)) if (/^PG[A-Z]/.test(name)) delete process.env[name]
  const cluster = await prepareCluster(dataDir).catch((error: NodeJS.ErrnoException) => {
    if (error.syscall === undefined) throw error
    const isForeign = error.code === 'EACCES' || error.code === 'EPERM'
    const reason = isForeign ? 'it belongs to another user; run this as the user who started Herald there' : error.code
    throw new OperatorError(`The data can't be kept in ${dataDir}: ${reason} (HERALD_DATA_DIR).`)
  })
  let presence = await enter(cluster, options)
  let recovering: Promise<void> | undefined
  let leaving = false
  // A running server may have been started under another path of the same directory.
  cluster.socketDir = findPostmaster(cluster)?.socketDir || cluster.socketDir

  // If the server dies while the service runs, the service starts it again. The pools reconnect by themselves.
  function watch(client: pg.Client): void {
    client.once('end', () => {
      if (leaving || !isService) return
      onProgress('The database has stopped; starting it again.')
      recovering = recover()
    })
  }
  async function recover(): Promise<void> {
    while (!leaving) {
      try {
        presence = await enter(cluster, options)
        watch(presence)
        return
      } catch (error) {
        onProgress(`The database can't be started: ${(error as Error).message}`)
        await sleep(1_000)
      }
    }
  }
  watch(presence)

  return {
    connection: connectionTo(cluster),
    leave: async () => {
      leaving = true
      await recovering
      await leave(cluster, presence)
    },
  }
}

function connectionTo({ socketDir }: { socketDir: string }) {
  return { host: socketDir, port: 5432, user: 'herald', database: 'herald' }
}

/** Ensures that the server runs, and takes the locks. Returns the connection that holds them. */
async function enter(cluster: Cluster, options: Options): Promise<pg.Client> {
  for (;;) {
    const client = await connect(cluster, options)
    try {
      await client.query('select pg_advisory_lock_shared($1, $2)', [LOCK_SPACE, PRESENT])
      if (options.isService) await takeServiceLock(client, cluster)
      return client
    } catch (error) {
      if (error instanceof OperatorError) {
        await leave(cluster, client)
        throw error
      }
      await client.end().catch(() => {})
      // If the server is unavailable, the last process to leave was stopping it.
      if (!isUnavailable(error)) throw error
      await sleep(POLL_MS)
    }
  }
}

async function takeServiceLock(client: pg.Client, cluster: Cluster): Promise<void> {
  const deadline = performance.now() + SERVICE_LOCK_TIMEOUT_MS
  while (!(await tryLock(client, SERVICE))) {
    if (performance.now() > deadline) {
      throw new OperatorError(
        `Another Herald service already runs on ${cluster.dir.replace(/\/postgres$/, '')}; stop it, or set HERALD_DATA_DIR.`,
      )
    }
    await sleep(POLL_MS)
  }
}

async function tryLock(client: pg.Client, lock: number): Promise<boolean> {
  const text = 'select pg_try_advisory_lock($1, $2) as taken'
  const { rows } = await client.query<{ taken: boolean }>({ text, values: [LOCK_SPACE, lock], ...SHORT_TIMEOUT })
  return rows[0]?.taken === true
}

/** Connects to the server, and starts it if none runs. Waits for a recovery or a shutdown for as long as it takes. */
async function connect(cluster: Cluster, options: Options): Promise<pg.Client> {
  let nextProgressAt = performance.now() + PROGRESS_EVERY_MS
  let lastResponseAt = performance.now()
  for (;;) {
    let postmaster = findPostmaster(cluster)
    if (postmaster === undefined) {
      postmaster = await oneAtATime(cluster, () => start(cluster))
      lastResponseAt = performance.now()
    }
    const outcome = await tryConnect(postmaster)
    if (outcome instanceof pg.Client) return outcome
    if (outcome === 'busy') lastResponseAt = performance.now()
    if (performance.now() > lastResponseAt + START_TIMEOUT_MS) {
      throw new OperatorError(
        `The database in ${cluster.dir} does not respond. Its postmaster.pid names process ${postmaster.pid}: remove that file if the process is not PostgreSQL.`,
      )
    }
    if (performance.now() > nextProgressAt) {
      options.onProgress(`Waiting for PostgreSQL in ${cluster.dir} to accept connections.`)
      nextProgressAt += PROGRESS_EVERY_MS
    }
    await sleep(POLL_MS)
  }
}

/**
 * Starts the server, or finds one that another process has started meanwhile. Only one process at a time does this. A start fails for a moment
 * while backends of a killed server still release their memory, or if the previous starter was killed while its PostgreSQL was starting.
 */
async function start(cluster: Cluster): Promise<Postmaster> {
  const deadline = performance.now() + START_TIMEOUT_MS
  for (;;) {
    const running = findPostmaster(cluster)
    if (running !== undefined) return running
    disownStaleLock(cluster)
    await untilListeningOrEnded(cluster, startPostmaster(cluster), deadline)
    if (findPostmaster(cluster) !== undefined) continue
    if (performance.now() > deadline) {
      throw new OperatorError(`PostgreSQL does not start: ${lastLoggedError(cluster)} (see ${cluster.logFile})`)
    }
    await sleep(POLL_MS * 4)
  }
}

async function untilListeningOrEnded(cluster: Cluster, ended: Promise<unknown>, deadline: number): Promise<void> {
  let isOver = false
  async function untilListening(): Promise<void> {
    while (!isOver && performance.now() < deadline && !findPostmaster(cluster)?.socketDir) await sleep(POLL_MS / 2)
  }
  await Promise.race([ended, untilListening()])
  isOver = true
}

/** `busy`: the server is starting up, recovering or shutting down. `absent`: no server listens, or not yet. */
async function tryConnect(postmaster: Postmaster): Promise<pg.Client | 'busy' | 'absent'> {
  // The server has not written its address yet. Without an address, the driver would connect to another server.
  if (postmaster.socketDir === '') return 'absent'
  try {
    return await open(connectionTo(postmaster))
  } catch (error) {
    const { code = '' } = error as pg.DatabaseError
    if (['ENOENT', 'ECONNREFUSED'].includes(code)) return 'absent'
    if (code === '3D000') await createDatabase(postmaster)
    else if (!isUnavailable(error) || isLockedOut(error)) throw error
    return 'busy'
  }
}

async function createDatabase(postmaster: Postmaster): Promise<void> {
  const client = await open({ ...connectionTo(postmaster), database: 'postgres' })
  try {
    await client.query('create database herald')
  } catch (error) {
    // Another process has created the database, or is creating it.
    if (!['42P04', '23505', '55006'].includes((error as pg.DatabaseError).code ?? '')) throw error
  } finally {
    await client.end()
  }
}

async function open(options: ReturnType<typeof connectionTo>): Promise<pg.Client> {
  const client = new pg.Client({ ...options, application_name: 'herald presence', connectionTimeoutMillis: 2_000 })
  // The `end` event triggers the recovery. An error event without a listener would end the process.
  client.on('error', () => {})
  await client.connect()
  return client
}

/** Releases the locks. If no other process uses the server, stops it and waits until it is down. */
async function leave(cluster: Cluster, presence: pg.Client): Promise<void> {
  const postmaster = findPostmaster(cluster)
  if (postmaster === undefined) return
  try {
    const client = await withoutPresence(presence, postmaster)
    if (client === undefined) return
    try {
      if (await tryLock(client, PRESENT)) await oneAtATime(cluster, () => stopServer(cluster, postmaster.pid))
    } finally {
      await client.end().catch(() => {})
    }
  } catch (error) {
    // Once this lock is released, another process that leaves may find itself alone and stop the server under this connection.
    if (!isUnavailable(error)) throw error
  }
}

/** Releases the lock PRESENT and returns the connection. If the connection broke, and its locks with it, opens another one if possible. */
async function withoutPresence(presence: pg.Client, postmaster: Postmaster): Promise<pg.Client | undefined> {
  try {
    await presence.query({ text: 'select pg_advisory_unlock_shared($1, $2)', values: [LOCK_SPACE, PRESENT], ...SHORT_TIMEOUT })
    return presence
  } catch {
    const outcome = await tryConnect(postmaster)
    return outcome instanceof pg.Client ? outcome : undefined
  }
}

async function stopServer(cluster: Cluster, pid: number): Promise<void> {
  // The server may have died while this process waited for its turn, and another process may have its id.
  if (isPostmaster(cluster, pid)) await stopPostmaster(cluster, pid)
  removeSocketDirectory(cluster)
}

async function stopPostmaster(cluster: Cluster, pid: number): Promise<void> {
  const deadline = performance.now() + STOP_TIMEOUT_MS
  // SIGINT is a "fast" shutdown: open transactions are rolled back, and everything committed is on the disk. SIGQUIT, if that takes too long,
  // is an "immediate" one, which is no less safe: the next start recovers from the WAL.
  signal(pid, 'SIGINT')
  while (isPostmaster(cluster, pid)) {
    if (performance.now() > deadline) return signal(pid, 'SIGQUIT')
    await sleep(POLL_MS / 2)
  }
}

function signal(pid: number, name: 'SIGINT' | 'SIGQUIT'): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
