/** The CPU time of synchronous work in this thread. Unlike elapsed time, it does not grow when other processes use the machine. */
export function cpuMs(work: () => void): number {
  const before = threadMs()
  work()
  return threadMs() - before
}

// User and system time together: the kernel measures their sum, and only estimates the split in steps of 4 ms. Linux updates the sum of the
// running thread only at its ticks, which are 4 ms apart, and when the time of the whole process is read.
function threadMs(): number {
  process.cpuUsage()
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

const BATCH = 5
const MAX_PAIRS = 300

/** Parsing this JSON takes 1 ms on an idle Neoverse N1 at 3 GHz. */
const YARDSTICK = JSON.stringify(Array.from({ length: 3_400 }, (_, index) => ({ name: `name ${index}`, value: index })))

const batchMs = (work: () => void) =>
  cpuMs(() => {
    for (let time = 0; time < BATCH; time += 1) work()
  })

/**
 * The CPU time of the work in multiples of a yardstick of 1 ms: the quickest batch of each, from pairs that alternate. CPU time on a shared core
 * can be twice as long, since other work uses its caches. The yardstick parses JSON, so it slows down as the measured work does. Stops at the
 * first result below `enoughMs`.
 */
export function quickestMs(work: () => void, enoughMs: number): number {
  let [workMs, yardstickMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let pair = 0; pair < MAX_PAIRS && !(workMs / yardstickMs < enoughMs); pair += 1) {
    workMs = Math.min(workMs, batchMs(work))
    yardstickMs = Math.min(
      yardstickMs,
      batchMs(() => JSON.parse(YARDSTICK)),
    )
  }
  return workMs / yardstickMs
}

/** The CPU time of asynchronous work: all that the process does until it ends. */
export async function cpuMsOf(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  return process.cpuUsage(before).user / 1_000
}
