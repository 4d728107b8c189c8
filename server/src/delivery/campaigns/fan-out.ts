import { ensurePartitions } from '../../db/partitions.ts'
import { type Executor, isTimedOut, isUnavailable, type Pool, transaction } from '../../db/pool.ts'
import type { ErasedPeople } from '../../erasure/erased.ts'
import { isMissingPartition } from '../../messages/accept.ts'
import { createListed } from './listed.ts'
import { CREATE_RETRIED, createFromGroups, FIND_CAMPAIGN, IN_ORDER, LOCK_CAMPAIGN, type Running } from './statements.ts'

/** Messages per transaction: enough that the commit costs little, and few enough that a request to pause or cancel waits only briefly. */
export const CHUNK = 1_000
const SMALL_CHUNK = 100

type FanOut = {
  created: number
  mayBeMore: boolean
  /** A campaign whose chunk failed. The fault may concern this campaign only, so the loop continues with the others. */
  failed?: { campaignId: string; error: unknown }
}

type Options = { skipped?: readonly string[]; publicUrl?: string | undefined }

/**
 * Creates the next messages of the running campaign that has had the fewest so far. The fan-out cursor moves in the same transaction: after a
 * crash the next chunk continues there, and every recipient gets exactly one message. A request to pause or cancel waits for the current
 * chunk, and no chunk follows it. `skipped`: campaigns to skip this time. `publicUrl`: the start of short links in SMS.
 */
export async function fanOut(pool: Pool, erased: ErasedPeople, { skipped = [], publicUrl }: Options = {}): Promise<FanOut> {
  // Most polls find no campaign, so one statement checks for one before the transaction begins.
  const { rowCount } = await pool.query({ name: 'find-campaign', text: FIND_CAMPAIGN, values: [skipped] })
  if (rowCount === 0) return { created: 0, mayBeMore: false }
  const createChunk = async (chunk: number): Promise<FanOut> => {
    let campaignId: string | undefined
    try {
      return await transaction(pool, async (tx) => {
        const { rows } = await tx.query<Running>({ name: 'lock-campaign', text: LOCK_CAMPAIGN, values: [skipped] })
        const campaign = rows[0]
        if (campaign === undefined) return { created: 0, mayBeMore: false }
        campaignId = campaign.id
        await tx.query(IN_ORDER)
        return { created: await createNext(tx, campaign, { erased, chunk, publicUrl }), mayBeMore: true }
      })
    } catch (error) {
      if (campaignId === undefined || (isUnavailable(error) && !isTimedOut(error))) throw error
      return { created: 0, mayBeMore: true, failed: { campaignId, error } }
    }
  }
  const first = await createChunk(CHUNK)
  if (first.failed === undefined) return first
  const { error } = first.failed
  if (isMissingPartition(error)) await ensurePartitions(pool)
  // After a timeout the database is very busy: the smaller chunk takes less time.
  else if (!isTimedOut(error)) return first
  return await createChunk(SMALL_CHUNK)
}

type ChunkOptions = { erased: ErasedPeople; chunk: number; publicUrl: string | undefined }

/** If all messages are the same, PostgreSQL creates them alone, and no recipient passes through this process. */
async function createNext(tx: Executor, campaign: Running, options: ChunkOptions): Promise<number> {
  const { id, accountId, groups, generations, cursor, isRetry, hasErased, isPersonal, window } = campaign
  if (isPersonal || window !== null || (hasErased && !isRetry)) return await createListed(tx, campaign, options)
  const { rows } = await tx.query<{ created: number }>(
    isRetry
      ? { name: 'create-retried-messages', text: CREATE_RETRIED, values: [id, options.chunk] }
      : {
          name: `create-campaign-messages ${groups.length}`,
          text: createFromGroups(groups),
          values: [id, options.chunk, accountId, groups, generations, cursor],
        },
  )
  return rows[0]?.created ?? 0
}
