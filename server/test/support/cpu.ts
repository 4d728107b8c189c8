/** What the work took of the processor: unlike the time that passed, it does not grow where others share the machine. */
export function cpuMs(work: () => void): number {
  const begun = process.cpuUsage()
  work()
  return process.cpuUsage(begun).user / 1_000
}

/** The same of work that waits: all that the process did meanwhile counts. */
export async function cpuMsOf(work: () => Promise<void>): Promise<number> {
  const begun = process.cpuUsage()
  await work()
  return process.cpuUsage(begun).user / 1_000
}
