import { spawn, spawnSync } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import {
  chownSync,
  closeSync,
  existsSync,
  fchownSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { OperatorError } from '../../errors.ts'
import { syncDirectory } from '../../files.ts'
import { locateBinaries } from './binaries.ts'
import { type Identity, unprivilegedIdentity } from './identity.ts'
import { oneAtATime } from './start-lock.ts'

/** A PostgreSQL data directory, and the paths and the user needed to run a server on it. */
export type Cluster = {
  dir: string
  binDir: string
  identity: Identity | undefined
  socketDir: string
  logFile: string
}

export type Postmaster = { pid: number; socketDir: string }

const LOG_FILE_MAX_BYTES = 10 * 1024 * 1024
// The path of a socket has at most 104 bytes on macOS and 108 on Linux, including the final NUL.
const SOCKET_PATH_MAX_BYTES = 103
const SCRATCH_PREFIX = '.initdb-'
const LOCK_FILE = 'postmaster.pid'
// No process can have this id: the highest id is 2^22 on Linux and 99,998 on macOS.
const NO_PID = 2 ** 22 + 1
const EMPTY_LOCK_STALE_MS = 5_000

/** Creates the data directory if there is none yet. If several processes do this at once, only one creates it. */
export async function prepareCluster(dataDir: string): Promise<Cluster> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const dir = join(dataDir, 'postgres')
  const identity = unprivilegedIdentity(dir)
  const cluster = {
    dir,
    identity,
    binDir: locateBinaries(dataDir, identity),
    socketDir: socketDirectory(dataDir, identity),
    logFile: join(dataDir, 'postgres.log'),
  }
  if (!hasCluster(dataDir)) await oneAtATime(cluster, async () => (hasCluster(dataDir) ? undefined : await initialise(cluster)))
  return cluster
}

export function hasCluster(dataDir: string): boolean {
  return existsSync(join(dataDir, 'postgres', 'PG_VERSION'))
}

/**
 * The directory of the socket: beside the data, unless that path is too long for a socket, has a character with a meaning in PostgreSQL's list
 * of directories, or can't be reached by PostgreSQL's own user.
 */
function socketDirectory(dataDir: string, identity: Identity | undefined): string {
  const beside = join(dataDir, 'run')
  const fits = Buffer.byteLength(join(beside, '.s.PGSQL.5432')) <= SOCKET_PATH_MAX_BYTES
  if (identity === undefined && fits && /^[A-Za-z0-9/._-]+$/.test(beside)) return beside
  const name = `herald-${createHash('sha256').update(realpathSync(dataDir)).digest('hex').slice(0, 16)}`
  // Any user can create a directory under /tmp, so prepareSocketDirectory checks its owner. Under /run only root can.
  return join(identity !== undefined && existsSync('/run') ? '/run' : '/tmp', name)
}

function prepareSocketDirectory({ socketDir, identity }: Cluster): void {
  mkdirSync(socketDir, { recursive: true, mode: 0o700 })
  const found = lstatSync(socketDir)
  if (!found.isDirectory() || (found.uid !== process.getuid?.() && found.uid !== identity?.uid)) {
    throw new OperatorError(`${socketDir} belongs to another user; remove it, so that the database can create its socket there.`)
  }
  if (identity !== undefined) chownSync(socketDir, identity.uid, identity.gid)
}

