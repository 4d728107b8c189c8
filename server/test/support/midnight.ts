import { until } from './until.ts'

const DAY_MS = 86_400_000
/** Longer than a test takes. */
const NEEDED_MS = 60_000

/** For tests that count what happens on one day in UTC: waits for the next day if this one ends within a minute. */
export async function untilFarFromMidnight(): Promise<void> {
  await until('a new day has begun', () => DAY_MS - (Date.now() % DAY_MS) >= NEEDED_MS)
}
