import { chownSync, closeSync, existsSync, openSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { OperatorError } from '../../errors.ts'
import type { Cluster } from './cluster.ts'

const POLL_MS = 25
// Starting and stopping give up after 15 s and 5 s, and making a database takes seconds; who holds the lock for longer is frozen.
const PATIENCE_MS = 60_000
const SQLITE_BUSY = 5
const SQLITE_READONLY = 8
const SQLITE_CANTOPEN = 14

/**
 * One at a time makes, starts or stops the server of a data directory. PostgreSQL's own lock file does not see to that: two that start at once
 * on the lock of a crashed server can remove each other's, and the one that is left runs without any.
 *
 * The lock is the kernel's, on a file, and ends with its holder, even by `kill -9`. Node has no call for such locks, but the SQLite
 * that it brings takes one for each exclusive transaction; nothing is ever written to that file.
 */
export async function oneAtATime<T>(cluster: Cluster, work: () => Promise<T>): Promise<T> {
  const lock = openLock(cluster)
  try {
    const giveUpAt = performance.now() + PATIENCE_MS
    while (!tryTake(lock)) {
      if (performance.now() > giveUpAt) {
        throw new OperatorError(
          `Another process has been making, starting or stopping PostgreSQL in ${cluster.dir} for over a minute; end that one.`,
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
  // Opened only where it is missing: a file that is opened and closed again takes this process's other locks on it along.
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
  // So that the owner of the data can go on with it when root was here.
  if (cluster.identity !== undefined) chownSync(path, cluster.identity.uid, cluster.identity.gid)
  try {
    return new DatabaseSync(path, { timeout: 0 })
  } catch (error) {
    throw explained(error, path)
  }
}

function tryTake(lock: DatabaseSync): boolean {
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
