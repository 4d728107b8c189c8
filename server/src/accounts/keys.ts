import { hash, randomInt } from 'node:crypto'
import type { Executor } from '../db/pool.ts'
import { OperatorError } from '../errors.ts'
import { noSuchAccount } from './accounts.ts'

export type Credentials = { integrationKey: string; secret: string }

type KeyInfo = { integrationKey: string; createdAt: Date; rotatedAt: Date | null; revokedAt: Date | null }

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const KEY_LENGTH = 22
// 62^43 is just over 2^256.
const SECRET_LENGTH = 43

/** Letters and digits only: a double click selects all of it, and no character is special in a shell or a URL. */
function randomText(length: number): string {
  return Array.from({ length }, () => BASE62[randomInt(62)]).join('')
}

export function hashSecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer')
}

export async function createKey(db: Executor, accountId: number): Promise<Credentials> {
  const integrationKey = `hk_${randomText(KEY_LENGTH)}`
  const secret = `hs_${randomText(SECRET_LENGTH)}`
  const { rowCount } = await db.query(
    'insert into integration_keys (integration_key, account_id, secret_hash) select $1, id, $3 from accounts where id = $2',
    [integrationKey, accountId, hashSecret(secret)],
  )
  if (rowCount === 0) noSuchAccount(accountId)
  return { integrationKey, secret }
}

/** The old secret stops working on every node with the commit: credentials are checked against the database for every request. */
export async function rotateKey(db: Executor, integrationKey: string): Promise<Credentials> {
  const secret = `hs_${randomText(SECRET_LENGTH)}`
  const { rowCount } = await db.query(
    'update integration_keys set secret_hash = $2, rotated_at = now() where integration_key = $1 and revoked_at is null',
    [integrationKey, hashSecret(secret)],
  )
  if (rowCount === 0) noSuchKey(integrationKey)
  return { integrationKey, secret }
}

export async function revokeKey(db: Executor, integrationKey: string): Promise<KeyInfo> {
  const { rows } = await db.query<KeyInfo>(
    `update integration_keys set revoked_at = coalesce(revoked_at, now()) where integration_key = $1 returning ${KEY_INFO}`,
    [integrationKey],
  )
  return rows[0] ?? noSuchKey(integrationKey)
}

export type OwnedKey = KeyInfo & { accountId: number; accountName: string }

/** Finds a key without its account, for operators. Also finds a revoked key. */
export async function findKey(db: Executor, integrationKey: string): Promise<OwnedKey> {
  const { rows } = await db.query<OwnedKey>(
    `select ${KEY_INFO}, account_id as "accountId", (select name from accounts a where a.id = k.account_id) as "accountName"
     from integration_keys k where integration_key = $1`,
    [integrationKey],
  )
  return rows[0] ?? noSuchKey(integrationKey)
}

export async function countLiveKeys(db: Executor, accountId: number): Promise<number> {
  const text = 'select count(*) from integration_keys where account_id = $1 and revoked_at is null'
  const { rows } = await db.query<{ count: number }>(text, [accountId])
  return rows[0]?.count ?? 0
}

export async function listKeys(db: Executor, accountId: number): Promise<KeyInfo[]> {
  const account = await db.query('select from accounts where id = $1', [accountId])
  if (account.rowCount === 0) noSuchAccount(accountId)
  const { rows } = await db.query<KeyInfo>(
    `select ${KEY_INFO} from integration_keys where account_id = $1 order by created_at, integration_key`,
    [accountId],
  )
  return rows
}

const KEY_INFO = 'integration_key as "integrationKey", created_at as "createdAt", rotated_at as "rotatedAt", revoked_at as "revokedAt"'

function noSuchKey(integrationKey: string): never {
  throw new OperatorError(`There is no live integration key ${integrationKey}; see "herald key list ACCOUNT_ID".`)
}
