import { randomBytes } from 'node:crypto'
import { type KeyFileSettings, keyFilePath, readKeys } from '../encryption/key-file.ts'
import { type Encrypted, type Keyring, loadKeyring, missingKeys } from '../encryption/keyring.ts'
import { OperatorError } from '../errors.ts'
import type { Executor } from './pool.ts'

// The context binds an encrypted value to its row. ENCRYPTED_TABLES has the same texts in SQL.
const secretContext = (name: string) => `secrets:${name}`
export const webhookSecretContext = (endpointId: number) => `webhook_secrets:${endpointId}`

/** Every table that has encrypted values. */
export const ENCRYPTED_TABLES = [
  { table: 'secrets', context: `'secrets:' || name` },
  { table: 'webhook_secrets', context: `'webhook_secrets:' || endpoint_id` },
] as const

/** A random key of this installation, created on first use. If two processes create it at once, both get the first one. */
export async function installationSecret(db: Executor, name: string, keyring: Keyring): Promise<Buffer> {
  const context = secretContext(name)
  const read = () => db.query<Encrypted>('select key_id as "keyId", value from secrets where name = $1', [name])
  let [stored] = (await read()).rows
  if (stored === undefined) {
    const { keyId, value } = keyring.encrypt(context, randomBytes(32))
    await db.query('insert into secrets (name, key_id, value) values ($1, $2, $3) on conflict do nothing', [name, keyId, value])
    stored = (await read()).rows[0] as Encrypted
  }
  return keyring.decrypt(context, stored)
}

type KeyUse = { keyId: string; values: number }

/** Counts the values that are encrypted with each key. */
export async function countByKey(db: Executor): Promise<KeyUse[]> {
  const keys = ENCRYPTED_TABLES.map(({ table }) => `select key_id from ${table}`).join(' union all ')
  const { rows } = await db.query<KeyUse>(
    `select key_id as "keyId", count(*) as values from (${keys}) as used group by key_id order by key_id`,
  )
  return rows
}

export const KEY_USES = ['encrypts', 'decrypts', 'missing'] as const
type KeyStatus = { keyId: string; use: (typeof KEY_USES)[number]; values: number }

/** What each key is used for: those of the key file, in its order, and those that values still need. */
export async function readKeyStatus(db: Executor, inFile: readonly string[]): Promise<KeyStatus[]> {
  const uses = new Map((await countByKey(db)).map(({ keyId, values }) => [keyId, values]))
  return [...new Set([...inFile, ...uses.keys()])].map((keyId) => {
    const use = keyId === inFile[0] ? 'encrypts' : 'decrypts'
    return { keyId, use: inFile.includes(keyId) ? use : 'missing', values: uses.get(keyId) ?? 0 }
  })
}

/**
 * Opens the keyring for this database. Before it creates a key file, it refuses one that lacks a key of the database: a node with a different
 * key file would write values that other nodes can't decrypt.
 */
export async function openKeyring(db: Executor, settings: KeyFileSettings): Promise<Keyring> {
  const known = readKeys(keyFilePath(settings)).map(({ id }) => id)
  const missing = (await countByKey(db)).map(({ keyId }) => keyId).filter((keyId) => !known.includes(keyId))
  if (missing.length > 0) throw new OperatorError(missingKeys(missing, keyFilePath(settings)))
  return loadKeyring(settings)
}
