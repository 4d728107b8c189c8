import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { createBatcher } from '../db/batcher.ts'
import { isUnavailable, type Pool } from '../db/pool.ts'
import { type Result, recordResults } from './results.ts'

const MOST_AT_ONCE = 500
const AGAIN_MS = 250

/**
 * Writes results down, those of the same moment together. Tries until the lease ends, since a result that is lost costs a second call;
 * from then on the entry is somebody else's. Says whether it counted.
 */
export function createResultWriter(pool: Pool, logger: Logger): (result: Result, leaseEndsAt: number) => Promise<boolean> {
  const record = createBatcher(
    async (results: Result[]) => {
      const counted = await recordResults(pool, results)
      return results.map(({ messageId }) => counted.has(messageId))
    },
    { maxItems: MOST_AT_ONCE },
  )
  return async (result, leaseEndsAt) => {
    for (let hasFailed = false; performance.now() < leaseEndsAt; hasFailed = true) {
      try {
        return await record(result)
      } catch (error) {
        if (!hasFailed && !isUnavailable(error)) logger.error({ err: error }, 'a result can’t be written')
        await sleep(AGAIN_MS)
      }
    }
    return false
  }
}
