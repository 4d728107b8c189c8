import { closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/** Makes a new or renamed entry of a directory outlast a power cut; the file's own sync does not. */
export function syncDirectory(dir: string): void {
  const fd = openSync(dir, 'r')
  fsyncSync(fd)
  closeSync(fd)
}

/** A file for its owner's eyes, whole or not there at all, and on the disk when this returns. */
export function writePrivateFile(path: string, text: string): void {
  const fd = openSync(`${path}.new`, 'w', 0o600)
  writeSync(fd, text)
  fsyncSync(fd)
  closeSync(fd)
  renameSync(`${path}.new`, path)
  syncDirectory(dirname(path))
}
