import type { Pool } from '../../src/db/pool.ts'
import { webhookSecretContext } from '../../src/db/secrets.ts'
import { loadKeyring } from '../../src/encryption/keyring.ts'

/** The key file of the test run, created by global-setup.ts: services, commands and tests on one database share it. */
export const KEY_FILE = process.env.HERALD_TEST_KEY_FILE as string

export const keyring = loadKeyring({ databaseUrl: undefined, dataDir: '', encryptionKeyFile: KEY_FILE })

/** The secrets of an endpoint in plain text, the oldest first. */
export async function readWebhookSecrets(
  pool: Pool,
  endpointId: number,
): Promise<{ secret: string; endsAt: Date | null; hours: number | null }[]> {
  const { rows } = await pool.query(
    `select key_id as "keyId", value, ends_at as "endsAt", extract(epoch from ends_at - now())::float8 / 3600 as hours
     from webhook_secrets where endpoint_id = $1 order by id`,
    [endpointId],
  )
  return rows.map(({ endsAt, hours, ...stored }) => ({
    secret: keyring.decrypt(webhookSecretContext(endpointId), stored).toString(),
    endsAt,
    hours,
  }))
}
