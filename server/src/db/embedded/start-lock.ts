import { closeSync, existsSync, fchownSync, openSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { OperatorError } from '../../errors.ts'
import type { Cluster } from './cluster.ts'

const POLL_MS = 25
// Starting and stopping give up after 15 s and 5 s; who holds the lock for longer is frozen.
const PATIENCE_MS = 60_000
const SQLITE_BUSY = 5

/**
 * One at a time starts or stops the server of a data directory. PostgreSQL's own lock file does not see to that: two that start at once
 * on the lock of a crashed server can remove each other's, and the one that is left runs without any.
 *
 * The lock is the kernel's, on a file, and ends with its holder, even by `kill -9`. Node has no call for such locks, but the SQLite
 * that it brings takes one for each exclusive transaction; nothing is ever written to that file.
 */
export async function oneAtATime<T>(cluster: Cluster, work: () => Promise<T>): Promise<T> {
  const lock = new DatabaseSync(lockFile(cluster), { timeout: 0 })
  try {
    const giveUpAt = performance.now() + PATIENCE_MS
    while (!tryTake(lock)) {
      if (performance.now() > giveUpAt) {
        throw new OperatorError(
          `Another process has been starting or stopping PostgreSQL in ${cluster.dir} for over a minute; end that one.`,
        )
      }
      await sleep(POLL_MS)
    }
    return await work()
  } finally {
    lock.close()
  }
}

function tryTake(lock: DatabaseSync): boolean {
  try {
    lock.exec('pragma journal_mode = memory; begin exclusive')
    return true
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return false
    throw error
  }
}

function lockFile({ dir, identity }: Cluster): string {
  const path = join(dirname(dir), 'start.lock')
  // Only where it is missing: a file that is opened and closed again takes this process's other locks on it along.
  if (!existsSync(path)) {
    const fd = openSync(path, 'a', 0o600)
    // So that the owner of the data can go on with it when root was here.
    if (identity !== undefined) fchownSync(fd, identity.uid, identity.gid)
    closeSync(fd)
  }
  return path
}
