import type { Logger } from 'pino'
import { type Loop, repeat } from '../background/repeat.ts'
import { isTimedOut, type Pool } from '../db/pool.ts'
import type { EventMetrics } from './metrics.ts'
import { BATCH_PAGES, findUnplaced, NOTHING, type Routed, routeEvents } from './router.ts'

// The longest that an event waits for its position in the log; after a quiet time, a little longer. A notification from the database for each
// event would cost every change more than these polls.
const ROUTE_EVERY_MS = 100
const QUIET_AFTER_MS = 10_000
const QUIET_ROUTE_EVERY_MS = 250

type RouterOptions = {
  pool: Pool
  logger: Logger
  metrics: EventMetrics
  /** Called when this process has given events their positions. Without it, the process posts no events, and routes as a standby. */
  onRouted: (() => void) | undefined
}

/**
 * Gives events their positions in the log. It runs in every process, whatever its roles: no caller can read an event before it has a position.
 * A poll that finds nothing is one statement, 170 µs of CPU.
 */
export function startRouter({ pool, logger, metrics, onRouted }: RouterOptions): Loop {
  const poll = createRouterPoll(pool, onRouted === undefined ? createStandby() : routeEvents)
  let routedAt = Number.NEGATIVE_INFINITY
  return repeat('route events', logger, async () => {
    const { routed, mayBeMore } = await poll()
    metrics.countRouted(routed, mayBeMore)
    if (routed > 0 && onRouted !== undefined) {
      routedAt = performance.now()
      onRouted()
    }
    if (mayBeMore) return 0
    return performance.now() - routedAt > QUIET_AFTER_MS ? QUIET_ROUTE_EVERY_MS : ROUTE_EVERY_MS
  })
}

/**
 * Makes a function that leaves pages to the other processes, and routes only if the first page still waits at the next poll. Routing takes
 * 1.4 ms of CPU, mostly regardless of the number of pages: if every process routed ten times a second, batches would be small.
 */
export function createStandby(): typeof routeEvents {
  let waiting: number | undefined
  let isDraining = false

  return async (pool, { from = 0, limit } = {}) => {
    const start = Math.min(from, waiting ?? from)
    if (!isDraining) {
      const before = waiting
      waiting = await findUnplaced(pool, start)
      if (waiting === undefined) return NOTHING
      // Other processes have routed the pages before it.
      if (waiting !== before) return { ...NOTHING, last: waiting - 1 }
    }
    const routed = await routeEvents(pool, { from: start, limit })
    isDraining = routed.mayBeMore
    return routed
  }
}

// Every poll finds pages whose transaction took at most this long; a statement takes 3.5 s at most.
const SLACK_MS = 10_000
// A transaction may stay open for longer. A scan of all pages without a position finds its pages.
const SCAN_ALL_EVERY_MS = 10_000

/**
 * Makes the function that polls for pages to route. A poll begins at recent page numbers: while another transaction stays open for long, such
 * as a backup, PostgreSQL can't remove the index entries of routed pages, and a scan from the beginning reads all of them. For 300,000
 * entries that took half a second, ten times a second.
 *
 * If a poll times out, the next one takes half as many pages, down to one, so that large pages can't stop the router permanently.
 */
export function createRouterPoll(pool: Pool, route = routeEvents): () => Promise<Routed> {
  let limit = BATCH_PAGES
  let scannedAllAt = Number.NEGATIVE_INFINITY
  // The greatest page numbers that were routed: until now, until the last checkpoint, and until the checkpoint before it, which is at least
  // as old as the slack.
  let last = 0
  let checkpoint = { at: Number.NEGATIVE_INFINITY, last }
  let settled = 0

  return async () => {
    const now = performance.now()
    const isCheckpointDue = now - checkpoint.at >= SLACK_MS
    if (isCheckpointDue) settled = checkpoint.last
    const from = now - scannedAllAt > SCAN_ALL_EVERY_MS ? 0 : settled
    try {
      const routed = await route(pool, { from, limit })
      if (from === 0 && !routed.mayBeMore) scannedAllAt = now
      last = Math.max(last, routed.last)
      if (isCheckpointDue) checkpoint = { at: now, last }
      limit = Math.min(limit * 2, BATCH_PAGES)
      return routed
    } catch (error) {
      if (isTimedOut(error)) limit = Math.max(1, Math.floor(limit / 2))
      throw error
    }
  }
}
