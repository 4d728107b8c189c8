import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from 'node:crypto'
import { OperatorError } from '../errors.ts'
import { ensureKeyFile, type Key, type KeyFileSettings, readKeys } from './key-file.ts'

/** `value` is one byte for the version, then the nonce, the tag and the ciphertext. */
export type Encrypted = { keyId: string; value: Buffer }

export type Keyring = {
  keyFile: string
  /** In the order of the key file. */
  keyIds: () => string[]
  /** `context` is the row that the value belongs to, such as `secrets:links`. A value that is moved to another row cannot be decrypted. */
  encrypt: (context: string, plain: Buffer) => Encrypted
  decrypt: (context: string, encrypted: Encrypted) => Buffer
}

const VERSION = 1
const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const HEAD_BYTES = 1 + NONCE_BYTES + TAG_BYTES

/** Loads the key file, and creates it if it is missing and not configured. `openKeyring` also checks the keys against the database. */
export function loadKeyring(settings: KeyFileSettings): Keyring {
  const keyFile = ensureKeyFile(settings)
  let keys = readKeys(keyFile)
  if (keys.length === 0) throw new OperatorError(`The key file ${keyFile} does not exist.`)

  // A running process gets new keys by reading the file again. While the file is being replaced, the process keeps its current keys.
  function readAgain(): void {
    try {
      const found = readKeys(keyFile)
      if (found.length > 0) keys = found
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error
    }
  }

  function findKey(keyId: string): KeyObject {
    const find = () => keys.find(({ id }) => id === keyId)?.key
    if (find() === undefined) readAgain()
    const key = find()
    if (key === undefined) throw new OperatorError(missingKeys([keyId], keyFile))
    return key
  }

  return {
    keyFile,
    keyIds: () => keys.map(({ id }) => id),
    // Reads the file each time, so that a replaced key is never used again. Encrypting is rare, and reading takes 30 µs.
    encrypt: (context, plain) => {
      readAgain()
      const { id, key } = keys[0] as Key
      return { keyId: id, value: seal(key, context, plain) }
    },
    decrypt: (context, { keyId, value }) => {
      const key = findKey(keyId)
      try {
        return open(key, context, value)
      } catch {
        throw new OperatorError(
          `The secret ${context} can't be decrypted: the key ${keyId} in ${keyFile} is not the one that encrypted it, or its row was changed.`,
        )
      }
    },
  }
}

export function missingKeys(keyIds: string[], keyFile: string): string {
  const [keys, are] = keyIds.length === 1 ? ['key', 'is'] : ['keys', 'are']
  return `The database has secrets that are encrypted with the ${keys} ${keyIds.join(', ')}, which ${are} not in ${keyFile}. All nodes and commands need the same key file: copy it from a node that works, or from the backup, and set HERALD_ENCRYPTION_KEY_FILE to its path.`
}

function seal(key: KeyObject, context: string, plain: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(`${VERSION}:${context}`))
  const text = Buffer.concat([cipher.update(plain), cipher.final()])
  return Buffer.concat([Buffer.of(VERSION), nonce, cipher.getAuthTag(), text])
}

function open(key: KeyObject, context: string, value: Buffer): Buffer {
  if (value[0] !== VERSION || value.length < HEAD_BYTES) throw new Error('not a value of this version')
  const nonce = value.subarray(1, 1 + NONCE_BYTES)
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(`${VERSION}:${context}`))
    .setAuthTag(value.subarray(1 + NONCE_BYTES, HEAD_BYTES))
  return Buffer.concat([decipher.update(value.subarray(HEAD_BYTES)), decipher.final()])
}
