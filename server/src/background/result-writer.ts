import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { createBatcher } from '../db/batcher.ts'
import { isUnavailable } from '../db/pool.ts'

const BATCH_SIZE = 500
// How long a result waits for other results: a statement for one result costs nearly as much as a statement for several.
const GATHER_MS = 20
const RETRY_MS = 250
// How long a stopping process waits for an unavailable database.
const AFTER_STOP_MS = 3_000

/**
 * Makes a function that records a result; concurrent results share a statement. It retries until the given time (by performance.now()), since
 * a lost result costs a second call, or leaves an SMS with an unknown outcome. After that time the lease has ended, and another worker may
 * have claimed the entry. It returns whether the result was recorded.
 *
 * `record` returns, for each of its results, whether it was recorded.
 */
export function createResultWriter<Result>(record: (results: Result[]) => Promise<boolean[]>, logger: Logger, stopping: AbortSignal) {
  const write = createBatcher(record, { maxItems: BATCH_SIZE, gatherMs: GATHER_MS })
  let stopAt = Number.POSITIVE_INFINITY
  stopping.addEventListener('abort', () => {
    stopAt = performance.now() + AFTER_STOP_MS
  })
  return async (result: Result, until: number): Promise<boolean> => {
    for (let hasFailed = false; performance.now() < Math.min(until, stopAt); hasFailed = true) {
      try {
        return await write(result)
      } catch (error) {
        if (!hasFailed && !isUnavailable(error)) logger.error({ err: error }, 'failed to record a result; will retry')
        await sleep(RETRY_MS)
      }
    }
    return false
  }
}
