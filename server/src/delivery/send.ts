import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Outcome, RcsCarrier, Refusal, RevokeOutcome } from '../carriers/carrier.ts'
import { backOffMs } from './back-off.ts'
import type { Entry } from './claim.ts'
import type { DeliveryMetrics } from './metrics.ts'
import type { Claimed } from './read-claimed.ts'
import type { Verdict } from './results.ts'

/** An entry that waits longer than this after its claim is released without a call, since the call might outlast the lease. */
export const LATEST_BEGIN_MS = 2_000
// After this many attempts, which take about two minutes, an expired message is left to the network, which knows its expiry too.
const MAX_REVOKE_ATTEMPTS = 10
// How long to wait for a receipt after the recipient opts out, if an earlier attempt may have sent the message. If Herald does
// not accept a receipt, the network repeats it after some seconds, and then at growing intervals.
const RECEIPT_TIMEOUT_MS = 120_000

type Options = { carrier: RcsCarrier; metrics: DeliveryMetrics; logger: Logger; stopping: AbortSignal }

/** Makes the call of an entry, and returns the result to record. `claimedAt`: by performance.now(). Never throws. */
export type Send = (entry: Entry, message: Claimed | undefined, claimedAt: number) => Promise<Verdict>

export function createSend({ carrier, metrics, logger, stopping }: Options): Send {
  async function call({ messageId, agentId, task, attempts }: Entry, message: Claimed): Promise<Verdict> {
    if (task === 'revoke') {
      const outcome = await carrier.revoke({ messageId, agentId, recipient: message.recipient })
      if (outcome.is === 'not-asked') return { is: 'put-back', afterMs: outcome.afterMs }
      metrics.count(carrier.name, task, outcome.is)
      return revokeResult(outcome, attempts)
    }
    const { isOptedOut, heldBackForMs, ...sent } = message
    if (isOptedOut) return optedOutResult(attempts, heldBackForMs)
    const outcome = await carrier.send({ ...sent, agentId })
    if (outcome.is === 'not-asked') return { is: 'put-back', afterMs: outcome.afterMs }
    metrics.count(carrier.name, task, outcome.is)
    return sendResult(outcome, attempts)
  }

  return async (entry, message, claimedAt) => {
    const waitMs = entry.turnAt - performance.now()
    if (waitMs > 0) await sleep(waitMs, undefined, { signal: stopping }).catch(() => {})
    if (stopping.aborted) return { is: 'put-back', afterMs: 0 }
    // The partition of its month has been dropped.
    if (message === undefined) return { is: 'revoke-refused', detail: 'the message has been dropped' }
    // By a monotonic clock, which goes on while this process is suspended. The release has no effect if another worker has claimed the entry.
    const heldForMs = performance.now() - claimedAt
    if (heldForMs > LATEST_BEGIN_MS || (entry.task === 'send' && heldForMs > entry.expiresInMs)) return { is: 'put-back', afterMs: 0 }
    return await call(entry, message).catch((error: unknown): Verdict => {
      logger.error({ carrier: carrier.name, err: error }, 'failed to send a message; will retry')
      return faultResult(entry.attempts)
    })
  }
}

/** The result after a fault in Herald. The fault may concern this message only, so the other messages go on. */
export function faultResult(attempts: number): Verdict {
  return { is: 'again', afterMs: backOffMs(attempts, 0), detail: 'a fault of the service' }
}

function sendResult(outcome: Exclude<Outcome, { is: 'not-asked' }>, attempts: number): Verdict {
  if (outcome.is === 'sent') return { is: 'sent' }
  // If the response was lost, the worker sends the message again: the network knows its id, and ignores a message that it already has.
  return unsentResult(outcome.is === 'unknown' ? { ...outcome, is: 'again' } : outcome, attempts)
}

type Unsent = { is: 'failed'; reason: Refusal; detail: string } | { is: 'again'; afterMs: number; detail: string }

/** The result for a message or an SMS that the network does not have. */
export function unsentResult(outcome: Extract<Outcome, { is: 'refused' | 'again' | 'expired' }>, attempts: number): Unsent {
  if (outcome.is === 'refused') return { is: 'failed', reason: outcome.reason, detail: outcome.detail }
  if (outcome.is === 'again') return { is: 'again', afterMs: backOffMs(attempts, outcome.afterMs), detail: outcome.detail }
  // The SMS has expired by this machine's clock only. Expiry goes by the database's clock.
  return { is: 'again', afterMs: backOffMs(attempts, 0), detail: 'expired by the clock of the sending machine' }
}

/**
 * A message to a recipient who opted out is not sent again. But an earlier worker may have died after the network accepted the message, and the
 * STOP may be a reply to it that came before its receipt. So the message is held back, and fails only if no receipt comes in time. On the
 * first attempt it fails at once, since no earlier attempt may have sent it.
 */
function optedOutResult(attempts: number, heldBackForMs: number): Verdict {
  if (attempts === 1 || heldBackForMs >= RECEIPT_TIMEOUT_MS) return { is: 'failed', reason: 'OPTED_OUT', detail: '' }
  return { is: 'held-back', afterMs: RECEIPT_TIMEOUT_MS - heldBackForMs }
}

function revokeResult(outcome: Exclude<RevokeOutcome, { is: 'not-asked' }>, attempts: number): Verdict {
  if (outcome.is === 'asked') return { is: 'revoke-asked', detail: '' }
  if (outcome.is === 'too-late') return { is: 'revoke-refused', detail: 'the network no longer has the message, or never had it' }
  if (outcome.is === 'refused' || attempts >= MAX_REVOKE_ATTEMPTS) return { is: 'revoke-refused', detail: outcome.detail }
  return { is: 'again', afterMs: backOffMs(attempts, outcome.afterMs), detail: outcome.detail }
}
