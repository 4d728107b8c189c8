import type { Logger } from 'pino'
import packageJson from '../../package.json' with { type: 'json' }
import { eventBody } from '../events/feed.ts'
import type { Lane } from './lane.ts'
import type { WebhookMetrics } from './metrics.ts'
import type { Attempted } from './post.ts'
import type { Result } from './results.ts'
import { nextTryMs } from './schedule.ts'
import { sign } from './sign.ts'
import type { Delivery, Target } from './take.ts'

/**
 * Tries to post an event, and says what that means for it. Undefined where it was not begun any more, or broken off: as if it had never been
 * tried. Never throws. `readAt`: when the delivery was read, by performance.now().
 */
export type Posting = (lane: Lane, target: Target, delivery: Delivery, readAt: number) => Promise<Result | undefined>

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
    if (isStopped) return
    const { status } = attempted
    const isTaken = status !== undefined && status >= 200 && status < 300
    lane.judge(isTaken)
    metrics.countAttempt(isTaken ? 'taken' : status === undefined ? 'no-answer' : 'refused')
    const asked = status === 429 || status === 503 ? retryAfterMs : undefined
    const { endpointId, accountId, position, attempts } = delivery
    const afterMs = isTaken ? null : nextTryMs(attempts + 1, asked)
    return { endpointId, accountId, position, attempts, attemptedAt, isTaken, afterMs, ...attempted }
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
