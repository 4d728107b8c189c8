import type { Logger } from 'pino'
import { repeat } from '../background/repeat.ts'
import type { Pool } from '../db/pool.ts'
import type { Keyring } from '../encryption/keyring.ts'
import { createRounds } from '../events/router.ts'
import { createDispatcher } from './dispatcher.ts'
import type { WebhookMetrics } from './metrics.ts'

export type Webhooks = { stop: () => Promise<void> }

export type WebhookOptions = { pool: Pool; keyring: Keyring; logger: Logger; metrics: WebhookMetrics; allowPrivate: boolean }

// How long an event waits for its place in the log at the most, where no other process is at it; the first after a while, a little longer.
// Being told of each by the database would cost every change more than these looks cost.
const ROUTE_EVERY_MS = 100
const QUIET_AFTER_MS = 10_000
const ROUTE_QUIETLY_EVERY_MS = 250

/** Gives events their place in the log, and posts them. As many processes as one likes run it side by side. */
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
    return performance.now() - routedAt > QUIET_AFTER_MS ? ROUTE_QUIETLY_EVERY_MS : ROUTE_EVERY_MS
  }
  const router = repeat('route events', logger, route)
  return {
    stop: async () => {
      await Promise.all([router.stop(), dispatcher.stop()])
    },
  }
}
