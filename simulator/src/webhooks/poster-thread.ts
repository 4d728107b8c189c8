import { Worker } from 'node:worker_threads'
import type { Answer, Order, Report, Signed } from './poster.ts'

export type PosterThread = {
  /** Where rows go from now on, those that wait in the thread too. */
  aim: (url: string) => void
  /** What became of each is told by `onPosted`. */
  post: (rows: Signed[]) => void
  challenge: (url: string, body: string) => Promise<Answer>
  /** At once: what is under way is cut off. */
  stop: () => Promise<void>
}

/**
 * Webhooks are posted by a thread of its own, because the main thread is what limits the simulator. Of the 495 µs of CPU that a message
 * with its two receipts cost it, 250 µs are left to it with the signing, the envelopes and the HTTP in here; the sum of both stays what it
 * was. Rows and results cross in batches, one message for all of a turn; a message for each costs 11 µs more on the main thread.
 *
 * Where the thread dies, the process ends: what it had is owed still, and a restart goes on with it.
 */
export function startPosterThread(onPosted: (rows: { id: number; status: number }[]) => void): PosterThread {
  const worker = new Worker(new URL('./poster.ts', import.meta.url))
  const challenges = new Map<number, (answer: Answer) => void>()
  let lastChallenge = 0
  let stopping = false
  const order = (message: Order) => worker.postMessage(message)

  worker.on('message', (report: Report) => {
    if (stopping) return
    if (report.is === 'posted') return onPosted(report.rows)
    challenges.get(report.id)?.(report.answer)
    challenges.delete(report.id)
  })
  worker.on('error', (error) => {
    if (!stopping) die(error)
  })
  worker.on('exit', (code) => {
    if (!stopping) die(`exit code ${code}`)
  })

  return {
    aim: (url) => order({ is: 'target', url }),
    post: (rows) => order({ is: 'rows', rows }),
    challenge: (url, body) => {
      lastChallenge++
      const { promise, resolve } = Promise.withResolvers<Answer>()
      challenges.set(lastChallenge, resolve)
      order({ is: 'challenge', id: lastChallenge, url, body })
      return promise
    },
    stop: async () => {
      stopping = true
      for (const resolve of challenges.values()) resolve({ status: 0, text: 'the simulator stops' })
      await worker.terminate()
    },
  }
}

function die(why: unknown): never {
  console.error('The thread that posts webhooks died, so the simulator ends:', why)
  process.exit(1)
}
