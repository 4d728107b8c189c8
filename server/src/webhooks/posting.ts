import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import packageJson from '../../package.json' with { type: 'json' }
import { eventBody } from '../events/pages.ts'
import type { Attempted } from './destination.ts'
import type { Lane } from './lane.ts'
import type { WebhookMetrics } from './metrics.ts'
import type { Result } from './results.ts'
import { isSuccess, nextTryMs } from './schedule.ts'
import { sign } from './sign.ts'
import type { Delivery, Target } from './take.ts'

/**
 * Tries to post an event, and says what that means for it. Undefined where it was not begun any more, or broken off: as if it had never been
 * tried. Never throws. `readAt`: when the delivery was read, by performance.now().
 */
export type Posting = (lane: Lane, target: Target, delivery: Delivery, readAt: number) => Promise<Result | undefined>

// This machine has no connection left for it: soon again, and not at once.
const AFTER_FAULT_MS = 1_000
// One event may be asked to come back in a day; all of them wait for no more than this, and then it is asked again.
const LONGEST_ASKED_PAUSE_MS = 300_000

type Options = { metrics: WebhookMetrics; logger: Logger; stopping: AbortSignal; breakingOff: AbortSignal }

export function createPosting({ metrics, logger, stopping, breakingOff }: Options): Posting {
  async function post(lane: Lane, target: Target, delivery: Delivery, at: Date): Promise<Attempted> {
    try {
      const body = eventBody(delivery)
      const headers = headersOf(delivery.eventId, at, body, target.secrets)
      return await lane.destination(target.url).post({ headers, body, signal: breakingOff })
    } catch (error) {
      // Which one event has and others need not have: it is tried again like any other that fails.
      logger.error({ endpointId: target.id, kind: delivery.kind, err: error }, 'an event could not be posted')
      return { status: undefined, error: 'a fault of the service', retryAfterMs: undefined, durationMs: 0, answer: '', isStopped: false }
    }
  }

  return async (lane, target, delivery, readAt) => {
    if (stopping.aborted) return
    const attemptedAt = new Date(delivery.readAt.getTime() + performance.now() - readAt)
    const { isStopped, retryAfterMs, ...attempted } = await post(lane, target, delivery, attemptedAt)
    if (isStopped) return await sleep(AFTER_FAULT_MS, undefined, { signal: stopping }).catch(() => undefined)
    const isTaken = isSuccess(attempted.status)
    lane.judge(isTaken)
    metrics.countAttempt(isTaken ? 'taken' : attempted.status === undefined ? 'no-answer' : 'refused')
    const { endpointId, accountId, position, generation, attempts } = delivery
    const askedMs = attempted.status === 429 || attempted.status === 503 ? retryAfterMs : 0
    const afterMs = isTaken ? null : nextTryMs(attempts + 1, askedMs)
    const pauseMs = Math.min(askedMs ?? 0, LONGEST_ASKED_PAUSE_MS)
    return { endpointId, accountId, position, generation, attempts, attemptedAt, isTaken, afterMs, pauseMs, ...attempted }
  }
}

function headersOf(eventId: string, at: Date, body: string, secrets: string[]): Record<string, string> {
  const timestamp = Math.floor(at.getTime() / 1_000)
  return {
    'content-type': 'application/json',
    'user-agent': `herald/${packageJson.version}`,
    'webhook-id': eventId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': sign(secrets, { eventId, timestamp, body }),
  }
}
