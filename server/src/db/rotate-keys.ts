import { setTimeout as sleep } from 'node:timers/promises'
import type { Encrypted, Keyring } from '../encryption/keyring.ts'
import { type Executor, type Pool, transaction } from './pool.ts'
import { countByKey, ENCRYPTED_TABLES } from './secrets.ts'

export type RotationProgress = { reencrypted: number; remaining: number }
/** `unusedKeyIds`: keys of the key file that no value needs any more. */
export type Rotation = { keyId: string; reencrypted: number; unusedKeyIds: string[] }

type Options = {
  batchSize?: number
  onProgress?: (progress: RotationProgress) => void
  /** Called in the first transaction that re-encrypts a value. */
  record?: ((tx: Executor, after: { keyId: string }) => Promise<void>) | undefined
}

const BATCH_SIZE = 500
const RETRY_MS = 20

/**
 * Re-encrypts every value that is not encrypted with the first key of the key file, while nodes run. Every batch is a transaction of its own: a
 * killed rotation loses at most one batch, and the next rotation does the rest.
 */
export async function rotateKeys(
  pool: Pool,
  keyring: Keyring,
  { batchSize = BATCH_SIZE, onProgress = () => {}, record = async () => {} }: Options = {},
): Promise<Rotation> {
  let reencrypted = 0
  for (;;) {
    // The key file may have changed since the last batch.
    const [keyId = ''] = keyring.keyIds()
    const uses = await countByKey(pool)
    const others = uses.filter((use) => use.keyId !== keyId)
    onProgress({ reencrypted, remaining: others.reduce((sum, { values }) => sum + values, 0) })
    if (others.length === 0) {
      const unusedKeyIds = keyring.keyIds().filter((id) => id !== keyId && !uses.some((use) => use.keyId === id))
      return { keyId, reencrypted, unusedKeyIds }
    }
    const before = reencrypted
    for (const { keyId: oldKeyId } of others) {
      for (const encryptedTable of ENCRYPTED_TABLES) {
        const batch = { ...encryptedTable, oldKeyId, batchSize }
        reencrypted += await transaction(pool, async (tx) => {
          const count = await reencryptBatch(tx, keyring, batch)
          if (count > 0 && reencrypted === 0) await record(tx, { keyId })
          return count
        })
      }
    }
    // Other transactions hold locks on all remaining rows; try again soon.
    if (reencrypted === before) await sleep(RETRY_MS)
  }
}

type Batch = { table: string; context: string; oldKeyId: string; batchSize: number }

/**
 * Skips rows that another transaction has locked, so that no deadlock is possible; the next batch gets them. A transaction that rotates a webhook
 * secret waits for the locks of this batch, so the new secret is not lost.
 */
async function reencryptBatch(tx: Executor, keyring: Keyring, { table, context, oldKeyId, batchSize }: Batch): Promise<number> {
  const { rows } = await tx.query<Encrypted & { row: string; context: string }>(
    `select ctid::text as row, ${context} as context, key_id as "keyId", value from ${table} where key_id = $1 limit $2 for update skip locked`,
    [oldKeyId, batchSize],
  )
  for (const { row, context: rowContext, ...stored } of rows) {
    const { keyId, value } = keyring.encrypt(rowContext, keyring.decrypt(rowContext, stored))
    await tx.query(`update ${table} set key_id = $2, value = $3 where ctid = $1::tid`, [row, keyId, value])
  }
  return rows.length
}
