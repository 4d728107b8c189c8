import { timingSafeEqual } from 'node:crypto'
import { createBatcher } from '../db/batcher.ts'
import { BEFORE_EVERY_REQUEST, listed, type Pool } from '../db/pool.ts'
import type { Caller } from '../http/guard.ts'
import { hashSecret } from './keys.ts'

// Matches nothing that createKey makes. Whatever can't be a credential is looked up as this, so that a malformed header, an unknown
// key and a wrong secret take the same path and the same time.
const NO_CREDENTIALS = { integrationKey: '', secret: '' }
const NO_HASH = Buffer.alloc(32)

function parseAuthorization(header: string | undefined): { integrationKey: string; secret: string } {
  const parts = /^(?i:bearer) +(?<integrationKey>hk_[A-Za-z0-9]{1,64}):(?<secret>hs_[A-Za-z0-9]{1,128}) *$/.exec(header ?? '')?.groups
  return (parts as { integrationKey: string; secret: string } | undefined) ?? NO_CREDENTIALS
}

export type Authenticator = {
  /**
   * Looks up who sends a request; undefined for wrong credentials of any kind. A rotated or revoked key, or a module taken away, counts for
   * every request that begins after the change was answered, on every node. Concurrent requests share a look-up.
   */
  authenticate: (authorization: string | undefined) => Promise<Caller | undefined>
  /** The caller as the last look-up found them. A statement that acts for them has to confirm that they have not changed: confirmedCallers. */
  recall: (authorization: string | undefined) => Caller | undefined
}

const MOST_RECALLED = 10_000

export function createAuthenticator(pool: Pool): Authenticator {
  const lookUp = createBatcher<string, Caller | undefined>((keys) => lookUpKeys(pool, keys), { maxItems: 500 })
  const lastFound = new Map<string, Caller>()

  async function authenticate(authorization: string | undefined): Promise<Caller | undefined> {
    const { integrationKey, secret } = parseAuthorization(authorization)
    const found = await lookUp(integrationKey)
    const known = lastFound.get(integrationKey)
    // A wrong secret must not have the right one forgotten.
    if (known !== undefined && !found?.secretHash.equals(known.secretHash)) lastFound.delete(integrationKey)
    if (found === undefined || !timingSafeEqual(hashSecret(secret), found.secretHash)) return undefined
    // A copy: the driver's bytes are a slice of a pool, which one hash would keep in memory.
    lastFound.set(integrationKey, { ...found, secretHash: Buffer.alloc(NO_HASH.length, found.secretHash) })
    if (lastFound.size > MOST_RECALLED) lastFound.delete(lastFound.keys().next().value as string)
    return found
  }

  function recall(authorization: string | undefined): Caller | undefined {
    const { integrationKey, secret } = parseAuthorization(authorization)
    const found = lastFound.get(integrationKey)
    return timingSafeEqual(hashSecret(secret), found?.secretHash ?? NO_HASH) ? found : undefined
  }

  return { authenticate, recall }
}

/** In SQL: recalled callers are three lists of keys, hashes and versions. Selects the places of the callers that have not changed. */
export const confirmedCallers = ([keys, hashes, versions]: [string, string, string]) => `
    select c.place from unnest(${listed(`${keys}::text[]`)}, ${listed(`${hashes}::bytea[]`)}, ${listed(`${versions}::text[]`)})
      with ordinality as c (integration_key, secret_hash, version, place)
    join integration_keys k on k.integration_key = c.integration_key and k.secret_hash = c.secret_hash and k.revoked_at is null
    join accounts a on a.id = k.account_id and a.xmin::text = c.version`

/**
 * A row for every key asked for, known or not, so that both take the same time: a difference of 33 µs let an attacker find out which keys
 * exist. An unknown key has the hash 0, which no secret has.
 */
async function lookUpKeys(pool: Pool, keys: string[]): Promise<(Caller | undefined)[]> {
  const { rows } = await pool.query<Caller>({
    name: 'authenticate',
    text: `select asked.key as "integrationKey", coalesce(k.account_id, 0) as "accountId", a.xmin::text as "accountVersion",
             coalesce(k.secret_hash, $2) as "secretHash", coalesce(a.modules, '{rcs,sms}') as modules
           from unnest(${listed('$1::text[]')}) as asked (key)
           left join integration_keys k on k.integration_key = asked.key and k.revoked_at is null
           left join accounts a on a.id = coalesce(k.account_id, 0)`,
    values: [keys, NO_HASH],
    ...BEFORE_EVERY_REQUEST,
  })
  const byKey = new Map(rows.map((row) => [row.integrationKey, row]))
  return keys.map((key) => byKey.get(key))
}
