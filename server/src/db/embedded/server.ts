import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { OperatorError } from '../../errors.ts'
import { type ConnectionOptions, isLockedOut, isUnavailable } from '../pool.ts'
import {
  type Cluster,
  disownStaleLock,
  findPostmaster,
  isPostmaster,
  lastComplaint,
  type Postmaster,
  prepareCluster,
  removeSocketDirectory,
  startPostmaster,
} from './cluster.ts'
import { oneAtATime } from './start-lock.ts'

/**
 * One PostgreSQL server for a data directory, shared by the service and by every `herald` command that runs meanwhile. Whoever comes
 * first starts it, whoever leaves last stops it, and each may be killed at any moment: nothing is kept but locks, which end
 * with their holder. Two are PostgreSQL's:
 *
 *   PRESENT  held shared by all; who gets it exclusively is alone and may stop the server. A newcomer then waits on the lock, is
 *            cut off by the shutdown, and starts the server anew.
 *   SERVICE  held exclusively by the one service.
 *
 * Where no server runs, a lock on a file sees to it that one process at a time starts it.
 */
const PRESENT = 1
const SERVICE = 2
const LOCK_SPACE = 0x6872

export type EmbeddedServer = {
  connection: ConnectionOptions
  /** Stops the server unless somebody else uses it. Close every other connection first. */
  leave: () => Promise<void>
}

type Options = { isService: boolean; onProgress: (sentence: string) => void }

const POLL_MS = 50
// PostgreSQL notices at once that a killed service is gone; on a loaded machine "at once" takes a moment.
const SERVICE_LOCK_PATIENCE_MS = 3_000
const START_PATIENCE_MS = 15_000
const PROGRESS_EVERY_MS = 5_000
const STOP_PATIENCE_MS = 5_000
// A server that does not answer such a question in this time is frozen; a stop must not freeze with it.
const BRIEFLY = { query_timeout: 1_000 }

export async function joinEmbeddedServer(
  dataDir: string,
  isService: boolean,
  onProgress: (sentence: string) => void,
): Promise<EmbeddedServer> {
  const options = { isService, onProgress }
  // They are meant for another server; the driver would follow them where it is told nothing else.
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
  // A server that was found running may have been started under another name of the same directory.
  cluster.socketDir = findPostmaster(cluster)?.socketDir || cluster.socketDir

  // When the server dies under a running service, it is started again; the pools reconnect by themselves.
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

/** Sees to it that the server runs, and takes the locks; returns the connection that holds them. */
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
      // Otherwise the server was being stopped by the last one to leave.
      if (!isUnavailable(error)) throw error
      await sleep(POLL_MS)
    }
  }
}

async function takeServiceLock(client: pg.Client, cluster: Cluster): Promise<void> {
  const giveUpAt = performance.now() + SERVICE_LOCK_PATIENCE_MS
  while (!(await tryLock(client, SERVICE))) {
    if (performance.now() > giveUpAt) {
      throw new OperatorError(
        `Another Herald service already runs on ${cluster.dir.replace(/\/postgres$/, '')}; stop it, or set HERALD_DATA_DIR.`,
      )
    }
    await sleep(POLL_MS)
  }
}

async function tryLock(client: pg.Client, lock: number): Promise<boolean> {
  const text = 'select pg_try_advisory_lock($1, $2) as taken'
  const { rows } = await client.query<{ taken: boolean }>({ text, values: [LOCK_SPACE, lock], ...BRIEFLY })
  return rows[0]?.taken === true
}

