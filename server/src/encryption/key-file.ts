import { createSecretKey, type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import { accessSync, constants, existsSync, linkSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { OperatorError } from '../errors.ts'
import { syncDirectory, writePrivateFile } from '../files.ts'

// A key file has one key per line: `id:` and 32 bytes in base64. Empty lines and lines that begin with # are ignored. The first key
// encrypts; all keys decrypt.

/** `key` is not a buffer: an error or a log that prints a KeyObject does not show the key. */
export type Key = { id: string; key: KeyObject }
export type KeyFileSettings = { databaseUrl: string | undefined; dataDir: string; encryptionKeyFile: string | undefined }

const KEY_BYTES = 32
const KEY_LINE = /^(?<id>[A-Za-z0-9._-]{1,64}):(?<key>[A-Za-z0-9+/]{43}=)$/
const EXPECTED_LINE =
  'an id of letters, digits, ".", "_" or "-", a colon and 32 bytes in base64, as "npx herald encryption create-key" prints it'

/** A problem with a key file. The message names the line but never quotes it, since it may contain a key. */
export class BadKeyFile extends Error {}

export function parseKeys(text: string): Key[] {
  const keys: Key[] = []
  for (const [index, line] of text.split('\n').entries()) {
    const trimmed = line.trim()
    if (trimmed === '' || trimmed.startsWith('#')) continue
    const { id, key: base64 } = KEY_LINE.exec(trimmed)?.groups ?? {}
    if (id === undefined || base64 === undefined) throw new BadKeyFile(`line ${index + 1} must be ${EXPECTED_LINE}`)
    const key = createSecretKey(base64, 'base64')
    if (keys.some((other) => other.id === id))
      throw new BadKeyFile(`line ${index + 1} must have an id of its own; an earlier line has the same`)
    if (keys.some((other) => other.key.equals(key)))
      throw new BadKeyFile(`line ${index + 1} must have a key of its own; an earlier line has the same`)
    keys.push({ id, key })
  }
  if (keys.length === 0) throw new BadKeyFile(`it must have at least one line with ${EXPECTED_LINE}`)
  return keys
}

/** Creates a key as a line of a key file. Its id has the month, for people, and random digits, so that keys of different nodes have different ids. */
export function newKeyLine(): string {
  const id = `${new Date().toISOString().slice(0, 7)}-${randomBytes(3).toString('hex')}`
  return `${id}:${randomBytes(KEY_BYTES).toString('base64')}`
}

/**
 * The path of the key file. For the embedded database it is beside the data. For another database it is in the home directory, since the
 * nodes and commands of a machine share the database but not HERALD_DATA_DIR; a user without a writable home directory has it in
 * HERALD_DATA_DIR.
 */
export function keyFilePath({ databaseUrl, dataDir, encryptionKeyFile }: KeyFileSettings): string {
  if (encryptionKeyFile !== undefined) return encryptionKeyFile
  return join(databaseUrl === undefined ? dataDir : (homeDirectory() ?? dataDir), 'encryption.key')
}

function homeDirectory(): string | undefined {
  try {
    const home = homedir()
    accessSync(home, constants.W_OK)
    return join(home, '.herald')
  } catch {
    return undefined
  }
}

/** Returns no keys if the file does not exist. */
export function readKeys(path: string): Key[] {
  try {
    return existsSync(path) ? parseKeys(readFileSync(path, 'utf8')) : []
  } catch (error) {
    if (error instanceof BadKeyFile) throw new OperatorError(`The key file ${path} can't be used: ${error.message}.`)
    throw new OperatorError(`The key file ${path} can't be read: ${(error as NodeJS.ErrnoException).code}.`)
  }
}

/**
 * Call it before work that may create the key file. Afterwards, the returned function returns a sentence for the operator if the file was created.
 * There is none for the embedded database, whose key file is in the data directory and is backed up with it.
 */
export function watchKeyFile(settings: KeyFileSettings): () => string | undefined {
  const path = keyFilePath(settings)
  if (settings.databaseUrl === undefined || existsSync(path)) return () => undefined
  return () => (existsSync(path) ? `A new encryption key is in ${path}. Back it up: without it, the database can't be used.` : undefined)
}

/** Creates the default key file if there is none. If two processes create it at once, both read the file of the first. */
export function ensureKeyFile(settings: KeyFileSettings): string {
  const path = keyFilePath(settings)
  if (settings.encryptionKeyFile !== undefined || existsSync(path)) return path
  try {
    makeDirectory(dirname(path))
    makeKeyFile(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new OperatorError(`The encryption key can't be kept in ${path}: ${code}. Set HERALD_ENCRYPTION_KEY_FILE to a key file.`)
  }
  return path
}

/** Creates a directory and its parents durably, so that they survive a power cut: a database without its key is useless. */
function makeDirectory(dir: string): void {
  if (existsSync(dir)) return
  makeDirectory(dirname(dir))
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  syncDirectory(dirname(dir))
}

/** Writes the file under another name and then links it. A link is atomic, and fails if the name exists. */
function makeKeyFile(path: string): void {
  const scratch = `${path}.${randomUUID()}`
  writePrivateFile(scratch, `${newKeyLine()}\n`, ownerOf(dirname(path)))
  try {
    linkSync(scratch, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(scratch)
  }
  syncDirectory(dirname(path))
}

/** A command run by root must not create a key file that the owner of the directory cannot read. */
function ownerOf(dir: string): { uid: number; gid: number } | undefined {
  return process.getuid?.() === 0 ? statSync(dir) : undefined
}
