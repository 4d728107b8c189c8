import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, closeSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { type Identity, unprivilegedIdentity } from '../../src/db/embedded/identity.ts'
import { isRunning } from '../../test/support/process.ts'
import { until } from '../../test/support/until.ts'
import type { Cleanup } from '../cleanup.ts'

// One PostgreSQL server, as it is installed: durable settings, which are PostgreSQL's own, on a Unix socket.

export const USER = 'herald'
export const DATABASE = 'herald'

/** Where a server has its files and its socket. */
export type Place = { binDir: string; dir: string; identity: Identity | undefined; cleanup: Cleanup }

/** How long a standby waits before it looks for its primary again; 5 s otherwise. */
const SOONER = { wal_retrieve_retry_interval: '500ms' }

export type PostgresServer = {
  place: Place
  process: ChildProcess
  ended: Promise<unknown>
}

export function placeAt(binDir: string, dir: string, cleanup: Cleanup): Place {
  const identity = unprivilegedIdentity(dir)
  mkdirSync(dir, { recursive: true })
  if (identity !== undefined) chownSync(dir, identity.uid, identity.gid)
  return { binDir, dir, identity, cleanup }
}

const dataDirOf = ({ dir }: Place) => join(dir, 'data')
/** One for all servers of a run. */
export const logFileOf = ({ dir }: Place) => join(dirname(dir), 'postgres.log')

async function run({ binDir, identity }: Place, program: string, ...args: string[]): Promise<void> {
  const env = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }
  await promisify(execFile)(join(binDir, program), args, { ...identity, cwd: '/', env })
}

export async function makeEmpty(place: Place): Promise<void> {
  await run(place, 'initdb', '-D', dataDirOf(place), `--username=${USER}`, '--encoding=UTF8', '--locale=C', '--auth=trust', '--no-sync')
}

/** A copy of a server that goes on meanwhile; started with the conninfo of a primary, it follows that. */
export async function makeCopy(place: Place, of: Place): Promise<void> {
  const from = ['-h', of.dir, '-U', USER, '-D', dataDirOf(place)]
  await run(place, 'pg_basebackup', ...from, '--checkpoint=fast', '--wal-method=stream', '--no-sync')
  const isStandby = join(dataDirOf(place), 'standby.signal')
  writeFileSync(isStandby, '')
  if (place.identity !== undefined) chownSync(isStandby, place.identity.uid, place.identity.gid)
}

/** `primary`: whom it follows, under this name. */
export async function startServer(place: Place, primary?: { place: Place; as: string }): Promise<PostgresServer> {
  const { binDir, dir, identity } = place
  const settings: Record<string, string> = { listen_addresses: '', unix_socket_directories: dir, timezone: 'UTC', ...SOONER }
  if (primary !== undefined) settings.primary_conninfo = `host=${primary.place.dir} user=${USER} application_name=${primary.as}`
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const log = openSync(logFileOf(place), 'a')
  // A session of its own: Ctrl-C in the terminal ends the program, which then ends its servers.
  const server = spawn(join(binDir, 'postgres'), ['-D', dataDirOf(place), ...options], {
    ...identity,
    cwd: '/',
    env: { PATH: process.env.PATH, LC_ALL: 'C' },
    stdio: ['ignore', log, log],
    detached: true,
  })
  closeSync(log)
  const started = { place, process: server, ended: once(server, 'exit') }
  place.cleanup.push(() => kill(started))
  await until('PostgreSQL lets us in', () => canConnect(place), 60_000)
  return started
}

export function urlOf({ dir }: Place, database = DATABASE): string {
  return `postgres://${USER}@localhost/${database}?host=${encodeURIComponent(dir)}`
}

export function connectTo({ dir }: Place): Socket {
  return connect(join(dir, '.s.PGSQL.5432'))
}

/** Straight from this server, whether it is the primary or not. */
export async function ask(place: Place, statement: string, database = DATABASE): Promise<any[]> {
  const client = new pg.Client(urlOf(place, database))
  // One that breaks fails its statement, too.
  client.on('error', () => {})
  await client.connect()
  try {
    const { rows } = await client.query(statement)
    return rows
  } finally {
    await client.end()
  }
}

async function canConnect(place: Place): Promise<boolean> {
  return await ask(place, 'select 1', 'postgres').then(
    () => true,
    () => false,
  )
}

/** The postmaster and all that it has started. */
function processesOf({ process: { pid } }: PostgresServer): number[] {
  const parentOf = (child: string) => {
    try {
      return Number(/^\d+ \(.*\) \S (\d+)/s.exec(readFileSync(`/proc/${child}/stat`, 'utf8'))?.[1])
    } catch {
      return undefined
    }
  }
  const children = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && parentOf(name) === pid)
  return [pid as number, ...children.map(Number)]
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** All of it stands still, and nobody is told: a machine that hangs. */
export function freeze(server: PostgresServer): void {
  // The postmaster first: it starts no others then.
  signal(server.process.pid as number, 'SIGSTOP')
  for (const pid of processesOf(server)) signal(pid, 'SIGSTOP')
}

export function thaw(server: PostgresServer): void {
  for (const pid of processesOf(server)) signal(pid, 'SIGCONT')
}

const hasEnded = ({ process: { exitCode, signalCode } }: PostgresServer) => exitCode !== null || signalCode !== null

/** SIGKILL of the postmaster alone, as the kernel does where memory is short: the others notice, and end. */
export async function killPostmaster(server: PostgresServer): Promise<void> {
  server.process.kill('SIGKILL')
  await server.ended
}

/** All of it at once, as a machine that loses its power. */
export async function kill(server: PostgresServer): Promise<void> {
  if (hasEnded(server)) return
  const all = processesOf(server)
  for (const pid of all) signal(pid, 'SIGKILL')
  await server.ended
  // Until then they hold its memory, and it could not start again.
  await until('all its processes are gone', () => !all.some(isRunning))
}
