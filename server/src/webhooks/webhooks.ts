import type { Logger } from 'pino'
import { repeat } from '../background/repeat.ts'
import type { Pool } from '../db/pool.ts'
import type { Keyring } from '../encryption/keyring.ts'
import { createRounds } from '../events/router.ts'
import { createDispatcher } from './dispatcher.ts'
import type { WebhookMetrics } from './metrics.ts'

export type Webhooks = { stop: () => Promise<void> }

export type WebhookOptions = { pool: Pool; keyring: Keyring; logger: Logger; metrics: WebhookMetrics; allowPrivate: boolean }

// The longest that an event waits for its position in the log, if no other process routes; after a quiet time, a little longer. A
// notification from the database for each event would cost every change more than these polls.
const ROUTE_EVERY_MS = 100
const QUIET_AFTER_MS = 10_000
const QUIET_ROUTE_EVERY_MS = 250

/** Gives events their position in the log, and posts them. Any number of processes can run it at once. */
export function startWebhooks({ pool, keyring, logger, metrics, allowPrivate }: WebhookOptions): Webhooks {
  const dispatcher = createDispatcher({ pool, keyring, logger, metrics, allowPrivate })
  const routeNext = createRounds(pool)
  let routedAt = Number.NEGATIVE_INFINITY
  async function route(): Promise<number> {
    const { routed, mayBeMore } = await routeNext()
    metrics.countRouted(routed, mayBeMore)
    if (routed > 0) {
      routedAt = performance.now()
      dispatcher.wake()
    }
    if (mayBeMore) return 0
    return performance.now() - routedAt > QUIET_AFTER_MS ? QUIET_ROUTE_EVERY_MS : ROUTE_EVERY_MS
  }
  const router = repeat('route events', logger, route)
  return {
    stop: async () => {
      await Promise.all([router.stop(), dispatcher.stop()])
    },
  }
}
