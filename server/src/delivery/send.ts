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
// After this many tries, in about two minutes, an expired message is left to the network, which knows its expiry too.
const MOST_REVOKE_ATTEMPTS = 10
// How long to wait for a receipt after the recipient opts out, if an earlier try may have sent the message. A network repeats a receipt that
// was not accepted after some seconds, and then at growing intervals.
const RECEIPT_PATIENCE_MS = 120_000

type Options = { carrier: RcsCarrier; metrics: DeliveryMetrics; logger: Logger; stopping: AbortSignal }

/** Makes the call that an entry asks for, and returns what its result means for the queue. `claimedAt`: by performance.now(). Never throws. */
export type Send = (entry: Entry, message: Claimed | undefined, claimedAt: number) => Promise<Verdict>

export function createSend({ carrier, metrics, logger, stopping }: Options): Send {
  async function ask({ messageId, agentId, task, attempts }: Entry, message: Claimed): Promise<Verdict> {
    if (task === 'revoke') {
      const outcome = await carrier.revoke({ messageId, agentId, recipient: message.recipient })
      if (outcome.is === 'not-asked') return { is: 'put-back', afterMs: outcome.afterMs }
      metrics.count(carrier.name, task, outcome.is)
      return revokeVerdict(outcome, attempts)
    }
    const { isOptedOut, heldBackForMs, ...sent } = message
    if (isOptedOut) return optedOutVerdict(attempts, heldBackForMs)
    const outcome = await carrier.send({ ...sent, agentId })
    if (outcome.is === 'not-asked') return { is: 'put-back', afterMs: outcome.afterMs }
    metrics.count(carrier.name, task, outcome.is)
    return sendVerdict(outcome, attempts)
  }

  return async (entry, message, claimedAt) => {
    const waitMs = entry.turnAt - performance.now()
    if (waitMs > 0) await sleep(waitMs, undefined, { signal: stopping }).catch(() => {})
    if (stopping.aborted) return { is: 'put-back', afterMs: 0 }
    // The partition of its month has been dropped.
    if (message === undefined) return { is: 'revoke-refused', detail: 'the message is no longer here' }
    // A monotonic clock, which goes on while this process is suspended. Only the holder of the lease can release the entry.
    const heldForMs = performance.now() - claimedAt
    if (heldForMs > LATEST_BEGIN_MS || (entry.task === 'send' && heldForMs > entry.expiresInMs)) return { is: 'put-back', afterMs: 0 }
    return await ask(entry, message).catch((error: unknown): Verdict => {
      logger.error({ carrier: carrier.name, err: error }, 'failed to send a message; will retry')
      return faultVerdict(entry.attempts)
    })
  }
}

/** For a fault in Herald. It may concern this message only, so the others go on. */
export function faultVerdict(attempts: number): Verdict {
  return { is: 'again', afterMs: backOffMs(attempts, 0), detail: 'a fault of the service' }
}

function sendVerdict(outcome: Exclude<Outcome, { is: 'not-asked' }>, attempts: number): Verdict {
  if (outcome.is === 'sent') return { is: 'sent' }
  // If the response was lost, send again: the network knows our id, and ignores a message that it already has.
  return unsentResult(outcome.is === 'unknown' ? { ...outcome, is: 'again' } : outcome, attempts)
}

type Unsent = { is: 'failed'; reason: Refusal; detail: string } | { is: 'again'; afterMs: number; detail: string }

/** The result for a message or an SMS that the network does not have. */
export function unsentResult(outcome: Extract<Outcome, { is: 'refused' | 'again' | 'expired' }>, attempts: number): Unsent {
  if (outcome.is === 'refused') return { is: 'failed', reason: outcome.reason, detail: outcome.detail }
  if (outcome.is === 'again') return { is: 'again', afterMs: backOffMs(attempts, outcome.afterMs), detail: outcome.detail }
  // It has expired by this machine's clock only. The expiry loop goes by the database's clock.
  return { is: 'again', afterMs: backOffMs(attempts, 0), detail: 'it has expired by the clock of the machine that sends' }
}

/**
 * The message is never sent again. But a worker may have died after the network took the message, and the STOP may be the reply to it and
 * precede its receipt. So the message fails only if no receipt comes. A first try has no earlier one that may have sent it.
 */
function optedOutVerdict(attempts: number, heldBackForMs: number): Verdict {
  if (attempts === 1 || heldBackForMs >= RECEIPT_PATIENCE_MS) return { is: 'failed', reason: 'OPTED_OUT', detail: '' }
  return { is: 'held-back', afterMs: RECEIPT_PATIENCE_MS - heldBackForMs }
}

function revokeVerdict(outcome: Exclude<RevokeOutcome, { is: 'not-asked' }>, attempts: number): Verdict {
  if (outcome.is === 'asked') return { is: 'revoke-asked', detail: '' }
  if (outcome.is === 'too-late') return { is: 'revoke-refused', detail: 'the network no longer has it, or never had it' }
  if (outcome.is === 'refused' || attempts >= MOST_REVOKE_ATTEMPTS) return { is: 'revoke-refused', detail: outcome.detail }
  return { is: 'again', afterMs: backOffMs(attempts, outcome.afterMs), detail: outcome.detail }
}
