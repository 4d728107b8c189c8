/** What the work took of the processor: unlike the time that passed, it does not grow where others share the machine. */
export function cpuMs(work: () => void): number {
  const begun = process.cpuUsage()
  work()
  return process.cpuUsage(begun).user / 1_000
}
