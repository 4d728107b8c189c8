import { closeSync, fchownSync, fsyncSync, openSync, renameSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/** Makes a new or renamed directory entry survive a power cut. Syncing the file itself does not. */
export function syncDirectory(dir: string): void {
  // Windows can't sync a directory.
  if (process.platform === 'win32') return
  const fd = openSync(dir, 'r')
  fsyncSync(fd)
  closeSync(fd)
}

/** Writes a file that only its owner can read. The write is atomic, and the file is on the disk when this returns. */
export function writePrivateFile(path: string, text: string, owner?: { uid: number; gid: number }): void {
  const fd = openSync(`${path}.new`, 'w', 0o600)
  if (owner !== undefined) fchownSync(fd, owner.uid, owner.gid)
  writeSync(fd, text)
  fsyncSync(fd)
  closeSync(fd)
  renameSync(`${path}.new`, path)
  syncDirectory(dirname(path))
}

/**
 * Whether the mode of a file lets any user of the machine read or write it. The group may have access: with mode 0640, a service that is not
 * root can read a key that root renews. Returns false if the file can't be examined, since reading it fails too. Windows has no such modes.
 */
export function isReadableByOthers(path: string): boolean {
  if (process.platform === 'win32') return false
  try {
    return (statSync(path).mode & 0o006) !== 0
  } catch {
    return false
  }
}
