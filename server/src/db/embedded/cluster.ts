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

/** A PostgreSQL data directory, and what is needed to run a server on it. */
export type Cluster = {
  dir: string
  binDir: string
  identity: Identity | undefined
  socketDir: string
  logFile: string
}

export type Postmaster = { pid: number; socketDir: string }

const LOG_FILE_MAX_BYTES = 10 * 1024 * 1024
// A socket's address holds 104 bytes on macOS, 108 on Linux, the final NUL included.
const SOCKET_PATH_MAX_BYTES = 103
const SCRATCH_PREFIX = '.initdb-'
const LOCK_FILE = 'postmaster.pid'
// No process has it: Linux counts to 2^22, macOS to 99,998.
const NO_PID = 2 ** 22 + 1
const EMPTY_LOCK_STALE_MS = 5_000

/** Makes the data directory where there is none yet; of several processes that would at once, one does. */
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
  const isMade = () => existsSync(join(dir, 'PG_VERSION'))
  if (!isMade()) await oneAtATime(cluster, async () => (isMade() ? undefined : await initialise(cluster)))
  return cluster
}

/**
 * Beside the data where that works for every process that looks for it; elsewhere where the path is too long for a socket, has a
 * character that PostgreSQL's list of directories gives a meaning, or can't be reached by PostgreSQL's own user.
 */
function socketDirectory(dataDir: string, identity: Identity | undefined): string {
  const beside = join(dataDir, 'run')
  const fits = Buffer.byteLength(join(beside, '.s.PGSQL.5432')) <= SOCKET_PATH_MAX_BYTES
  if (identity === undefined && fits && /^[A-Za-z0-9/._-]+$/.test(beside)) return beside
  const name = `herald-${createHash('sha256').update(realpathSync(dataDir)).digest('hex').slice(0, 16)}`
  // Under /tmp anybody may make a directory, which prepareSocketDirectory then refuses; under /run only root may.
  return join(identity !== undefined && existsSync('/run') ? '/run' : '/tmp', name)
}

function prepareSocketDirectory({ socketDir, identity }: Cluster): void {
  mkdirSync(socketDir, { recursive: true, mode: 0o700 })
  const found = lstatSync(socketDir)
  if (!found.isDirectory() || (found.uid !== process.getuid?.() && found.uid !== identity?.uid)) {
    throw new OperatorError(`${socketDir} belongs to somebody else; remove it, so that the database can put its socket there.`)
  }
  if (identity !== undefined) chownSync(socketDir, identity.uid, identity.gid)
}

/** Builds the data directory under another name and renames it when it is whole: a kill in the middle leaves no half of one. */
async function initialise(cluster: Cluster): Promise<void> {
  removeAbandoned(cluster)
  const scratch = join(dirname(cluster.dir), `${SCRATCH_PREFIX}${randomUUID()}`)
  mkdirSync(scratch, { mode: 0o700 })
  if (cluster.identity !== undefined) chownSync(scratch, cluster.identity.uid, cluster.identity.gid)
  // No network, and a socket in a directory that only its owner enters: whoever reaches it may come in.
  const owner = ['--username=herald', '--encoding=UTF8', '--locale=C', '--auth-local=trust', '--auth-host=reject', '--no-instructions']
  // Into postgresql.conf, where an operator may change them. After a checkpoint, the first change of each page is logged with the whole
  // page: of indexes by number or by key that is nearly every change, so there should be few.
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

/** What killed starts have left. None takes ten minutes, so what is older belongs to nobody. */
function removeAbandoned(cluster: Cluster): void {
  for (const name of readdirSync(dirname(cluster.dir)).filter((entry) => entry.startsWith(SCRATCH_PREFIX))) {
    const path = join(dirname(cluster.dir), name)
    if (Date.now() - statSync(path).mtimeMs > 600_000) rmSync(path, { recursive: true, force: true })
  }
}

/** Starts a server and returns at once; the promise is kept when it ends. It runs on when this process dies. */
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
    // What was answered 202 is on the disk.
    fsync: 'on',
    full_page_writes: 'on',
    synchronous_commit: 'on',
    jit: 'off',
    // PostgreSQL's own log never holds a statement or a value of a row: they may be message texts or numbers.
    // Errors of statements quote values, so they are left to the service that gets them; "log" is above "error" here.
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

/** An eighth of the memory that this machine, or its container, has; 128 MB is PostgreSQL's own choice. It is taken as it is needed. */
function sharedBuffers(): string {
  const available = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)
  return `${Math.min(Math.max(Math.floor(available / 8 / MIB), 128), 2_048)}MB`
}

