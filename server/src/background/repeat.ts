import type { Logger } from 'pino'
import { isUnavailable } from '../db/pool.ts'

export type Loop = {
  /** Starts the next iteration at once, or right after the current one. */
  wake: () => void
  /** Returns when the current iteration has ended. */
  stop: () => Promise<void>
}

// Nearly always the database is unavailable, and more frequent retries would not help.
const AFTER_FAILURE_MS = 1_000

export type LoopOptions = {
  /** Runs before the first iteration, again and again until it succeeds. */
  before?: () => Promise<unknown>
  onFailure?: () => void
}

/**
 * Runs `iterate` in a loop. Each iteration returns the milliseconds until the next one. After a failure the loop continues. It logs only the
 * first of several failures in a row.
 */
export function repeat(name: string, logger: Logger, iterate: () => Promise<number>, { before, onFailure }: LoopOptions = {}): Loop {
  let isPrepared = false
  let isStopped = false
  let isWoken = false
  let wakeUp = () => {}
  let hasFailed = false

  async function runOnce(): Promise<number> {
    try {
      if (!isPrepared) await before?.()
      isPrepared = true
      const pauseMs = await iterate()
      if (hasFailed) logger.info({ name }, 'loop recovered')
      hasFailed = false
      return pauseMs
    } catch (error) {
      onFailure?.()
      if (!hasFailed) logger[isUnavailable(error) ? 'warn' : 'error']({ name, err: error }, 'loop failed; will retry every second')
      hasFailed = true
      return AFTER_FAILURE_MS
    }
  }

  async function run(): Promise<void> {
    while (!isStopped) {
      isWoken = false
      const pauseMs = await runOnce()
      if (!isStopped && !(isWoken && !hasFailed)) await pause(pauseMs)
    }
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      wakeUp = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  const running = run()
  return {
    wake: () => {
      isWoken = true
      // While the loop fails, a wake with every new message would only make it fail more often.
      if (!hasFailed) wakeUp()
    },
    stop: async () => {
      isStopped = true
      wakeUp()
      await running
    },
  }
}