/** Creates the data directory under another name and renames it when it is complete, so that a killed start leaves no partial one. */
async function initialise(cluster: Cluster): Promise<void> {
  removeAbandoned(cluster)
  const scratch = join(dirname(cluster.dir), `${SCRATCH_PREFIX}${randomUUID()}`)
  mkdirSync(scratch, { mode: 0o700 })
  if (cluster.identity !== undefined) chownSync(scratch, cluster.identity.uid, cluster.identity.gid)
  // The server has no network port, and only the owner can enter the directory of its socket, so local connections need no password.
  const owner = ['--username=herald', '--encoding=UTF8', '--locale=C', '--auth-local=trust', '--auth-host=reject', '--no-instructions']
  // These go into postgresql.conf, where an operator may change them. After a checkpoint, the first change of each page writes the whole page to
  // the WAL. For indexes on phone numbers or keys that is nearly every change, so checkpoints should be rare.
  const options = [...owner, '--set', `shared_buffers=${sharedBuffers()}`, '--set', 'max_wal_size=4GB']
  try {
    const { child, ended } = launch(cluster, 'initdb', scratch, options, 'pipe')
    let output = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      output += chunk.toString('utf8')
    })
    if ((await ended) !== 0) {
      const [reason, ...rest] = output.trim().split('\n')
      throw new OperatorError(`The database could not be created in ${cluster.dir}: ${reason}`, ...rest)
    }
    renameSync(scratch, cluster.dir)
    syncDirectory(dirname(cluster.dir))
  } catch (error) {
    rmSync(scratch, { recursive: true, force: true })
    throw error
  }
}

/** Removes the directories that killed starts left behind. No start takes ten minutes, so an older directory is unused. */
function removeAbandoned(cluster: Cluster): void {
  for (const name of readdirSync(dirname(cluster.dir)).filter((entry) => entry.startsWith(SCRATCH_PREFIX))) {
    const path = join(dirname(cluster.dir), name)
    if (Date.now() - statSync(path).mtimeMs > 600_000) rmSync(path, { recursive: true, force: true })
  }
}

/** Starts a server and returns at once; the promise resolves when the server ends. The server outlives this process. */
export function startPostmaster(cluster: Cluster): Promise<number | null> {
  prepareSocketDirectory(cluster)
  if ((statSync(cluster.logFile, { throwIfNoEntry: false })?.size ?? 0) > LOG_FILE_MAX_BYTES) {
    renameSync(cluster.logFile, `${cluster.logFile}.1`)
  }
  const settings = {
    listen_addresses: '',
    unix_socket_directories: cluster.socketDir,
    unix_socket_permissions: '0700',
    port: '5432',
    cluster_name: 'herald',
    timezone: 'UTC',
    // Everything that the API accepted with a 202 must be on the disk.
    fsync: 'on',
    full_page_writes: 'on',
    synchronous_commit: 'on',
    jit: 'off',
    // PostgreSQL's own log never holds a statement or a value of a row: they may be message texts or phone numbers. Errors of statements
    // quote values, so only the service reports them: for log_min_messages, "log" is above "error".
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
    log_parameter_max_length_on_error: '0',
    log_checkpoints: 'off',
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return launch(cluster, 'postgres', cluster.dir, options, cluster.logFile).ended
}

const MIB = 2 ** 20

/** An eighth of the memory of this machine or its container, from 128 MB (PostgreSQL's default) to 2 GB. It is allocated as needed. */
function sharedBuffers(): string {
  const available = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)
  return `${Math.min(Math.max(Math.floor(available / 8 / MIB), 128), 2_048)}MB`
}

/**
 * Runs one of PostgreSQL's programs on a data directory. As root on Linux it passes the directory as an open descriptor: the path may lead
 * through /root or a private temporary directory, which the unprivileged user can't enter.
 */
function launch(cluster: Cluster, program: string, dir: string, options: string[], output: string) {
  const byDescriptor = cluster.identity !== undefined && process.platform === 'linux'
  const dirFd = openSync(dir, 'r')
  const log = output === 'pipe' ? output : openSync(output, 'a', 0o600)
  // The owner of the data must be able to write it after root has run Herald once.
  if (typeof log === 'number' && cluster.identity !== undefined) fchownSync(log, cluster.identity.uid, cluster.identity.gid)
  try {
    const child = spawn(join(cluster.binDir, program), ['-D', byDescriptor ? '/proc/self/fd/3' : dir, ...options], {
      ...cluster.identity,
      cwd: '/',
      // In a session of its own, so that Ctrl-C in the terminal reaches only the service, which then stops the database cleanly.
      detached: true,
      stdio: ['ignore', log === 'pipe' ? 'ignore' : log, log, dirFd],
      env: { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' },
    })
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once('exit', resolve)
      child.once('error', reject)
    })
    if (output !== 'pipe') child.unref()
    return { child, ended }
  } finally {
    closeSync(dirFd)
    if (typeof log === 'number') closeSync(log)
  }
}

