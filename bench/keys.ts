import { join } from 'node:path'
import { newKeyLine } from '../server/src/encryption/key-file.ts'
import { type Keyring, loadKeyring } from '../server/src/encryption/keyring.ts'
import { writePrivateFile } from '../server/src/files.ts'
import { temporaryDirectory } from './temporary.ts'

let keyFile: string | undefined

/** One for all processes of a run, several of which may share a database. */
export function benchKeyFile(): string {
  if (keyFile === undefined) {
    keyFile = join(temporaryDirectory(), 'encryption.key')
    writePrivateFile(keyFile, `${newKeyLine()}\n`)
  }
  return keyFile
}

export function benchKeyring(): Keyring {
  return loadKeyring({ databaseUrl: undefined, dataDir: '', encryptionKeyFile: benchKeyFile() })
}
