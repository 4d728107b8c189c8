import { timingSafeEqual } from 'node:crypto'
import { createBatcher } from '../db/batcher.ts'
import { BEFORE_EVERY_REQUEST, listed, type Pool } from '../db/pool.ts'
import type { Caller } from '../http/guard.ts'
import { hashSecret } from './keys.ts'

// No key that createKey makes is empty. Herald looks up this key for malformed credentials, so that a malformed header, an unknown key and a
// wrong secret take the same path and the same time.
const NO_CREDENTIALS = { integrationKey: '', secret: '' }
const NO_HASH = Buffer.alloc(32)

function parseAuthorization(header: string | undefined): { integrationKey: string; secret: string } {
  const parts = /^(?i:bearer) +(?<integrationKey>hk_[A-Za-z0-9]{1,64}):(?<secret>hs_[A-Za-z0-9]{1,128}) *$/.exec(header ?? '')?.groups
  return (parts as { integrationKey: string; secret: string } | undefined) ?? NO_CREDENTIALS
}

type Authenticator = {
  /**
   * Finds the caller of a request; undefined for wrong credentials of any kind. A change of the key or its account, or the expiry of the
   * key, counts for every request that begins after the response to the change, on every node. Concurrent requests share a look-up.
   */
  authenticate: (authorization: string | undefined) => Promise<Caller | undefined>
  /**
   * The caller as of the last look-up. A statement that acts for the caller must confirm that nothing has changed since: see
   * confirmedCallers.
   */
  findCached: (authorization: string | undefined) => Caller | undefined
}

const MAX_CACHED = 10_000

export function createAuthenticator(pool: Pool): Authenticator {
  const lookUp = createBatcher<string, Caller | undefined>((keys) => lookUpKeys(pool, keys), { maxItems: 500 })
  const lastFound = new Map<string, Caller>()

  async function authenticate(authorization: string | undefined): Promise<Caller | undefined> {
    const { integrationKey, secret } = parseAuthorization(authorization)
    const found = await lookUp(integrationKey)
    const known = lastFound.get(integrationKey)
    // Compare with the stored hash, not with the given secret: a wrong secret must not evict the right one.
    if (known !== undefined && !found?.secretHash.equals(known.secretHash)) lastFound.delete(integrationKey)
    if (found === undefined || !timingSafeEqual(hashSecret(secret), found.secretHash)) return undefined
    // Copy the hash: the driver's buffer is a slice of a larger one, which the hash would keep in memory.
    lastFound.set(integrationKey, { ...found, secretHash: Buffer.alloc(NO_HASH.length, found.secretHash) })
    if (lastFound.size > MAX_CACHED) lastFound.delete(lastFound.keys().next().value as string)
    return found
  }

  function findCached(authorization: string | undefined): Caller | undefined {
    const { integrationKey, secret } = parseAuthorization(authorization)
    const found = lastFound.get(integrationKey)
    return timingSafeEqual(hashSecret(secret), found?.secretHash ?? NO_HASH) ? found : undefined
  }

  return { authenticate, findCached }
}

/** In SQL: the key has not expired, by the database's clock. */
const IS_UNEXPIRED = '(k.expires_at is null or k.expires_at > now())'

/**
 * SQL that takes callers as three lists of keys and of the versions of keys and accounts, and selects the positions of the callers
 * that are still valid. An unchanged key has the same secret and is not revoked, but it may have expired.
 */
export const confirmedCallers = ([keys, keyVersions, accountVersions]: [string, string, string]) => `
    select c.place from unnest(${listed(`${keys}::text[]`)}, ${listed(`${keyVersions}::text[]`)}, ${listed(`${accountVersions}::text[]`)})
      with ordinality as c (integration_key, key_version, account_version, place)
    join integration_keys k on k.integration_key = c.integration_key and k.xmin::text = c.key_version and ${IS_UNEXPIRED}
    join accounts a on a.id = k.account_id and a.xmin::text = c.account_version`

/**
 * Returns a row for every key, known or not, so that both take the same time: a difference of 33 µs let an attacker find out which keys
 * exist. An unknown key has a hash of zeros, which no secret has.
 */
async function lookUpKeys(pool: Pool, keys: string[]): Promise<(Caller | undefined)[]> {
  const { rows } = await pool.query<Caller>({
    name: 'authenticate',
    text: AUTHENTICATE,
    values: [keys, NO_HASH],
    ...BEFORE_EVERY_REQUEST,
  })
  const byKey = new Map(rows.map((row) => [row.integrationKey, row]))
  return keys.map((key) => byKey.get(key))
}

export const AUTHENTICATE = `
  select asked.key as "integrationKey", coalesce(k.account_id, 0) as "accountId", a.xmin::text as "accountVersion",
    coalesce(a.modules, '{rcs,sms}') as modules, a.suspended_at is not null as "isSuspended", k.xmin::text as "keyVersion", coalesce(k.secret_hash, $2) as "secretHash",
    k.scopes, k.addresses::text[] as addresses
  from unnest(${listed('$1::text[]')}) as asked (key)
  left join integration_keys k on k.integration_key = asked.key and k.revoked_at is null and ${IS_UNEXPIRED}
  left join accounts a on a.id = coalesce(k.account_id, 0)`
