import { setTimeout as sleep } from 'node:timers/promises'
import { say, seconds } from '../support/progress.ts'
import type { Target } from '../topology/program.ts'
import type { PlannedFault } from './plan.ts'

/** A fault that was injected, by the clock: from its beginning until its target worked again. `frozenMs`: how long it was frozen at first. */
export type Fault = { target: string; manner: string; from: number; frozenMs: number; to: number }

/** Records a fault that `work` injects. */
export async function during<T>(faults: Fault[], target: string, manner: string, work: () => Promise<T>): Promise<T> {
  const fault = { target, manner, from: Date.now(), frozenMs: 0, to: Number.POSITIVE_INFINITY }
  faults.push(fault)
  const result = await work()
  fault.to = Date.now()
  return result
}

/**
 * Injects the planned faults; targets don't wait for each other. At the end of the time nothing new begins: frozen targets wake up, and gone
 * targets are started. If the run is broken off, nothing is started.
 */
export async function injectFaults(
  plan: readonly PlannedFault[],
  targets: readonly Target[],
  lengthMs: number,
  brokenOff: AbortSignal,
): Promise<Fault[]> {
  const begunAt = performance.now()
  const over = AbortSignal.any([AbortSignal.timeout(lengthMs), brokenOff])
  const done: Fault[] = []
  async function injectInto(target: Target): Promise<void> {
    for (const planned of plan.filter(({ target: name }) => name === target.name)) {
      await sleep(Math.max(0, begunAt + planned.atMs - performance.now()), undefined, { signal: over }).catch(() => {})
      if (over.aborted) return
      const from = Date.now()
      const frozenMs = await inject(target, planned, over)
      if (!target.isRunning()) await startAgain(target, brokenOff)
      done.push({ target: target.name, manner: planned.manner, from, frozenMs, to: Date.now() })
    }
  }
  await Promise.all(targets.map(injectInto))
  return done
}

/** Returns how long the target was frozen. */
async function inject(target: Target, { manner, frozenMs, goneMs }: PlannedFault, over: AbortSignal): Promise<number> {
  const pause = (ms: number) => sleep(ms, undefined, { signal: over }).catch(() => {})
  const from = Date.now()
  if (manner !== 'killed') {
    say(`${target.name} is frozen for ${seconds(frozenMs)}`)
    target.freeze()
    await pause(frozenMs)
    if (manner === 'frozen') {
      target.thaw()
      return Date.now() - from
    }
  }
  const wasFrozenMs = manner === 'hung' ? Date.now() - from : 0
  say(`${target.name} is killed${manner === 'hung' ? ' while it is frozen' : ''}, for ${seconds(goneMs)}`)
  await target.kill()
  await pause(goneMs)
  return wasFrozenMs
}

const MAX_STARTS = 3

/** Tries three times, as a supervisor would. A check reports a target that has ended by itself or hangs in its start. */
async function startAgain(target: Target, brokenOff: AbortSignal, startsLeft = MAX_STARTS): Promise<void> {
  if (brokenOff.aborted) return
  try {
    await target.start()
  } catch (error) {
    const sentence = `${target.name} does not start: ${(error as Error).message}`
    say(sentence)
    if (!brokenOff.aborted) target.endedByItself?.push(sentence)
    await target.kill()
    if (startsLeft > 1) await startAgain(target, brokenOff, startsLeft - 1)
  }
}
