import { setTimeout as sleep } from 'node:timers/promises'
import { say, seconds } from '../progress.ts'
import type { Upset } from './plan.ts'
import type { Restartable } from './process.ts'

/** What was done to somebody, by the clock: from its beginning until it was well again. `frozenMs`: for so long it stood still, at first. */
export type Disturbance = { victim: string; manner: string; from: number; frozenMs: number; to: number }

/**
 * Does to each victim what is planned for it, in its order, and says so as it happens; victims don't wait for each other. When the time is
 * over nothing new is begun: who is frozen wakes up, who is gone is started, and then this returns. Where all is broken off, nobody is started.
 */
export async function upset(
  plan: readonly Upset[],
  victims: readonly Restartable[],
  lengthMs: number,
  brokenOff: AbortSignal,
): Promise<Disturbance[]> {
  const begunAt = performance.now()
  const over = AbortSignal.any([AbortSignal.timeout(lengthMs), brokenOff])
  const done: Disturbance[] = []
  async function lane(victim: Restartable): Promise<void> {
    for (const one of plan.filter(({ victim: name }) => name === victim.name)) {
      await sleep(Math.max(0, begunAt + one.atMs - performance.now()), undefined, { signal: over }).catch(() => {})
      if (over.aborted) return
      const from = Date.now()
      const frozenMs = await suffer(victim, one, over)
      if (!victim.isRunning()) await startAgain(victim, brokenOff)
      done.push({ victim: victim.name, manner: one.manner, from, frozenMs, to: Date.now() })
    }
  }
  await Promise.all(victims.map(lane))
  return done
}

/** Returns for how long it was frozen. */
async function suffer(victim: Restartable, { manner, frozenMs, goneMs }: Upset, over: AbortSignal): Promise<number> {
  const pause = (ms: number) => sleep(ms, undefined, { signal: over }).catch(() => {})
  const from = Date.now()
  if (manner !== 'killed') {
    say(`${victim.name} is frozen for ${seconds(frozenMs)}`)
    victim.freeze()
    await pause(frozenMs)
    if (manner === 'frozen') {
      victim.thaw()
      return Date.now() - from
    }
  }
  const wasFrozenMs = manner === 'hung' ? Date.now() - from : 0
  say(`${victim.name} is killed${manner === 'hung' ? ' in its sleep' : ''}, for ${seconds(goneMs)}`)
  await victim.kill()
  await pause(goneMs)
  return wasFrozenMs
}

const MOST_STARTS = 3

/** As whoever supervises it would. That one has ended by itself meanwhile, or hangs in its start, is for the verdict to tell of. */
async function startAgain(victim: Restartable, brokenOff: AbortSignal, startsLeft = MOST_STARTS): Promise<void> {
  if (brokenOff.aborted) return
  try {
    await victim.start()
  } catch (error) {
    const sentence = `${victim.name} does not start: ${(error as Error).message}`
    say(sentence)
    if (!brokenOff.aborted) victim.endedByItself?.push(sentence)
    await victim.kill()
    if (startsLeft > 1) await startAgain(victim, brokenOff, startsLeft - 1)
  }
}