/** Connects to the server, starting it where none runs. Waits through a recovery or a shutdown for as long as they take. */
async function connect(cluster: Cluster, options: Options): Promise<pg.Client> {
  let nextProgressAt = performance.now() + PROGRESS_EVERY_MS
  let lastAnswerAt = performance.now()
  for (;;) {
    let postmaster = findPostmaster(cluster)
    if (postmaster === undefined) {
      postmaster = await oneAtATime(cluster, () => start(cluster))
      lastAnswerAt = performance.now()
    }
    const outcome = await tryConnect(postmaster)
    if (outcome instanceof pg.Client) return outcome
    if (outcome === 'busy') lastAnswerAt = performance.now()
    if (performance.now() > lastAnswerAt + START_PATIENCE_MS) {
      throw new OperatorError(
        `Process ${postmaster.pid} holds ${cluster.dir}, by the file postmaster.pid there, but no database answers: if it is none, remove that file.`,
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
 * Starts the server, or finds the one that another process has started meanwhile. One at a time does this. It fails, for a moment, where
 * backends of a killed server still let go of their memory, or where the one before us was killed while its PostgreSQL was starting.
 */
async function start(cluster: Cluster): Promise<Postmaster> {
  const giveUpAt = performance.now() + START_PATIENCE_MS
  for (;;) {
    const running = findPostmaster(cluster)
    if (running !== undefined) return running
    disownStaleLock(cluster)
    await untilListeningOrEnded(cluster, startPostmaster(cluster), giveUpAt)
    if (findPostmaster(cluster) !== undefined) continue
    if (performance.now() > giveUpAt) {
      throw new OperatorError(`PostgreSQL does not start: ${lastComplaint(cluster)} (see ${cluster.logFile})`)
    }
    await sleep(POLL_MS * 4)
  }
}

async function untilListeningOrEnded(cluster: Cluster, ended: Promise<unknown>, giveUpAt: number): Promise<void> {
  let isOver = false
  async function untilListening(): Promise<void> {
    while (!isOver && performance.now() < giveUpAt && !findPostmaster(cluster)?.socketDir) await sleep(POLL_MS / 2)
  }
  await Promise.race([ended, untilListening()])
  isOver = true
}

/** Busy: the server is there and starts up, recovers or shuts down. Absent: nobody listens, or nobody yet. */
async function tryConnect(postmaster: Postmaster): Promise<pg.Client | 'busy' | 'absent'> {
  // It has not written yet where it listens; without an address the driver would go to some other server.
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
    // Another process was quicker: it is there, or is being made.
    if (!['42P04', '23505', '55006'].includes((error as pg.DatabaseError).code ?? '')) throw error
  } finally {
    await client.end()
  }
}

async function open(options: ReturnType<typeof connectionTo>): Promise<pg.Client> {
  const client = new pg.Client({ ...options, application_name: 'herald presence', connectionTimeoutMillis: 2_000 })
  // Its end is what is acted on; an error without a listener would end the process.
  client.on('error', () => {})
  await client.connect()
  return client
}

/** Gives up the locks and, where nobody else is left, stops the server and waits until it is down. */
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
    // From the moment that we gave up our lock, another who leaves may find itself alone, and stop the server under us.
    if (!isUnavailable(error)) throw error
  }
}

/** A connection that holds no lock any more: ours or, where that broke and its locks went with it, another. Undefined where none is to be had. */
async function withoutPresence(presence: pg.Client, postmaster: Postmaster): Promise<pg.Client | undefined> {
  try {
    await presence.query({ text: 'select pg_advisory_unlock_shared($1, $2)', values: [LOCK_SPACE, PRESENT], ...BRIEFLY })
    return presence
  } catch {
    const outcome = await tryConnect(postmaster)
    return outcome instanceof pg.Client ? outcome : undefined
  }
}

async function stopServer(cluster: Cluster, pid: number): Promise<void> {
  // It may have died while we waited for our turn, and its id have gone to another.
  if (isPostmaster(cluster, pid)) await stopPostmaster(cluster, pid)
  removeSocketDirectory(cluster)
}

async function stopPostmaster(cluster: Cluster, pid: number): Promise<void> {
  const giveUpAt = performance.now() + STOP_PATIENCE_MS
  // "Fast": open transactions are rolled back, everything committed is on disk. "Immediate", should that take too long: no less safe,
  // the next start recovers from the log.
  signal(pid, 'SIGINT')
  while (isPostmaster(cluster, pid)) {
    if (performance.now() > giveUpAt) return signal(pid, 'SIGQUIT')
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
