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

// Its data need not outlive the run, so it never waits for the disk: on a busy one that is a third of the time that the tests take.
const SETTINGS = { fsync: 'off', full_page_writes: 'off', listen_addresses: '', timezone: 'UTC', jit: 'off', max_connections: '300' }

// A database is 600 files, made and removed a hundred times: in memory that takes 25 s less of a core. They were 160 MB at most, at once.
const MEMORY = '/dev/shm'
const ROOM_BYTES = 2 * 2 ** 30

function hasRoom(path: string): boolean {
  if (!existsSync(path)) return false
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize >= ROOM_BYTES
}

/** A PostgreSQL for this run alone; the one that comes with Herald, but not started as Herald does, which the tests of processes are about. */
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
