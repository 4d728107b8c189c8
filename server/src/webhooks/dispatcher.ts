import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { repeat } from '../background/repeat.ts'
import { createResultWriter } from '../background/result-writer.ts'
import { createUnderWay } from '../background/under-way.ts'
import type { Pool } from '../db/pool.ts'
import type { Keyring } from '../encryption/keyring.ts'
import { createLane, type Lane } from './lane.ts'
import type { WebhookMetrics } from './metrics.ts'
import { createPosting } from './posting.ts'
import { type Result, recordAttempts } from './results.ts'
import { type Delivery, readTargets, releaseEndpoints, subjectOf, type Target, takeDue } from './take.ts'

export type Dispatcher = {
  /** Something may be due. */
  wake: () => void
  stop: () => Promise<void>
}

export type DispatcherOptions = { pool: Pool; keyring: Keyring; logger: Logger; metrics: WebhookMetrics; allowPrivate: boolean }

// What another node has routed for an endpoint that this one serves, and retries whose time has come.
const POLL_MS = 250
// Who serves none has no hurry: whoever routes an event takes up its endpoint.
const IDLE_POLL_MS = 1_000
// Looking costs the database at most a fifth of its time, should there be ten thousand endpoints with something put off.
const REST = 4
// A result that can't be written for so long is given up: the event comes twice.
const WRITE_WITHIN_MS = 60_000
// Calls under way may end in this time before they are broken off, and come again.
const STOP_MS = 2_500

/** Posts events to the endpoints of callers, each endpoint on its own, and writes down what came of it. */
export function createDispatcher({ pool, keyring, logger, metrics, allowPrivate }: DispatcherOptions): Dispatcher {
  const lease = randomUUID()
  const lanes = new Map<number, Lane>()
  const targetsOf = createTargetReader(pool, keyring, logger)
  const underWay = createUnderWay()
  const stopping = new AbortController()
  const breakingOff = new AbortController()
  const post = createPosting({ metrics, logger, stopping: stopping.signal, breakingOff: breakingOff.signal })
  const write = createResultWriter((results: Result[]) => record(pool, logger, results), logger, stopping.signal)

  async function round(): Promise<number> {
    const begunAt = performance.now()
    closeIdle()
    const room = new Map([...lanes].map(([id, lane]) => [id, lane.room()]))
    const busy = [...lanes].flatMap(([endpointId, lane]) => [...lane.underWay].map((subject) => ({ endpointId, subject })))
    const due = Map.groupBy(await takeDue(pool, { lease, room, underWay: busy }), ({ endpointId }) => endpointId)
    const targets = due.size === 0 ? new Map<number, Target>() : await targetsOf([...due.keys()])
    const readAt = performance.now()
    for (const [id, free] of room) lanes.get(id)?.noteRead((due.get(id)?.length ?? 0) >= free)
    for (const [id, deliveries] of due) {
      const target = targets.get(id)
      // Removed or disabled between the two looks.
      if (target !== undefined) begin(target, deliveries, readAt)
    }
    return Math.max(lanes.size === 0 ? IDLE_POLL_MS : POLL_MS, REST * (performance.now() - begunAt))
  }

  function begin(target: Target, deliveries: Delivery[], readAt: number): void {
    const lane = lanes.get(target.id) ?? createLane(allowPrivate)
    lanes.set(target.id, lane)
    for (const delivery of deliveries) {
      lane.begin(subjectOf(delivery))
      underWay.add(deliver(lane, target, delivery, readAt))
    }
  }

  /** What is broken off, or not begun any more, stays due. */
  async function deliver(lane: Lane, target: Target, delivery: Delivery, readAt: number): Promise<void> {
    const result = await post(lane, target, delivery, readAt)
    // Writing does not count: while it goes on, the next ones are posted.
    lane.answered()
    if (lane.wantsMore()) loop.wake()
    if (result !== undefined) await write(result, performance.now() + WRITE_WITHIN_MS)
    lane.end(subjectOf(delivery))
    if (delivery.hasNext) loop.wake()
  }

  function closeIdle(): void {
    for (const [id, lane] of lanes) if (lane.isIdle()) close(id, lane)
  }

  function close(id: number, lane: Lane): void {
    lanes.delete(id)
    void lane.close()
  }

  const loop = repeat('post events', logger, round)
  return {
    wake: loop.wake,
    stop: async () => {
      stopping.abort()
      const patience = setTimeout(() => breakingOff.abort(), STOP_MS)
      await loop.stop()
      await underWay.ended()
      clearTimeout(patience)
      for (const [id, lane] of lanes) close(id, lane)
      await releaseEndpoints(pool, lease).catch(() => {})
    },
  }
}

/** Events for an endpoint whose secrets can't be decrypted stay due. That is logged once, until they can be decrypted. */
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
    logger.warn({ endpointId, accountId }, 'a webhook endpoint has taken nothing for five days, and is disabled')
  }
  return results.map(() => true)
}
