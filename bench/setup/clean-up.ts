import { setTimeout as sleep } from 'node:timers/promises'

// A list of everything that was started or created, and how to end each of it: at the end of a part, after a failure, and after Ctrl-C.
// Children have sessions of their own, so that Ctrl-C reaches this process alone, which ends them in order.

type End = () => void | Promise<void>

// Connections break before the exit of their process is known.
const EXITS_ARE_KNOWN_MS = 500

const ends = new Set<End>()

/** Progress, on the error stream. */
export function say(sentence: string): void {
  process.stderr.write(`${sentence}\n`)
}

/** Returns the function that ends it, at most once. */
export function atEnd(end: End): () => Promise<void> {
  let ending: Promise<void> | undefined
  async function endOnce(): Promise<void> {
    ending ??= (async () => await end())()
    await ending
    ends.delete(endOnce)
  }
  ends.add(endOnce)
  return endOnce
}

/** The last first: processes before the database that they use, and all before their directories. */
async function endAll(): Promise<void> {
  for (const end of [...ends].toReversed()) {
    try {
      await end()
    } catch (error) {
      say(`failed to clean up: ${(error as Error).message}`)
      ends.delete(end)
    }
  }
}

const watchers = new Set<(error: Error) => void>()

/** For a failure that no call returns: a process died, a connection broke. Outside of a part, it ends the program. */
export function fail(error: Error): void {
  if (isInterrupted) return
  for (const watcher of watchers) watcher(error)
  if (watchers.size > 0) return
  say(error.stack ?? error.message)
  void endAll().finally(() => process.exit(1))
}

/** Works until the work is done, one of its processes dies, or its time is over. Ends everything that it started. */
export async function watched(work: () => Promise<void>, mostMinutes: number): Promise<void> {
  const { promise: failed, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`not done after ${mostMinutes} minutes`)), mostMinutes * 60_000)
  const reasons = new Set<string>()
  function watcher(error: Error): void {
    reasons.add(error.message)
    reject(error)
  }
  watchers.add(watcher)
  try {
    await Promise.race([work(), failed])
  } catch (error) {
    await sleep(EXITS_ARE_KNOWN_MS)
    throw new Error([...new Set([(error as Error).message, ...reasons])].join('; '), { cause: error })
  } finally {
    clearTimeout(timer)
    // What the failed part still waits for fails while its processes end. That is no failure of the next part.
    await endAll()
    watchers.delete(watcher)
  }
}

let isInterrupted = false
// npm forwards a terminal's Ctrl-C to a process that got it already: two signals within this time are one.
const SAME_SIGNAL_MS = 1_000
let signalledAt: number | undefined

function interrupt(): void {
  if (signalledAt !== undefined && performance.now() - signalledAt < SAME_SIGNAL_MS) return
  if (signalledAt !== undefined) process.exit(130)
  signalledAt = performance.now()
  isInterrupted = true
  say('interrupted; cleaning up')
  void endEverything().finally(() => process.exit(130))
}

/** Including what is still being started. */
async function endEverything(): Promise<void> {
  while (ends.size > 0) await endAll()
}

/** Never returns after an interrupt: nothing new starts, and the process exits when everything has ended. */
export async function unlessInterrupted(): Promise<void> {
  if (isInterrupted) await new Promise(() => {})
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt)
process.on('uncaughtException', fail)
process.on('unhandledRejection', (reason) => fail(reason instanceof Error ? reason : new Error(String(reason))))
