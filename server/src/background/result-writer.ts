import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { createBatcher } from '../db/batcher.ts'
import { isUnavailable } from '../db/pool.ts'

const MOST_AT_ONCE = 500
// A result waits this long for others, since a statement for one costs nearly as much as one for several.
const GATHER_MS = 20
const AGAIN_MS = 250
// A process that is told to stop does not wait for a database that is away.
const AFTER_STOP_MS = 3_000

/**
 * Writes results down, those of the same moment together. Tries until the given time (by performance.now()), since a result that is lost
 * costs a second call, or an SMS that nobody knows the fate of; from then on the entry is somebody else's. Says whether it counted.
 *
 * `record` says for each of its results whether it counted.
 */
export function createResultWriter<Result>(record: (results: Result[]) => Promise<boolean[]>, logger: Logger, stopping: AbortSignal) {
  const write = createBatcher(record, { maxItems: MOST_AT_ONCE, gatherMs: GATHER_MS })
  let stopAt = Number.POSITIVE_INFINITY
  stopping.addEventListener('abort', () => {
    stopAt = performance.now() + AFTER_STOP_MS
  })
  return async (result: Result, until: number): Promise<boolean> => {
    for (let hasFailed = false; performance.now() < Math.min(until, stopAt); hasFailed = true) {
      try {
        return await write(result)
      } catch (error) {
        if (!hasFailed && !isUnavailable(error)) logger.error({ err: error }, 'a result can’t be written')
        await sleep(AGAIN_MS)
      }
    }
    return false
  }
}
