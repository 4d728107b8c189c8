import { hash, randomInt } from 'node:crypto'
import { isIP } from 'node:net'
import type { Executor } from '../db/pool.ts'
import { plainAddress } from '../http/limits.ts'
import { type ListDefinition, type PageOf, type PageQuery, type PageRead, readPage, wholeList } from '../http/paging.ts'
import { missing } from '../refusal.ts'
import type { Scope } from '../scopes.ts'
import { noSuchAccount } from './accounts.ts'

export type Credentials = { integrationKey: string; secret: string }

/** What a key is restricted to. Null: not restricted. */
export type Restrictions = {
  scopes: Scope[] | null
  expiresAt: Date | null
  /** Addresses and networks, such as 192.0.2.7 and 10.0.0.0/8; stored as networks. */
  addresses: string[] | null
}

export const MAX_ADDRESSES = 100

/** The bits before the address in IPv4-mapped IPv6. */
const MAPPED_BITS = 96

/**
 * Returns an address or a network as it is stored, or undefined if the text is neither. IPv4-mapped IPv6 becomes IPv4, whatever its spelling:
 * clients with such addresses count as IPv4, so an IPv6 network would match none of them.
 */
function readNetwork(text: string): string | undefined {
  const [address = '', prefix, more] = text.split('/')
  const family = isIP(address)
  if (family === 0 || more !== undefined || address.includes('%')) return undefined
  if (prefix === undefined) return plainAddress(address)
  const bits = Number(prefix)
  if (!/^\d{1,3}$/.test(prefix) || bits > (family === 6 ? 128 : 32)) return undefined
  const plain = plainAddress(address)
  if (isIP(plain) === family) return `${plain}/${bits}`
  return bits < MAPPED_BITS ? undefined : `${plain}/${bits - MAPPED_BITS}`
}

export const isNetwork = (text: string) => readNetwork(text) !== undefined

type KeyInfo = Restrictions & {
  integrationKey: string
  /** Accurate to a minute. */
  lastUsedAt: Date | null
  createdAt: Date
  rotatedAt: Date | null
  revokedAt: Date | null
}

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

/** The result has only the restrictions that the key has. */
export async function createKey(
  db: Executor,
  accountId: number,
  { scopes = null, expiresAt = null, addresses = null }: Partial<Restrictions> = {},
): Promise<Credentials & Partial<Restrictions>> {
  const integrationKey = `hk_${randomText(KEY_LENGTH)}`
  const secret = `hs_${randomText(SECRET_LENGTH)}`
  const { rows } = await db.query<Restrictions>(
    `insert into integration_keys (integration_key, account_id, secret_hash, scopes, expires_at, addresses)
     select $1, id, $3, $4, $5, ${networks('$6')} from accounts where id = $2 returning ${RESTRICTIONS}`,
    [integrationKey, accountId, hashSecret(secret), scopes, expiresAt, addresses?.map(readNetwork)],
  )
  const given = Object.entries(rows[0] ?? noSuchAccount(accountId)).filter(([, value]) => value !== null)
  return { integrationKey, secret, ...Object.fromEntries(given) }
}

/** Changes the given restrictions, for every request that begins after the commit, on every node. */
export async function updateKey(db: Executor, integrationKey: string, change: Partial<Restrictions>): Promise<KeyInfo> {
  const { scopes = null, expiresAt = null, addresses = null } = change
  const { rows } = await db.query<KeyInfo>(
    `update integration_keys k set
       scopes = case when $2 then $3 else scopes end,
       expires_at = case when $4 then $5 else expires_at end,
       addresses = case when $6 then ${networks('$7')} else addresses end
     where integration_key = $1 and revoked_at is null returning ${KEY_INFO}`,
    [integrationKey, 'scopes' in change, scopes, 'expiresAt' in change, expiresAt, 'addresses' in change, addresses?.map(readNetwork)],
  )
  return rows[0] ?? noSuchKey(integrationKey)
}

/** In SQL: a list of addresses and networks as networks, without repetitions. `network` sets the bits beyond the prefix to zero. */
const networks = (list: string) => `case when ${list}::text[] is not null then
         array(select distinct network(address::inet)::cidr from unnest(${list}::text[]) as address order by 1) end`

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
    `update integration_keys k set revoked_at = coalesce(revoked_at, now()) where integration_key = $1 returning ${KEY_INFO}`,
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

/** The same for a key of this account. A key never changes its account, so what follows is bound to the account, too. */
export async function findOwnKey(db: Executor, accountId: number, integrationKey: string): Promise<OwnedKey> {
  const key = await findKey(db, integrationKey)
  return key.accountId === accountId ? key : noSuchKey(integrationKey)
}

/** Counts the keys that are neither revoked nor expired. */
export async function countLiveKeys(db: Executor, accountId: number): Promise<number> {
  const text =
    'select count(*) from integration_keys where account_id = $1 and revoked_at is null and (expires_at is null or expires_at > now())'
  const { rows } = await db.query<{ count: number }>(text, [accountId])
  return rows[0]?.count ?? 0
}

export const KEY_LIST: ListDefinition<'createdAt' | 'integrationKey'> = {
  fields: { createdAt: { column: 'k.created_at', type: 'timestamptz' }, integrationKey: { column: 'k.integration_key', type: 'text' } },
  id: 'integrationKey',
  defaultSort: 'createdAt',
}

export const KEY_STATUSES = ['ACTIVE', 'EXPIRED', 'REVOKED'] as const
type KeyStatus = (typeof KEY_STATUSES)[number]

/** In SQL. An expired key that was revoked counts as revoked. */
const HAS_STATUS: Record<KeyStatus, string> = {
  ACTIVE: 'k.revoked_at is null and (k.expires_at is null or k.expires_at > now())',
  EXPIRED: 'k.revoked_at is null and k.expires_at <= now()',
  REVOKED: 'k.revoked_at is not null',
}

/** `status`: only the keys that have it. */
export async function listKeys(
  db: Executor,
  accountId: number,
  read: PageRead = wholeList(KEY_LIST),
  status?: KeyStatus,
): Promise<KeyInfo[]> {
  const account = await db.query('select from accounts where id = $1', [accountId])
  if (account.rowCount === 0) noSuchAccount(accountId)
  const { rows } = await db.query<KeyInfo>(
    `select ${KEY_INFO} from integration_keys k where account_id = $1 and ${status === undefined ? 'true' : HAS_STATUS[status]} and ${read.condition}
     order by ${read.orderBy} limit $2`,
    [accountId, read.fetch, ...read.values],
  )
  return rows
}

export async function readKeysPage(db: Executor, accountId: number, query: PageQuery & { status?: KeyStatus }): Promise<PageOf<KeyInfo>> {
  const page = readPage(KEY_LIST, query, 3, `keys ${accountId}`)
  return page.toBody(await listKeys(db, accountId, page, query.status))
}

// Networks are returned as text: the driver has no type for them.
const RESTRICTIONS = 'scopes, expires_at as "expiresAt", addresses::text[] as addresses'
const KEY_INFO = `k.integration_key as "integrationKey", ${RESTRICTIONS},
  (select last_used_at from integration_key_uses u where u.integration_key = k.integration_key) as "lastUsedAt",
  created_at as "createdAt", rotated_at as "rotatedAt", revoked_at as "revokedAt"`

function noSuchKey(integrationKey: string): never {
  throw missing(`There is no live integration key ${integrationKey}`, 'see "herald key list ACCOUNT_ID"')
}
