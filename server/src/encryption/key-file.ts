import { createSecretKey, type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import { accessSync, constants, existsSync, linkSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { OperatorError } from '../errors.ts'
import { syncDirectory, writePrivateFile } from '../files.ts'

// A key file has one key per line, `id:base64 of 32 bytes`; empty lines and lines that begin with # do not count. The first key encrypts, all
// decrypt.

/** `key` is not a buffer: an error or a log that prints a KeyObject does not show the key. */
export type Key = { id: string; key: KeyObject }
export type KeyFileSettings = { databaseUrl: string | undefined; dataDir: string; encryptionKeyFile: string | undefined }

const KEY_BYTES = 32
const KEY_LINE = /^(?<id>[A-Za-z0-9._-]{1,64}):(?<key>[A-Za-z0-9+/]{43}=)$/
const RIGHT_LINE =
  'an id of letters, digits, ".", "_" or "-", a colon and 32 bytes in base64, as "npx herald encryption create-key" prints it'

/** What is wrong with a key file. Names the line and never what is in it, which may be a key. */
export class BadKeyFile extends Error {}

export function parseKeys(text: string): Key[] {
  const keys: Key[] = []
  for (const [index, line] of text.split('\n').entries()) {
    const trimmed = line.trim()
    if (trimmed === '' || trimmed.startsWith('#')) continue
    const { id, key: base64 } = KEY_LINE.exec(trimmed)?.groups ?? {}
    if (id === undefined || base64 === undefined) throw new BadKeyFile(`line ${index + 1} must be ${RIGHT_LINE}`)
    const key = createSecretKey(base64, 'base64')
    if (keys.some((other) => other.id === id))
      throw new BadKeyFile(`line ${index + 1} must have an id of its own; an earlier line has the same`)
    if (keys.some((other) => other.key.equals(key)))
      throw new BadKeyFile(`line ${index + 1} must have a key of its own; an earlier line has the same`)
    keys.push({ id, key })
  }
  if (keys.length === 0) throw new BadKeyFile(`it must have at least one line with ${RIGHT_LINE}`)
  return keys
}

/** A new key as a line of a key file. Its id has the month, for people, and random digits, so that keys made elsewhere differ. */
export function newKeyLine(): string {
  const id = `${new Date().toISOString().slice(0, 7)}-${randomBytes(3).toString('hex')}`
  return `${id}:${randomBytes(KEY_BYTES).toString('base64')}`
}

/**
 * The embedded database has its key file beside it. One for a database elsewhere is in the home directory, since several nodes and the commands
 * of a machine share the database but not HERALD_DATA_DIR; a user without a home directory of its own has it in HERALD_DATA_DIR.
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

/** No keys where there is no file. */
export function readKeys(path: string): Key[] {
  try {
    return existsSync(path) ? parseKeys(readFileSync(path, 'utf8')) : []
  } catch (error) {
    if (error instanceof BadKeyFile) throw new OperatorError(`The key file ${path} can't be used: ${error.message}.`)
    throw new OperatorError(`The key file ${path} can't be read: ${(error as NodeJS.ErrnoException).code}.`)
  }
}

/**
 * Call it before the work that may make the key file; what it returns says afterwards in a sentence that the file was made. Nothing is said
 * about the embedded database, whose key file is in its directory and is copied with it.
 */
export function watchKeyFile(settings: KeyFileSettings): () => string | undefined {
  const path = keyFilePath(settings)
  if (settings.databaseUrl === undefined || existsSync(path)) return () => undefined
  return () => (existsSync(path) ? `A new encryption key is in ${path}. Back it up: without it, the database can't be used.` : undefined)
}

/** Makes the default key file where there is none. Of two processes that make it at once, both read the one that was first. */
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

/** Makes a directory and its parents so that they survive a power cut: a database whose key is gone is of no use. */
function makeDirectory(dir: string): void {
  if (existsSync(dir)) return
  makeDirectory(dirname(dir))
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  syncDirectory(dirname(dir))
}

/** Writes the whole file under another name, then links it: a link is made in one step, and fails where the name is taken. */
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

/** A command that root runs must not make a key that the owner of the directory can't read. */
function ownerOf(dir: string): { uid: number; gid: number } | undefined {
  return process.getuid?.() === 0 ? statSync(dir) : undefined
}
