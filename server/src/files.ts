import { closeSync, fchownSync, fsyncSync, openSync, renameSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/** Makes a new or renamed entry of a directory outlast a power cut; the file's own sync does not. */
export function syncDirectory(dir: string): void {
  // Windows can't sync a directory.
  if (process.platform === 'win32') return
  const fd = openSync(dir, 'r')
  fsyncSync(fd)
  closeSync(fd)
}

/** A file for its owner's eyes, whole or not there at all, and on the disk when this returns. */
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
 * Whether the mode of a file lets any user of the machine read or write it. Its group may: a key at 0640 is how a service that is not root
 * gets at a certificate that root renews. False where the file can't be examined: its reader reports that. Windows has no such modes.
 */
export function isReadableByOthers(path: string): boolean {
  if (process.platform === 'win32') return false
  try {
    return (statSync(path).mode & 0o006) !== 0
  } catch {
    return false
  }
}
