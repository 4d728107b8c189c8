import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { SmsCarrier } from '../../carriers/carrier.ts'
import { type Executor, isUnavailable } from '../../db/pool.ts'
import { shortCode, shortLink } from '../../links/codes.ts'
import { createLinks } from '../../links/links.ts'
import { composeText, encodingFor, linksIn } from '../../sms/compose.ts'
import { splitText, type TextPart } from '../../sms/parts.ts'
import { backOffMs } from '../back-off.ts'
import { LATEST_BEGIN_MS } from '../errands.ts'
import type { DeliveryMetrics } from '../metrics.ts'
import type { SmsEntry } from './claim.ts'
import type { SmsVerdict, SubmittedPart } from './results.ts'

/** What short links are made with. */
export type Links = { key: Buffer; publicUrl: string }

export type Submitted = SmsVerdict & { parts: SubmittedPart[] }

type Options = {
  pool: Executor
  carrier: SmsCarrier | undefined
  links: Links
  metrics: DeliveryMetrics
  logger: Logger
  stopping: AbortSignal
}

/** Submits an SMS, part after part, and tells what came of it. `endBy`: no further part is begun that might not have ended by then. Never throws. */
export type Submit = (entry: SmsEntry, claimedAt: number, endBy: number) => Promise<Submitted>

export function createSubmitter({ pool, carrier, links, metrics, logger, stopping }: Options): Submit {
  /** Adds to `parts` what the network has taken: however this ends, that is known. */
  async function submitParts(
    sms: SmsCarrier,
    entry: SmsEntry,
    texts: TextPart[],
    claimedAt: number,
    endBy: number,
    parts: SubmittedPart[],
  ) {
    for (const [index, text] of texts.entries()) {
      if (index < entry.segmentsSent) continue
      if (!(await waitForTurn(sms, entry, claimedAt, endBy, parts.length))) return { is: 'put-back', afterMs: 0 } as const
      const outcome = await sms.submit({ ...text, sender: entry.plan.sender, recipient: entry.recipient, expiresAt: entry.expiresAt })
      metrics.count(sms.name, 'sms', outcome.is)
      if (outcome.is !== 'sent') return verdictOf(outcome, entry)
      parts.push({ part: index + 1, carrierMessageId: outcome.carrierMessageId })
    }
    return { is: 'sent', segments: texts.length } as const
  }

  /** Nothing is submitted by a worker that stood still, or stops. By a clock that nobody sets. */
  async function waitForTurn(sms: SmsCarrier, { waitMs }: SmsEntry, claimedAt: number, endBy: number, done: number): Promise<boolean> {
    const turnAt = sms.messagesPerSecond === undefined ? 0 : claimedAt + waitMs + (done * 1_000) / sms.messagesPerSecond
    const left = turnAt - performance.now()
    if (left > 0) await sleep(left, undefined, { signal: stopping }).catch(() => {})
    if (stopping.aborted) return false
    const now = performance.now()
    return done === 0 ? now - claimedAt <= LATEST_BEGIN_MS : now + sms.longestCallMs <= endBy
  }

  return async (entry, claimedAt, endBy) => {
    if (entry.judgement === 'lost') metrics.count(carrier?.name ?? 'none', 'sms', 'lost')
    const judged = judgedVerdict(entry)
    if (judged !== undefined) return { ...judged, parts: [] }
    if (carrier === undefined) return { is: 'failed', reason: 'NO_SMS_NETWORK', detail: '', parts: [] }
    const parts: SubmittedPart[] = []
    try {
      const texts = await writtenParts(pool, links, entry)
      return { ...(await submitParts(carrier, entry, texts, claimedAt, endBy, parts)), parts }
    } catch (error) {
      if (!isUnavailable(error)) logger.error({ carrier: carrier.name, err: error }, 'an SMS could not be submitted, and is tried again')
      // Nothing throws once a part has been handed over: what the network answers, and that it does not, is an outcome.
      return { is: 'again', afterMs: backOffMs(entry.attempts, 0), detail: 'a fault of the service', parts }
    }
  }
}

/** What needs no submit. */
function judgedVerdict({ judgement }: SmsEntry): SmsVerdict | undefined {
  switch (judgement) {
    case 'go':
      return undefined
    case 'lost':
      return { is: 'failed', reason: 'OUTCOME_UNKNOWN', detail: '' }
    case 'late':
      return { is: 'failed', reason: 'TIMED_OUT', detail: '' }
    case 'gone':
    case 'not-needed':
      return { is: judgement }
    default:
      return { is: 'skipped', reason: judgement }
  }
}

function verdictOf(outcome: Exclude<Awaited<ReturnType<SmsCarrier['submit']>>, { is: 'sent' }>, { attempts }: SmsEntry): SmsVerdict {
  switch (outcome.is) {
    case 'refused':
      return { is: 'failed', reason: outcome.reason, detail: outcome.detail }
    case 'unknown':
      return { is: 'failed', reason: 'OUTCOME_UNKNOWN', detail: outcome.detail }
    case 'not-asked':
      return { is: 'put-back', afterMs: outcome.afterMs }
    case 'again':
      return { is: 'again', afterMs: backOffMs(attempts, outcome.afterMs), detail: outcome.detail }
    case 'expired':
      // By this machine's clock. The database's will say so in its time.
      return { is: 'again', afterMs: backOffMs(attempts, 0), detail: 'it has expired by the clock of the machine that sends' }
  }
}

/** The same at every try: links are made from the message's id, and so is the reference that ties the parts together. */
async function writtenParts(db: Executor, { key, publicUrl }: Links, entry: SmsEntry): Promise<TextPart[]> {
  const { messageId, copy, accountId, agentId, recipient, plan } = entry
  const urls = plan.urlShortening ? linksIn(plan.content) : []
  const codes = urls.map((_, index) => shortCode(key, messageId, copy, index))
  if (urls.length > 0) {
    await createLinks(
      db,
      urls.map((url, index) => ({ code: codes[index] as string, accountId, messageId, copy, agentId, recipient, url })),
    )
  }
  const text = composeText(plan, (index) => shortLink(publicUrl, codes[index] as string))
  return splitText(text, Number.parseInt(messageId.slice(-2), 16), encodingFor(plan.mode, text) ?? 'UCS2')
}
