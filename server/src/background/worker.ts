import type { Logger } from 'pino'
import { type LoopOptions, repeat } from './repeat.ts'
import { createResultWriter } from './result-writer.ts'
import { createTaskTracker } from './task-tracker.ts'

type Work<Result> = {
  name: string
  logger: Logger
  /** Claims work and starts it (`add`). Returns the milliseconds until the next claim. */
  claim: () => Promise<number>
  /** Returns, for each result, whether it was recorded. */
  record: (results: Result[]) => Promise<boolean[]>
} & LoopOptions

/** The parts that all dispatchers share: a loop that claims work, background tasks that do the work, and a writer of their results. */
export function createWorker<Result>({ name, logger, claim, record, ...options }: Work<Result>) {
  const stopping = new AbortController()
  const tasks = createTaskTracker()
  const write = createResultWriter(record, logger, stopping.signal)
  const loop = repeat(name, logger, claim, options)
  return {
    /** Aborted once `stop` is called: running tasks end soon. */
    stopping: stopping.signal,
    wake: loop.wake,
    /** Tracks a task, which `stop` waits for. */
    add: tasks.add,
    write,
    /** Stops claiming. Returns once all tasks have ended and their results are recorded. */
    stop: async (): Promise<void> => {
      stopping.abort()
      await loop.stop()
      await tasks.ended()
    },
  }
}
