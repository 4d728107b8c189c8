import { setTimeout as sleep } from 'node:timers/promises'
import type { Bench } from '../part.ts'
import { byMedian, type Figure, grouped, labelled } from './figures.ts'
import { type Cpu, eachMicroseconds } from './process-usage.ts'

/** `cpu`: µs for each request, message or row, by process. */
export type Rate = { perSecond: number; cpu: Cpu }

/** What is measured in turns with other sides, and the result of each of its rounds. */
export type Side<Round = Rate> = { label: string; run: () => Promise<Round>; rounds: Round[] }

export function sideOf<Round>(label: string, run: () => Promise<Round>): Side<Round> {
  return { label, run, rounds: [] }
}

/** `show`: what progress says of a round. */
type Turns<Round> = { rounds: number; show: (round: Round) => string }

/** Every other round goes backwards, so that no side always follows the same one. */
export async function takeTurns<Round>({ say }: Bench, sides: Side<Round>[], { rounds, show }: Turns<Round>): Promise<void> {
  for (let round = 1; round <= rounds; round++) {
    for (const side of round % 2 === 1 ? sides : sides.toReversed()) {
      const result = await side.run()
      side.rounds.push(result)
      say(`round ${round} of ${rounds}: ${labelled(side.label, show(result))}`)
    }
  }
}

/** A round of each side that does not count. */
export async function warmUp(sides: Side<unknown>[]): Promise<void> {
  for (const { run } of sides) await run()
}

export function showRate({ perSecond }: Rate): string {
  return `${grouped(perSecond)} a second`
}

export function ratesOf({ rounds }: Side): Figure {
  return byMedian(rounds.map(({ perSecond }) => perSecond))
}

/** µs of CPU time for each, of one process. */
export function cpuOf(name: string): (side: Side) => Figure {
  return ({ rounds }) => byMedian(rounds.map(({ cpu }) => cpu[name] ?? 0))
}

/** One line for the rate and one for the CPU time of each process of `side`, beside the same of `base`. */
export function reportRates(
  { report }: Bench,
  side: Side,
  base: Side | undefined,
  target?: Parameters<Bench['report']>[0]['target'],
): void {
  const limitBy = (read: (of: Side) => Figure) => (base === undefined ? undefined : { what: base.label, ...read(base) })
  report({ what: side.label, unit: 'a second', measured: ratesOf(side), limit: limitBy(ratesOf), target })
  for (const name of Object.keys(side.rounds[0]?.cpu ?? {})) {
    const isShared = base?.rounds[0]?.cpu[name] !== undefined
    const limit = isShared ? limitBy(cpuOf(name)) : undefined
    report({ what: `${side.label}: CPU of each, ${name}`, unit: 'µs', measured: cpuOf(name)(side), limit })
  }
}

/** The rate of `count` items. `cpu`: the time that was used so far, in ms. */
export async function timed(count: number, cpu: () => Cpu, work: () => Promise<unknown>): Promise<Rate> {
  const from = { at: performance.now(), cpu: cpu() }
  await work()
  const perSecond = (count * 1_000) / (performance.now() - from.at)
  return { perSecond, cpu: eachMicroseconds(from.cpu, cpu(), count) }
}

/** Keeps `concurrency` calls pending for so many seconds, after a warm-up of a quarter of that. */
export async function saturate(
  { seconds, concurrency, cpu }: { seconds: number; concurrency: number; cpu: () => Cpu },
  call: () => Promise<unknown>,
): Promise<Rate> {
  let done = 0
  let isOver = false
  async function keepCalling(): Promise<void> {
    while (!isOver) {
      await call()
      done += 1
    }
  }
  const calling = Promise.all(Array.from({ length: concurrency }, keepCalling))
  await Promise.race([sleep(seconds * 250), calling])
  const from = { done, at: performance.now(), cpu: cpu() }
  await Promise.race([sleep(seconds * 1_000), calling])
  const count = done - from.done
  const rate = { perSecond: (count * 1_000) / (performance.now() - from.at), cpu: eachMicroseconds(from.cpu, cpu(), count) }
  isOver = true
  await calling
  return rate
}

/** Makes `count` calls, `width` at a time. */
export async function inParallel(count: number, width: number, call: () => Promise<unknown>): Promise<void> {
  let left = count
  async function keepCalling(): Promise<void> {
    while (left > 0) {
      left -= 1
      await call()
    }
  }
  await Promise.all(Array.from({ length: width }, keepCalling))
}

export async function until(condition: () => Promise<boolean>, everyMs = 20): Promise<void> {
  while (!(await condition())) await sleep(everyMs)
}
