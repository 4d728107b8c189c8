import { isTimedOut, type Pool } from '../db/pool.ts'
import { BATCH_PAGES, type Routed, routeEvents } from './router.ts'

// What was committed within this time is looked for in every round; a statement takes 3.5 s at the most.
const SLACK_MS = 10_000
// What stayed open for longer is found by a look over all.
const LOOK_AT_ALL_EVERY_MS = 10_000

/**
 * Rounds of the router, one after the other. They begin where numbers are not old: while a transaction elsewhere stays open for long, such as a
 * backup, PostgreSQL can't clear away what was routed, and a look from the beginning would go over all of it. Measured: half a second
 * for 300,000, ten times a second.
 *
 * Where a round takes too long, the next one takes half as many, down to one: none can stop the router for good.
 */
export function createRounds(pool: Pool): () => Promise<Routed> {
  let limit = BATCH_PAGES
  let lookedAtAllAt = Number.NEGATIVE_INFINITY
  // The greatest numbers that were routed, and when: the last one that is older than the slack, and all after it.
  let reached: { at: number; number: number }[] = []

  function from(now: number): number {
    if (now - lookedAtAllAt > LOOK_AT_ALL_EVERY_MS) return 0
    return reached.findLast(isOld(now))?.number ?? 0
  }

  return async () => {
    const now = performance.now()
    const floor = from(now)
    try {
      const routed = await routeEvents(pool, { from: floor, limit })
      if (floor === 0 && !routed.mayBeMore) lookedAtAllAt = now
      if (routed.last > 0) reached = [...reached.slice(Math.max(0, reached.findLastIndex(isOld(now)))), { at: now, number: routed.last }]
      limit = Math.min(limit * 2, BATCH_PAGES)
      return routed
    } catch (error) {
      if (isTimedOut(error)) limit = Math.max(1, Math.floor(limit / 2))
      throw error
    }
  }
}

function isOld(now: number): (one: { at: number }) => boolean {
  return ({ at }) => at <= now - SLACK_MS
}
