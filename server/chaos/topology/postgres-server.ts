import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { type Identity, unprivilegedIdentity } from '../../src/db/embedded/identity.ts'
import { isRunning } from '../../test/support/process.ts'
import { until } from '../../test/support/until.ts'
import type { Cleanup } from '../support/cleanup.ts'
import { canConnect } from './database.ts'
import { childrenOf, signal } from './signals.ts'

// One PostgreSQL server as Debian installs it: with PostgreSQL's own durable settings, on a Unix socket.

export const USER = 'herald'
export const DATABASE = 'herald'

/** Where a server has its files and its socket. */
export type Place = { binDir: string; dir: string; identity: Identity | undefined; cleanup: Cleanup }
export type PostgresServer = { place: Place; process: ChildProcess; ended: Promise<unknown> }

// A standby looks for its primary again after this time instead of 5 s.
const SOONER = { wal_retrieve_retry_interval: '500ms' }
const TIMEOUT_MS = 60_000

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

/** A copy of a running server, which becomes its standby. */
export async function makeCopy(place: Place, of: Place): Promise<void> {
  const from = ['-h', of.dir, '-U', USER, '-D', dataDirOf(place)]
  await run(place, 'pg_basebackup', ...from, '--checkpoint=fast', '--wal-method=stream', '--no-sync')
  const standbySignal = join(dataDirOf(place), 'standby.signal')
  writeFileSync(standbySignal, '')
  if (place.identity !== undefined) chownSync(standbySignal, place.identity.uid, place.identity.gid)
}

/** `primary`: the server that it follows, under this name. */
export async function startServer(place: Place, primary?: { place: Place; as: string }): Promise<PostgresServer> {
  const { binDir, dir, identity } = place
  const settings: Record<string, string> = { listen_addresses: '', unix_socket_directories: dir, timezone: 'UTC', ...SOONER }
  if (primary !== undefined) settings.primary_conninfo = `host=${primary.place.dir} user=${USER} application_name=${primary.as}`
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const log = openSync(logFileOf(place), 'a')
  // In a session of its own, so that Ctrl-C in the terminal reaches only this program, which then ends its servers.
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
  await until('PostgreSQL lets us in', () => canConnect(urlOf(place, 'postgres')), TIMEOUT_MS)
  return started
}

export function urlOf({ dir }: Place, database = DATABASE): string {
  return `postgres://${USER}@localhost/${database}?host=${encodeURIComponent(dir)}`
}

/** Asks this server, whether it is the primary or not. */
export async function ask(place: Place, statement: string, database = DATABASE): Promise<any[]> {
  const client = new pg.Client(urlOf(place, database))
  // If the connection breaks, its statement fails too.
  client.on('error', () => {})
  await client.connect()
  try {
    const { rows } = await client.query(statement)
    return rows
  } finally {
    await client.end()
  }
}

/** SIGKILL of the postmaster alone, as the kernel does when memory is short: the other processes notice, and end. */
export async function killPostmaster(server: PostgresServer): Promise<void> {
  server.process.kill('SIGKILL')
  await server.ended
}

/** All processes at once, as a machine that loses its power. */
export async function kill({ process: { pid, exitCode, signalCode }, ended }: PostgresServer): Promise<void> {
  if (exitCode !== null || signalCode !== null) return
  const all = [pid as number, ...childrenOf(pid)]
  signal(all, 'SIGKILL')
  await ended
  // Until they are gone they hold its memory, and it could not start again.
  await until('all processes of the server are gone', () => !all.some(isRunning), TIMEOUT_MS)
}
