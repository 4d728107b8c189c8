import { timingSafeEqual } from 'node:crypto'
import { createBatcher } from '../db/batcher.ts'
import { BEFORE_EVERY_REQUEST, listed, type Pool } from '../db/pool.ts'
import type { Caller } from '../http/guard.ts'
import { hashSecret } from './keys.ts'

type KeyRow = { integrationKey: string; accountId: number; accountVersion: string; secretHash: Buffer; modules: string[] }

// Matches nothing that createKey makes. Whatever can't be a credential is looked up as this, so that a malformed header, an unknown
// key and a wrong secret take the same path and the same time.
const NO_CREDENTIALS = { integrationKey: '', secret: '' }
const NO_HASH = Buffer.alloc(32)

function parseAuthorization(header: string | undefined): { integrationKey: string; secret: string } {
  const parts = /^(?i:bearer) +(?<integrationKey>hk_[A-Za-z0-9]{1,64}):(?<secret>hs_[A-Za-z0-9]{1,128}) *$/.exec(header ?? '')?.groups
  return (parts as { integrationKey: string; secret: string } | undefined) ?? NO_CREDENTIALS
}

/**
 * Says who sends a request, or undefined for wrong credentials of any kind. Nothing is cached: a rotated or revoked key, or a module
 * taken away, counts for every request that begins after the change was answered, on every node. Concurrent requests share a look-up.
 */
export function createAuthenticator(pool: Pool): (authorization: string | undefined) => Promise<Caller | undefined> {
  const lookUp = createBatcher<string, KeyRow | undefined>((keys) => lookUpKeys(pool, keys), { maxItems: 500 })

  return async (authorization) => {
    const { integrationKey, secret } = parseAuthorization(authorization)
    const row = await lookUp(integrationKey)
    if (row === undefined || !timingSafeEqual(hashSecret(secret), row.secretHash)) return undefined
    return { accountId: row.accountId, accountVersion: row.accountVersion, integrationKey, modules: row.modules }
  }
}

/**
 * A row for every key asked for, known or not, so that the two take the same time: 33 µs apart they told a patient stranger which keys
 * exist. An unknown key has the hash 0, which no secret has.
 */
async function lookUpKeys(pool: Pool, keys: string[]): Promise<(KeyRow | undefined)[]> {
  const { rows } = await pool.query<KeyRow>({
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
