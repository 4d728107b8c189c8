import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { SendResult, SmsCarrier, SmsSegment } from '../../carriers/carrier.ts'
import { type Executor, isUnavailable, type Pool } from '../../db/pool.ts'
import type { ErasedPeople } from '../../erasure/erased.ts'
import { shortCode, shortLink } from '../../links/codes.ts'
import { createLinks } from '../../links/links.ts'
import { composeText, encodingFor, linksIn } from '../../sms/compose.ts'
import { splitText, type TextSegment } from '../../sms/segments.ts'
import type { DeliveryMetrics } from '../metrics.ts'
import { isClosed } from '../postpone.ts'
import { LATEST_BEGIN_MS, retryMs, withRetry } from '../worker.ts'
import type { SmsEntry } from './claim.ts'
import type { SmsEntryResult, SubmittedSegment } from './results.ts'
import type { Decision } from './rules.ts'

/** The settings of short links. */
export type Links = { key: Buffer; publicUrl: string }

type Submitted = SmsEntryResult & { submittedSegments: SubmittedSegment[] }

export type SmsOptions = {
  pool: Pool
  /** Undefined if there is no SMS network: due SMS then fail. */
  carrier: SmsCarrier | undefined
  links: Links
  erased: ErasedPeople
  metrics: DeliveryMetrics
  logger: Logger
}

/** Makes a function that submits an SMS and returns the result. `endBy`: it submits no segment that might end later. It never throws. */
export function createSubmitter({
  pool,
  carrier,
  links,
  metrics,
  logger,
  stopping,
}: Omit<SmsOptions, 'erased'> & { stopping: AbortSignal }) {
  /** Submits one segment after the other, until the network does not accept one. The result always has the accepted segments. */
  async function submitSegments(sms: SmsCarrier, entry: SmsEntry, texts: TextSegment[], times: Times): Promise<Submitted> {
    const submittedSegments: SubmittedSegment[] = []
    for (const [index, text] of texts.entries()) {
      if (index < entry.segmentsSent) continue
      if (!(await waitForTurn(sms, entry, times, submittedSegments.length))) return { is: 'not-tried', afterMs: 0, submittedSegments }
      const result = await submitSegment(sms, {
        ...text,
        sender: entry.plan.sender,
        recipient: entry.recipient,
        expiresAt: entry.expiresAt,
      })
      metrics.count(sms.name, 'sms', result.is)
      if (result.is !== 'sent') return { ...submitResult(result, entry.attempts), submittedSegments }
      submittedSegments.push({ segment: index + 1, carrierMessageId: result.carrierMessageId })
    }
    return { is: 'sent', segments: texts.length, submittedSegments }
  }

  async function submitSegment(sms: SmsCarrier, segment: SmsSegment): Promise<SendResult> {
    try {
      return await sms.submit(segment)
    } catch (error) {
      // A fault in Herald. The network may have the segment, so it is not submitted again.
      logger.error({ carrier: sms.name, err: error }, 'failed to submit an SMS; will not retry')
      return { is: 'unknown', afterMs: 0, detail: 'a fault of the service' }
    }
  }

  /**
   * Waits for the slot of the next segment. Returns false if the worker is stopping, or was suspended for too long (by a monotonic clock), or if
   * the delivery window has closed before the first segment.
   */
  async function waitForTurn(sms: SmsCarrier, entry: SmsEntry, { claimedAt, endBy }: Times, done: number): Promise<boolean> {
    const left = sms.messagesPerSecond === undefined ? 0 : entry.slotAt + (done * 1_000) / sms.messagesPerSecond - performance.now()
    if (left > 0) await sleep(left, undefined, { signal: stopping }).catch(() => {})
    if (stopping.aborted) return false
    const now = performance.now()
    if (done > 0) return now + sms.longestCallMs <= endBy
    return now - claimedAt <= LATEST_BEGIN_MS && (entry.segmentsSent > 0 || !isClosed(entry, entry.nowMs + now - claimedAt))
  }

  return async (entry: SmsEntry, claimedAt: number, endBy: number): Promise<Submitted> => {
    if (entry.decision === 'lost') metrics.count(carrier?.name ?? 'none', 'sms', 'lost')
    if (entry.decision !== 'go') return { ...unsubmittedResult(entry.decision), submittedSegments: [] }
    if (carrier === undefined) return { is: 'failed', reason: 'NO_SMS_NETWORK', detail: '', submittedSegments: [] }
    try {
      return await submitSegments(carrier, entry, await composeSegments(pool, links, entry), { claimedAt, endBy })
    } catch (error) {
      if (!isUnavailable(error)) logger.error({ carrier: carrier.name, err: error }, 'failed to compose an SMS; will retry')
      return { is: 'retry', afterMs: retryMs(entry.attempts), detail: 'a fault of the service', submittedSegments: [] }
    }
  }
}

/** By performance.now(). */
type Times = { claimedAt: number; endBy: number }

function unsubmittedResult(decision: Exclude<Decision, 'go'>): SmsEntryResult {
  if (decision === 'lost') return { is: 'failed', reason: 'OUTCOME_UNKNOWN', detail: '' }
  if (decision === 'late') return { is: 'failed', reason: 'TIMED_OUT', detail: '' }
  if (decision === 'gone' || decision === 'not-needed') return { is: decision }
  return { is: 'skipped', reason: decision }
}

/** If the response was lost, the segment is not submitted again: the network may have it. */
function submitResult(result: Exclude<SendResult, { is: 'sent' }>, attempts: number): SmsEntryResult {
  if (result.is === 'unknown') return { is: 'failed', reason: 'OUTCOME_UNKNOWN', detail: result.detail }
  return withRetry(result, attempts)
}

/** Composes the same segments at every attempt: the links, and the reference that ties the segments together, are derived from the message's id. */
async function composeSegments(db: Executor, { key, publicUrl }: Links, entry: SmsEntry): Promise<TextSegment[]> {
  const { messageId, copy, accountId, agentId, recipient, plan } = entry
  const urls = plan.urlShortening ? linksIn(plan.content) : []
  const common = { accountId, messageId, copy, agentId, recipient }
  const shortLinks = urls.map((url, index) => ({ ...common, url, code: shortCode(key, messageId, copy, index) }))
  if (shortLinks.length > 0) await createLinks(db, shortLinks)
  const text = composeText(plan, (index) => shortLink(publicUrl, shortLinks[index]?.code as string))
  return splitText(text, Number.parseInt(messageId.slice(-2), 16), encodingFor(plan.mode, text) ?? 'UCS2')
}
