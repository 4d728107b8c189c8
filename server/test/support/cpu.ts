/** What the work took of the processor: unlike the time that passed, it does not grow where others share the machine. */
export function cpuMs(work: () => void): number {
  const begun = process.cpuUsage()
  work()
  return process.cpuUsage(begun).user / 1_000
}

const BATCH = 10
const MOST_BATCHES = 30

/**
 * What the work takes on average, in the quickest of several batches: programs that share the core slow the others down. Stops at the first
 * batch below `enoughMs`. Measures batches, since the system counts in steps of 4 ms: shorter work would count as 0.
 */
export function quickestMs(work: () => void, enoughMs: number): number {
  let quickest = Number.POSITIVE_INFINITY
  for (let batch = 0; batch < MOST_BATCHES && quickest >= enoughMs; batch += 1) {
    const totalMs = cpuMs(() => {
      for (let time = 0; time < BATCH; time += 1) work()
    })
    quickest = Math.min(quickest, totalMs / BATCH)
  }
  return quickest
}

/** For work that waits: counts all that the process did meanwhile. */
export async function cpuMsOf(work: () => Promise<void>): Promise<number> {
  const begun = process.cpuUsage()
  await work()
  return process.cpuUsage(begun).user / 1_000
}
