import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import packageJson from '../../package.json' with { type: 'json' }
import { eventBody } from '../events/pages.ts'
import type { Delivery, Target } from './claim.ts'
import type { Attempted } from './destination.ts'
import type { EndpointWindow } from './endpoint-window.ts'
import type { WebhookMetrics } from './metrics.ts'
import type { Result } from './results.ts'
import { isSuccess, nextTryMs } from './schedule.ts'
import { sign } from './sign.ts'

/**
 * Posts an event once, and returns the result. Returns undefined if the attempt was not started or was aborted, which does not count as an attempt.
 * Never throws. `readAt`: when the delivery was read, by performance.now().
 */
type MakeAttempt = (window: EndpointWindow, target: Target, delivery: Delivery, readAt: number) => Promise<Result | undefined>

// The delay after this machine could not open another connection.
const AFTER_FAULT_MS = 1_000
// An endpoint may postpone one event by up to a day with Retry-After, but all its events pause for at most this long.
const LONGEST_ASKED_PAUSE_MS = 300_000

type Options = { metrics: WebhookMetrics; logger: Logger; stopping: AbortSignal; aborting: AbortSignal }

export function createAttempt({ metrics, logger, stopping, aborting }: Options): MakeAttempt {
  async function post(window: EndpointWindow, target: Target, delivery: Delivery, at: Date): Promise<Attempted> {
    try {
      const body = eventBody(delivery)
      const headers = headersOf(delivery.eventId, at, body, target.secrets)
      return await window.destination(target.url).post({ headers, body, signal: aborting })
    } catch (error) {
      // The fault may concern this event only, so it is retried like any other failed attempt.
      logger.error({ endpointId: target.id, kind: delivery.kind, err: error }, 'failed to post an event; will retry')
      return { status: undefined, error: 'internal error', retryAfterMs: undefined, durationMs: 0, response: '', isStopped: false }
    }
  }

  return async (window, target, delivery, readAt) => {
    if (stopping.aborted) return
    const attemptedAt = new Date(delivery.readAt.getTime() + performance.now() - readAt)
    const { isStopped, retryAfterMs, ...attempted } = await post(window, target, delivery, attemptedAt)
    if (isStopped) return await sleep(AFTER_FAULT_MS, undefined, { signal: stopping }).catch(() => undefined)
    const isAccepted = isSuccess(attempted.status)
    window.recordAttempt(isAccepted)
    metrics.countAttempt(isAccepted ? 'accepted' : attempted.status === undefined ? 'no-response' : 'refused')
    const { endpointId, accountId, position, subjectId, generation, attempts } = delivery
    const askedMs = attempted.status === 429 || attempted.status === 503 ? retryAfterMs : 0
    const afterMs = isAccepted ? null : nextTryMs(attempts + 1, askedMs)
    const pauseMs = Math.min(askedMs ?? 0, LONGEST_ASKED_PAUSE_MS)
    return { endpointId, accountId, position, subjectId, generation, attempts, attemptedAt, isAccepted, afterMs, pauseMs, ...attempted }
  }
}

/** The headers of a post, with a signature for each secret. */
export function headersOf(eventId: string, at: Date, body: string, secrets: string[]): Record<string, string> {
  const signature = sign(secrets, { eventId, timestamp: timestampOf(at), body })
  return { ...unsignedHeaders(eventId, at), 'webhook-signature': signature }
}

/** The headers of a post, without the signature. */
export function unsignedHeaders(eventId: string, at: Date): Record<string, string> {
  return {
    'content-type': 'application/json',
    'user-agent': `herald/${packageJson.version}`,
    'webhook-id': eventId,
    'webhook-timestamp': String(timestampOf(at)),
  }
}

const timestampOf = (at: Date) => Math.floor(at.getTime() / 1_000)
