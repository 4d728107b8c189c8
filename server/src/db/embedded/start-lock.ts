import { chownSync, closeSync, existsSync, openSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { OperatorError } from '../../errors.ts'
import type { Cluster } from './cluster.ts'

const POLL_MS = 25
// A start times out after 15 s and a stop after 5 s, and creating a database takes seconds. A process that holds the lock for longer is frozen.
const TIMEOUT_MS = 60_000
const SQLITE_BUSY = 5
const SQLITE_READONLY = 8
const SQLITE_CANTOPEN = 14

/**
 * Ensures that only one process at a time creates, starts or stops the server of a data directory. PostgreSQL's own lock file does not: if two
 * servers start at once on the lock file of a crashed server, they can remove each other's file, and one server then runs without a lock.
 *
 * The lock is a kernel lock on a file and ends with its holder, even by `kill -9`. Node has no call for such locks, but its built-in SQLite
 * takes one for each exclusive transaction. Nothing is ever written to that file.
 */
export async function oneAtATime<T>(cluster: Cluster, work: () => Promise<T>): Promise<T> {
  const lock = openLock(cluster)
  try {
    const deadline = performance.now() + TIMEOUT_MS
    while (!tryLock(lock)) {
      if (performance.now() > deadline) {
        throw new OperatorError(
          `Another process has been creating, starting or stopping PostgreSQL in ${cluster.dir} for over a minute; end that process.`,
        )
      }
      await sleep(POLL_MS)
    }
    return await work()
  } finally {
    lock.close()
  }
}

function openLock(cluster: Cluster): DatabaseSync {
  const path = join(dirname(cluster.dir), 'start.lock')
  // Create the file only if it is missing: closing it would release this process's other locks on it.
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
  // The owner of the data must be able to use it after root has run Herald once.
  if (cluster.identity !== undefined) chownSync(path, cluster.identity.uid, cluster.identity.gid)
  try {
    return new DatabaseSync(path, { timeout: 0 })
  } catch (error) {
    throw explained(error, path)
  }
}

function tryLock(lock: DatabaseSync): boolean {
  try {
    lock.exec('pragma journal_mode = memory; begin exclusive')
    return true
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return false
    throw explained(error, lock.location() ?? 'start.lock')
  }
}

function explained(error: unknown, path: string): unknown {
  const isForeign = [SQLITE_READONLY, SQLITE_CANTOPEN].includes((error as { errcode?: number }).errcode ?? 0)
  return isForeign ? new OperatorError(`${path} belongs to another user; run this as the user who started Herald there.`) : error
}
