import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { newKeyLine } from '../server/src/encryption/key-file.ts'
import { type Keyring, loadKeyring } from '../server/src/encryption/keyring.ts'
import { writePrivateFile } from '../server/src/files.ts'
import { temporaryDirectory } from './temporary.ts'

let keyFile: string | undefined

/** One key for all processes of a part, which may share a database. Temporary files go when a part ends: the next part makes its own key. */
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