/**
 * Runs one of PostgreSQL's programs on a data directory. As root on Linux the directory is handed over open, as a descriptor: the
 * unprivileged user need not be able to walk the path to it, which may lead through /root or a private temporary directory.
 */
function launch(cluster: Cluster, program: string, dir: string, options: string[], output: string) {
  const byDescriptor = cluster.identity !== undefined && process.platform === 'linux'
  const dirFd = openSync(dir, 'r')
  const log = output === 'pipe' ? output : openSync(output, 'a', 0o600)
  // So that the owner of the data can go on with it when root was here.
  if (typeof log === 'number' && cluster.identity !== undefined) fchownSync(log, cluster.identity.uid, cluster.identity.gid)
  try {
    const child = spawn(join(cluster.binDir, program), ['-D', byDescriptor ? '/proc/self/fd/3' : dir, ...options], {
      ...cluster.identity,
      cwd: '/',
      // A session of its own: Ctrl-C in the terminal reaches the service alone, which then stops the database in order.
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

/** Who holds the data directory, by PostgreSQL's own lock file; undefined where nobody does or the holder is dead. */
export function findPostmaster(cluster: Cluster): Postmaster | undefined {
  const lock = readLockFile(cluster)
  if (lock === undefined) return undefined
  const [pid, , , , socketDir = ''] = lock.split('\n')
  return isPostmaster(cluster, Number(pid)) ? { pid: Number(pid), socketDir } : undefined
}

/**
 * After a crash or a restart of the machine, the process id in the lock file may have gone to another program, and PostgreSQL would
 * refuse to start. The id is replaced and the rest kept: it lets PostgreSQL see whether old backends still live. Where the process is
 * dead PostgreSQL helps itself, and the file is left alone.
 *
 * What is written goes to the very file that was judged: PostgreSQL always makes a new one, so a server that starts at this moment
 * (one whose starter was killed) never loses its own. A file still empty is its maker's for a while, and then a crash's remnant.
 */
export function disownStaleLock(cluster: Cluster): void {
  const fd = openIfThere(join(cluster.dir, LOCK_FILE), 'r+')
  if (fd === undefined) return
  try {
    const lock = readFileSync(fd, 'utf8')
    const pid = Number(lock.split('\n')[0])
    const isStale = lock === '' ? Date.now() - fstatSync(fd).mtimeMs > EMPTY_LOCK_STALE_MS : isAlive(pid) && !isPostmaster(cluster, pid)
    // Never shorter than what it replaces, so that one write does it.
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
 * Is it a PostgreSQL, and of this directory? Ids are handed out again, and to other PostgreSQL servers too. What may not be looked into
 * (another user's process, for root without all its capabilities, as in a container) is taken for ours: a wrong "no" would have a live
 * server's lock taken away.
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
    // A zombie is dead; in a container whose first process reaps nobody it stays for ever.
    if (name !== 'postgres' || state === 'Z' || state === 'X') return false
    const [own, its] = [statSync(dir), statSync(`/proc/${pid}/cwd`)]
    return own.dev === its.dev && own.ino === its.ino
  } catch (error) {
    return ['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')
  }
}

/** Leaves no empty directory behind where the socket did not live beside the data. */
export function removeSocketDirectory({ socketDir }: Cluster): void {
  try {
    rmdirSync(socketDir)
  } catch {
    // In use again, or gone.
  }
}

/** The last complaint in PostgreSQL's log, for a sentence to the operator. */
export function lastComplaint(cluster: Cluster): string {
  const lines = existsSync(cluster.logFile) ? readFileSync(cluster.logFile, 'utf8').split('\n') : []
  const complaint = lines.findLast((line) => /FATAL|PANIC|ERROR|could not|cannot/.test(line)) ?? 'it gave no reason'
  return complaint.replace(/^.*(FATAL|PANIC|ERROR):\s*/, '')
}
