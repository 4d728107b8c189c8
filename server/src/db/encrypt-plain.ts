import type { Keyring } from '../encryption/keyring.ts'
import type { Executor } from './pool.ts'
import { secretPlace, webhookSecretPlace } from './secrets.ts'

type PlainSecret = { name: string; value: Buffer }
type PlainWebhookSecret = { endpointId: number; secret: string; createdAt: Date; endsAt: Date | null }

/**
 * The part of migration 0012 that SQL can't do, in its transaction: encrypts what was stored in plain text. A database without such rows
 * needs no key.
 */
export async function encryptPlainSecrets(tx: Executor, loadKeys: () => Keyring): Promise<void> {
  const { rows: secrets } = await tx.query<PlainSecret>('select name, value from plain_secrets')
  const { rows: webhookSecrets } = await tx.query<PlainWebhookSecret>(
    `select endpoint_id as "endpointId", secret, created_at as "createdAt", ends_at as "endsAt" from plain_webhook_secrets order by created_at`,
  )
  if (secrets.length + webhookSecrets.length === 0) return
  const keyring = loadKeys()
  for (const { name, value: plain } of secrets) {
    const { keyId, value } = keyring.encrypt(secretPlace(name), plain)
    await tx.query('insert into secrets (name, key_id, value) values ($1, $2, $3)', [name, keyId, value])
  }
  for (const { endpointId, secret, createdAt, endsAt } of webhookSecrets) {
    const { keyId, value } = keyring.encrypt(webhookSecretPlace(endpointId), Buffer.from(secret))
    await tx.query('insert into webhook_secrets (endpoint_id, key_id, value, created_at, ends_at) values ($1, $2, $3, $4, $5)', [
      endpointId,
      keyId,
      value,
      createdAt,
      endsAt,
    ])
  }
}
