import { setTimeout as sleep } from 'node:timers/promises'
import { say } from './measure.ts'

// One list of everything that was started or made, and how each of it is ended, so that nothing is left behind: at the end, after a failure,
// and when somebody breaks off. Children are in sessions of their own: Ctrl-C reaches this process alone, which ends them in order.

type End = () => void | Promise<void>

const DEATHS_ARE_KNOWN_MS = 500

const ends = new Set<End>()

/** Returns what ends it, which is done once, by whoever comes first. */
export function keep(end: End): () => Promise<void> {
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
export async function endAll(): Promise<void> {
  for (const end of [...ends].toReversed()) {
    try {
      await end()
    } catch (error) {
      say(`could not be ended: ${(error as Error).message}`)
      ends.delete(end)
    }
  }
}

const watchers = new Set<(error: Error) => void>()

/** Something failed that nobody waits for: a process died, a connection broke. Where nobody watches, everything ends. */
export function fail(error: Error): void {
  if (isBrokenOff) return
  for (const watcher of watchers) watcher(error)
  if (watchers.size > 0) return
  say(error.stack ?? error.message)
  void endAll().finally(() => process.exit(1))
}

/** Does some work until it is done, one of its processes dies, or its time is up. Whatever it has started is ended then. */
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
    // Connections break before it is known that their process has died.
    await sleep(DEATHS_ARE_KNOWN_MS)
    throw new Error([...new Set([(error as Error).message, ...reasons])].join('; '), { cause: error })
  } finally {
    clearTimeout(timer)
    // What the broken part still waits for fails while its processes are ended, and is no failure of the next part.
    await endAll()
    watchers.delete(watcher)
  }
}

let isBrokenOff = false
// npm passes a terminal's Ctrl-C on to who has got it already: two signals within this time are one.
const SAME_SIGNAL_MS = 1_000
let signalledAt: number | undefined

function breakOff(): void {
  const isFirst = signalledAt === undefined
  if (!isFirst && performance.now() - (signalledAt as number) < SAME_SIGNAL_MS) return
  if (!isFirst) process.exit(130)
  signalledAt = performance.now()
  isBrokenOff = true
  say('broken off; what was started is being ended')
  void endEverything().finally(() => process.exit(130))
}

/** Also what is being started while the rest is ended. */
async function endEverything(): Promise<void> {
  while (ends.size > 0) await endAll()
}

/** Never returns after a break-off: nothing new is begun, and the process ends as soon as everything else has ended. */
export async function unlessBrokenOff(): Promise<void> {
  if (isBrokenOff) await new Promise(() => {})
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, breakOff)
process.on('uncaughtException', fail)
process.on('unhandledRejection', (reason) => fail(reason instanceof Error ? reason : new Error(String(reason))))
