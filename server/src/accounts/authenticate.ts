import { timingSafeEqual } from 'node:crypto'
import { createBatcher } from '../db/batcher.ts'
import { BEFORE_EVERY_REQUEST, type Pool } from '../db/pool.ts'
import type { Caller } from '../http/guard.ts'
import { hashSecret } from './keys.ts'

type KeyRow = { integrationKey: string; accountId: number; secretHash: Buffer; modules: string[] }

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
  const lookUp = createBatcher<string, KeyRow | undefined>(
    async (keys) => {
      const { rows } = await pool.query<KeyRow>({
        name: 'authenticate',
        text: `select k.integration_key as "integrationKey", k.account_id as "accountId", k.secret_hash as "secretHash", a.modules
               from integration_keys k join accounts a on a.id = k.account_id
               where k.integration_key = any($1) and k.revoked_at is null`,
        values: [keys],
        ...BEFORE_EVERY_REQUEST,
      })
      const byKey = new Map(rows.map((row) => [row.integrationKey, row]))
      return keys.map((key) => byKey.get(key))
    },
    { maxItems: 500 },
  )

  return async (authorization) => {
    const { integrationKey, secret } = parseAuthorization(authorization)
    const row = await lookUp(integrationKey)
    const matches = timingSafeEqual(hashSecret(secret), row?.secretHash ?? NO_HASH)
    return matches && row !== undefined ? { accountId: row.accountId, integrationKey, modules: row.modules } : undefined
  }
}
