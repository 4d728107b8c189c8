import type { Logger } from 'pino'
import { isUnavailable } from '../db/pool.ts'

export type Loop = {
  /** To the next round at once; during a round, to one right after it. */
  wake: () => void
  /** Returns when the round under way is over. */
  stop: () => Promise<void>
}

// The database is away, most often: no use in asking it faster.
const AFTER_FAILURE_MS = 1_000

export type LoopOptions = {
  /** Has to succeed once, before the first round. */
  before?: () => Promise<unknown>
  onFailure?: () => void
}

/**
 * Runs a round again and again, each as long after the one before as that says. A round that fails is told in the log, the first of
 * several in a row; the loop goes on.
 */
export function repeat(name: string, logger: Logger, round: () => Promise<number>, { before, onFailure }: LoopOptions = {}): Loop {
  let isPrepared = false
  let isStopped = false
  let isWoken = false
  let wakeUp = () => {}
  let hasFailed = false

  async function runOnce(): Promise<number> {
    try {
      if (!isPrepared) await before?.()
      isPrepared = true
      const pauseMs = await round()
      if (hasFailed) logger.info({ name }, 'works again')
      hasFailed = false
      return pauseMs
    } catch (error) {
      onFailure?.()
      if (!hasFailed) logger[isUnavailable(error) ? 'warn' : 'error']({ name, err: error }, 'fails, and is tried again every second')
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
      // While it fails, being woken by every new message would only make it fail more often.
      if (!hasFailed) wakeUp()
    },
    stop: async () => {
      isStopped = true
      wakeUp()
      await running
    },
  }
}
