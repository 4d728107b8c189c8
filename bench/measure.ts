import { cpuMs } from './proc.ts'

export type Figure = { what: string; perSecond: number; cpuMicroseconds: number | undefined }

/**
 * Keeps so many calls under way for the given time, after a warm-up of a quarter of it. `of` is the process whose work is measured: its CPU
 * time for each call is what a shared machine disturbs least.
 */
export async function measure(
  what: string,
  { seconds, concurrency, of, call }: { seconds: number; concurrency: number; of: { pid?: number | undefined }; call: () => Promise<void> },
): Promise<Figure> {
  let done = 0
  let stopping = false
  async function keepCalling(): Promise<void> {
    while (!stopping) {
      await call()
      done += 1
    }
  }
  const callers = Array.from({ length: concurrency }, keepCalling)
  await new Promise((resolve) => setTimeout(resolve, seconds * 250))
  const before = { done, at: performance.now(), cpu: cpuMs(of) }
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  const after = { done, at: performance.now(), cpu: cpuMs(of) }
  stopping = true
  await Promise.all(callers)
  const count = after.done - before.done
  return {
    what,
    perSecond: (count * 1000) / (after.at - before.at),
    cpuMicroseconds: after.cpu === undefined || before.cpu === undefined ? undefined : ((after.cpu - before.cpu) * 1000) / count,
  }
}

type Work = { count: number; concurrency: number; call: () => Promise<void>; isDone: () => Promise<boolean> }

/** So many calls from beginning to end, for work that goes on after the calls are answered; and half as many before, as a warm-up. */
export async function measureAll(what: string, of: { pid?: number | undefined }, work: Work): Promise<Figure> {
  await doAll({ ...work, count: work.count / 2 })
  const before = { at: performance.now(), cpu: cpuMs(of) }
  await doAll(work)
  const cpu = cpuMs(of)
  return {
    what,
    perSecond: (work.count * 1000) / (performance.now() - before.at),
    cpuMicroseconds: cpu === undefined || before.cpu === undefined ? undefined : ((cpu - before.cpu) * 1000) / work.count,
  }
}

async function doAll({ count, concurrency, call, isDone }: Work): Promise<void> {
  await inTurn(count, concurrency, call)
  await until(isDone)
}

/** So many calls, so many at once. */
export async function inTurn(count: number, width: number, call: () => Promise<unknown>): Promise<void> {
  let left = count
  async function keepCalling(): Promise<void> {
    while (left > 0) {
      left -= 1
      await call()
    }
  }
  await Promise.all(Array.from({ length: width }, keepCalling))
}

/** What takes turns, in rounds. Every other round goes backwards, so that none always comes after the same one. Rounds count from 1. */
export async function interleave(rounds: number, turns: ((round: number) => Promise<void>)[]): Promise<void> {
  for (let round = 1; round <= rounds; round++) {
    for (const turn of round % 2 === 1 ? turns : turns.toReversed()) await turn(round)
  }
}

export function print(figures: Figure[]): void {
  const [first] = figures
  const rows = figures.map(({ what, perSecond, cpuMicroseconds }) => [
    what,
    Math.round(perSecond).toLocaleString('en'),
    cpuMicroseconds === undefined ? '' : cpuMicroseconds.toFixed(0),
    (perSecond / (first as Figure).perSecond).toFixed(2),
  ])
  for (const row of [['', 'a second', 'CPU µs each', `of ${first?.what}`], ...rows]) {
    const [what = '', ...cells] = row
    process.stdout.write(`${what.padEnd(58)}${cells.map((cell) => cell.padStart(14)).join('')}\n`)
  }
}

/** For the person who waits. */
export function say(sentence: string): void {
  process.stderr.write(`${sentence}\n`)
}

export async function until(condition: () => Promise<boolean>, everyMs = 20): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, everyMs))
}

export function median(numbers: number[]): number {
  return percentile(numbers, 0.5)
}

export function percentile(numbers: number[], share: number): number {
  return numbers.toSorted((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * share))] as number
}

export function printTable(head: string[], rows: string[][]): void {
  for (const [what = '', ...cells] of [head, ...rows]) {
    process.stdout.write(`${what.padEnd(52)}${cells.map((cell) => cell.padStart(18)).join('')}\n`)
  }
}
