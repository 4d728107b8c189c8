import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { locateBinaries } from '../../src/db/embedded/binaries.ts'
import { unprivilegedIdentity } from '../../src/db/embedded/identity.ts'
import { until } from './until.ts'

// The data need not outlive the run, so PostgreSQL does not wait for the disk. On a busy disk that saves a third of the time.
const SETTINGS = { fsync: 'off', full_page_writes: 'off', listen_addresses: '', timezone: 'UTC', jit: 'off', max_connections: '300' }

// A database is 600 files, created and removed a hundred times. In memory that takes 25 s less CPU, and at most 160 MB.
const MEMORY = '/dev/shm'
const ROOM_BYTES = 2 * 2 ** 30

function hasRoom(path: string): boolean {
  if (!existsSync(path)) return false
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize >= ROOM_BYTES
}

/** Starts the PostgreSQL that comes with Herald, for this run alone. Tests of processes start it as Herald does. */
export async function startPostgres(): Promise<{ url: string; stop: () => Promise<void> }> {
  const dir = mkdtempSync(join(hasRoom(MEMORY) ? MEMORY : tmpdir(), 'herald-test-'))
  const dataDir = join(dir, 'postgres')
  const identity = unprivilegedIdentity(dataDir)
  if (identity !== undefined) chownSync(dir, identity.uid, identity.gid)
  const binDir = locateBinaries(dir, identity)
  const as = { ...identity, cwd: '/', env: { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' } }
  const initdb = ['-D', dataDir, '--no-sync', '--username=herald', '--encoding=UTF8', '--locale=C', '--auth=trust']
  await promisify(execFile)(join(binDir, 'initdb'), initdb, as)
  const options = Object.entries({ ...SETTINGS, unix_socket_directories: dir }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  // A session of its own: Ctrl-C in the terminal ends the tests, which then end their database.
  const server = spawn(join(binDir, 'postgres'), ['-D', dataDir, ...options], { ...as, stdio: 'ignore', detached: true })
  const ended = once(server, 'exit')
  const url = `postgres://herald@localhost/postgres?host=${encodeURIComponent(dir)}`
  await until('PostgreSQL lets us in', () => canConnect(url))
  return {
    url,
    stop: async () => {
      server.kill('SIGQUIT')
      await ended
      rmSync(dir, { recursive: true })
    },
  }
}

async function canConnect(url: string): Promise<boolean> {
  const client = new pg.Client(url)
  return await client.connect().then(
    () => client.end().then(() => true),
    () => false,
  )
}
