import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { createWorker } from '../background/worker.ts'
import type { Pool } from '../db/pool.ts'
import type { Keyring } from '../encryption/keyring.ts'
import type { WebhookHosts } from '../public-host.ts'
import { createAttempt } from './attempt.ts'
import { claimDue, type Delivery, readTargets, releaseEndpoints, subjectOf, type Target } from './claim.ts'
import { createEndpointWindow, type EndpointWindow } from './endpoint-window.ts'
import type { WebhookMetrics } from './metrics.ts'
import { type Result, recordAttempts } from './results.ts'

type Dispatcher = {
  /** Call it when something may be due. */
  wake: () => void
  stop: () => Promise<void>
}

type DispatcherOptions = { pool: Pool; keyring: Keyring; logger: Logger; metrics: WebhookMetrics; hosts: WebhookHosts }

// Polling finds events that another node has routed for an endpoint of this process, and retries that are due.
const POLL_MS = 250
// A process that serves no endpoint can poll less often: a process with this role routes nearly all events, and claims their endpoints.
const IDLE_POLL_MS = 1_000
// Polling takes at most a fifth of the time, even with ten thousand endpoints that have postponed events.
const REST_FACTOR = 4
// After failing to record a result for this long, the worker drops it: the event is then posted twice.
const WRITE_WITHIN_MS = 60_000
// How long calls in progress may take to finish when the process stops. Then they are aborted, and their events stay due.
const STOP_MS = 2_500

/** Posts events to the callers' endpoints, each independently of the others, and records the results. */
export function createDispatcher({ pool, keyring, logger, metrics, hosts }: DispatcherOptions): Dispatcher {
  const lease = randomUUID()
  const windows = new Map<number, EndpointWindow>()
  const targetsOf = createTargetReader(pool, keyring, logger)
  const aborting = new AbortController()

  async function poll(): Promise<number> {
    const startedAt = performance.now()
    closeIdle()
    const room = new Map([...windows].map(([id, window]) => [id, window.room()]))
    const busy = [...windows].flatMap(([endpointId, window]) => [...window.subjects].map((subject) => ({ endpointId, subject })))
    const due = Map.groupBy(await claimDue(pool, { lease, room, underWay: busy }), ({ endpointId }) => endpointId)
    const targets = due.size === 0 ? new Map<number, Target>() : await targetsOf([...due.keys()])
    const readAt = performance.now()
    for (const [id, freeCalls] of room) windows.get(id)?.recordClaim((due.get(id)?.length ?? 0) >= freeCalls)
    for (const [id, deliveries] of due) {
      const target = targets.get(id)
      // The endpoint was removed or disabled after the claim.
      if (target !== undefined) begin(target, deliveries, readAt)
    }
    return Math.max(windows.size === 0 ? IDLE_POLL_MS : POLL_MS, REST_FACTOR * (performance.now() - startedAt))
  }

  function begin(target: Target, deliveries: Delivery[], readAt: number): void {
    const window = windows.get(target.id) ?? createEndpointWindow(hosts)
    windows.set(target.id, window)
    for (const delivery of deliveries) {
      window.begin(subjectOf(delivery))
      worker.add(deliver(window, target, delivery, readAt))
    }
  }

  /** A delivery whose attempt was aborted or not started stays due. */
  async function deliver(window: EndpointWindow, target: Target, delivery: Delivery, readAt: number): Promise<void> {
    const result = await makeAttempt(window, target, delivery, readAt)
    // The call is over. Writing its result does not use the window: the next calls start meanwhile.
    window.endCall()
    if (window.wantsMore()) worker.wake()
    if (result !== undefined) await worker.write(result, performance.now() + WRITE_WITHIN_MS)
    window.end(subjectOf(delivery))
    if (delivery.hasNext) worker.wake()
  }

  function closeIdle(): void {
    for (const [id, window] of windows) if (window.isIdle()) close(id, window)
  }

  function close(id: number, window: EndpointWindow): void {
    windows.delete(id)
    void window.close()
  }

  const worker = createWorker({ name: 'post events', logger, claim: poll, record: (results: Result[]) => record(pool, logger, results) })
  const makeAttempt = createAttempt({ metrics, logger, stopping: worker.stopping, aborting: aborting.signal })
  return {
    wake: worker.wake,
    stop: async () => {
      const timer = setTimeout(() => aborting.abort(), STOP_MS)
      await worker.stop()
      clearTimeout(timer)
      for (const [id, window] of windows) close(id, window)
      await releaseEndpoints(pool, lease).catch(() => {})
    },
  }
}

/** Events for an endpoint whose secrets cannot be decrypted stay due. The error is logged once, until the secrets can be decrypted. */
function createTargetReader(pool: Pool, keyring: Keyring, logger: Logger): (ids: number[]) => Promise<Map<number, Target>> {
  const logged = new Set<number>()
  return async (ids) => {
    const { targets, unreadable } = await readTargets(pool, ids, keyring)
    for (const id of targets.keys()) logged.delete(id)
    for (const [endpointId, err] of unreadable) {
      if (!logged.has(endpointId)) logger.error({ endpointId, err }, 'failed to decrypt a webhook secret; its events wait')
      logged.add(endpointId)
    }
    return targets
  }
}

async function record(pool: Pool, logger: Logger, results: Result[]): Promise<boolean[]> {
  for (const { endpointId, accountId } of await recordAttempts(pool, results)) {
    logger.warn({ endpointId, accountId }, 'disabled a webhook endpoint that failed for five days')
  }
  return results.map(() => true)
}