/** Returns the process that PostgreSQL's own lock file names; undefined if there is no such file or no such process. */
export function findPostmaster(cluster: Cluster): Postmaster | undefined {
  const lock = readLockFile(cluster)
  if (lock === undefined) return undefined
  const [pid, , , , socketDir = ''] = lock.split('\n')
  return isPostmaster(cluster, Number(pid)) ? { pid: Number(pid), socketDir } : undefined
}

/**
 * Replaces the process id in a stale lock file. After a crash or a restart of the machine, another program may have that id, and PostgreSQL would
 * refuse to start. The rest of the file shows PostgreSQL whether old backends are still alive, so this keeps it. If no process has the id,
 * PostgreSQL handles the file itself.
 *
 * This writes to the same open file that it checked. PostgreSQL always creates a new file, so a server that starts at this moment (because its
 * starter was killed) never loses its own. An empty file belongs to a starting server for 5 s; after that it is left over from a crash.
 */
export function disownStaleLock(cluster: Cluster): void {
  const fd = openIfThere(join(cluster.dir, LOCK_FILE), 'r+')
  if (fd === undefined) return
  try {
    const lock = readFileSync(fd, 'utf8')
    const pid = Number(lock.split('\n')[0])
    const isStale = lock === '' ? Date.now() - fstatSync(fd).mtimeMs > EMPTY_LOCK_STALE_MS : isAlive(pid) && !isPostmaster(cluster, pid)
    // NO_PID is never shorter than the id it replaces, so one write is enough.
    if (isStale) writeSync(fd, lock.replace(/^.*/, String(NO_PID)), 0)
  } finally {
    closeSync(fd)
  }
}

function readLockFile(cluster: Cluster): string | undefined {
  const fd = openIfThere(join(cluster.dir, LOCK_FILE), 'r')
  if (fd === undefined) return undefined
  try {
    return readFileSync(fd, 'utf8')
  } finally {
    closeSync(fd)
  }
}

function openIfThere(path: string, flags: 'r' | 'r+'): number | undefined {
  try {
    return openSync(path, flags)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * Whether a process is the PostgreSQL server of this directory. The system reuses ids, also for other PostgreSQL servers. A process that can't be
 * examined counts as the server, such as another user's process in a container where root lacks some capabilities: a wrong "no" would take the
 * lock away from a live server.
 */
export function isPostmaster({ dir }: Cluster, pid: number): boolean {
  if (!(pid > 0) || !isAlive(pid)) return false
  if (process.platform !== 'linux') {
    return spawnSync('ps', ['-o', 'comm=', '-p', String(pid)])
      .stdout.toString('utf8')
      .includes('postgres')
  }
  try {
    const [, name, state] = /\((.*)\) (\S)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? []
    // A zombie is dead. In a container whose first process does not reap its children, it stays forever.
    if (name !== 'postgres' || state === 'Z' || state === 'X') return false
    const [own, its] = [statSync(dir), statSync(`/proc/${pid}/cwd`)]
    return own.dev === its.dev && own.ino === its.ino
  } catch (error) {
    return ['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')
  }
}

/** Removes the empty directory of the socket, so that none stays behind under /run or /tmp. */
export function removeSocketDirectory({ socketDir }: Cluster): void {
  try {
    rmdirSync(socketDir)
  } catch {
    // The directory is in use again, or has been removed.
  }
}

/** The last error in PostgreSQL's log, for an error message to the operator. */
export function lastLoggedError(cluster: Cluster): string {
  const lines = existsSync(cluster.logFile) ? readFileSync(cluster.logFile, 'utf8').split('\n') : []
  const error = lines.findLast((line) => /FATAL|PANIC|ERROR|could not|cannot/.test(line)) ?? 'it logged no reason'
  return error.replace(/^.*(FATAL|PANIC|ERROR):\s*/, '')
}
