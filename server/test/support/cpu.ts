/** What the work took of the processor: unlike the time that passed, it does not grow where others share the machine. */
export function cpuMs(work: () => void): number {
  const begun = process.cpuUsage()
  work()
  return process.cpuUsage(begun).user / 1_000
}

const BATCH = 20
const MOST_BATCHES = 40

/** Takes a millisecond on an idle core of 2.5 GHz. */
function yardstick(): void {
  let value = 1
  for (let round = 0; round < 700_000; round += 1) value = (Math.imul(value, 31) + round) | 0
  if (value === 0) throw new Error('never: the check keeps the loop from being optimized away')
}

const batchMs = (work: () => void) =>
  cpuMs(() => {
    for (let time = 0; time < BATCH; time += 1) work()
  })

/**
 * The CPU time of the work on an idle core of 2.5 GHz, from the quickest of several batches. On a shared core even CPU time can be four times
 * as long, so each batch is compared with a yardstick. Stops at the first batch below `enoughMs`. Measures batches, since some systems count
 * in steps of 4 ms: shorter work would count as 0.
 */
export function quickestMs(work: () => void, enoughMs: number): number {
  let quickest = Number.POSITIVE_INFINITY
  for (let batch = 0; batch < MOST_BATCHES && quickest >= enoughMs; batch += 1) {
    quickest = Math.min(quickest, batchMs(work) / batchMs(yardstick))
  }
  return quickest
}

/** For work that waits: counts all that the process did meanwhile. */
export async function cpuMsOf(work: () => Promise<void>): Promise<number> {
  const begun = process.cpuUsage()
  await work()
  return process.cpuUsage(begun).user / 1_000
}
