import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newKeyLine } from '../../server/src/encryption/key-file.ts'
import { type Keyring, loadKeyring } from '../../server/src/encryption/keyring.ts'
import { writePrivateFile } from '../../server/src/files.ts'
import { atEnd } from './clean-up.ts'

/** Removed with its content at the end of the part, unless the caller removes it before. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'herald-bench-'))
  void atEnd(() => remove(directory))
  return directory
}

export function remove(directory: string): void {
  rmSync(directory, { recursive: true, force: true })
}

let keyFile: string | undefined

/** One encryption key for all processes of a part, which may share a database. Each part has its own. */
export function benchKeyFile(): string {
  if (keyFile === undefined || !existsSync(keyFile)) {
    keyFile = join(temporaryDirectory(), 'encryption.key')
    writePrivateFile(keyFile, `${newKeyLine()}\n`)
  }
  return keyFile
}

export function benchKeyring(): Keyring {
  return loadKeyring({ databaseUrl: undefined, dataDir: '', encryptionKeyFile: benchKeyFile() })
}
