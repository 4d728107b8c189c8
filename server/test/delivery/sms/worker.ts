import { randomBytes, randomUUID } from 'node:crypto'
import type { TestContext } from 'node:test'
import type { SmsCarrier, SmsSegment } from '../../../src/carriers/carrier.ts'
import type { Pool } from '../../../src/db/pool.ts'
import { ensureRate } from '../../../src/delivery/rate.ts'
import { claimSms, type SmsEntry } from '../../../src/delivery/sms/claim.ts'
import { createSmsDispatcher } from '../../../src/delivery/sms/dispatcher.ts'
import { recordSmsResults } from '../../../src/delivery/sms/results.ts'
import type { Dispatcher } from '../../../src/delivery/worker.ts'
import { erased } from '../../support/erased.ts'
import { untilDue } from '../../support/until.ts'
import { logger, runDispatcher } from '../worker.ts'

// A worker that submits SMS, step by step or as a whole, and an SMS network that a test controls.

export const SMS_CARRIER = 'sms-network'
export const PUBLIC_URL = 'http://127.0.0.1:8080'

type SmsClaim = { free?: number; messagesPerSecond?: number | undefined; abandoned?: string[] }

/** Claims due SMS as a worker does. */
export async function claimDueSms(pool: Pool, { free = 1_000, messagesPerSecond, abandoned = [] }: SmsClaim = {}): Promise<SmsEntry[]> {
  await ensureRate(pool, SMS_CARRIER)
  await untilDue(pool)
  const carrier = { name: SMS_CARRIER, messagesPerSecond }
  return (
    await claimSms(pool, { carrier, free, lease: randomUUID(), segmentMs: 1_000, marginMs: 60_000, isPaused: false, abandoned, erased })
  ).entries
}

/** Claims the SMS of one message, together with everything else that is due. */
export async function claimSmsOf(pool: Pool, messageId: string, copy = 0): Promise<SmsEntry> {
  const entry = (await claimDueSms(pool)).find((one) => one.messageId === messageId && one.copy === copy)
  if (entry === undefined) throw new Error(`the SMS of ${messageId} was not due`)
  return entry
}

type SmsResult = Parameters<typeof recordSmsResults>[2][number]
/** The result of an SMS, without its key, lease and segments. */
export type SubmitResult = SmsResult extends infer Each
  ? Each extends SmsResult
    ? Omit<Each, 'messageId' | 'copy' | 'lease' | 'submittedSegments'>
    : never
  : never

/** Records a result. `ids`: the ids that the network gave the segments that this worker submitted. Returns false if it does not count. */
export async function recordSms(pool: Pool, entry: SmsEntry, result: SubmitResult, ids: string[] = [], carrier = SMS_CARRIER) {
  const { messageId, copy, lease, segmentsSent } = entry
  const submittedSegments = ids.map((carrierMessageId, index) => ({ segment: segmentsSent + index + 1, carrierMessageId }))
  const [isRecorded] = await recordSmsResults(pool, carrier, [{ messageId, copy, lease, submittedSegments, ...result } as SmsResult])
  return isRecorded
}

/** Records that the network accepted all segments of an SMS. */
export async function recordSent(pool: Pool, entry: SmsEntry, carrierMessageIds: string[], carrier = SMS_CARRIER) {
  const segments = entry.segmentsSent + carrierMessageIds.length
  return await recordSms(pool, entry, { is: 'sent', segments }, carrierMessageIds, carrier)
}

/** `seen`: the submitted segments, in order, with their times by performance.now(). */
export type TestSmsCarrier = SmsCarrier & { seen: (SmsSegment & { at: number })[]; to: (recipient: string) => SmsSegment[] }

type SmsOutcome = Awaited<ReturnType<SmsCarrier['submit']>>
type SmsCarrierOptions = Partial<Omit<SmsCarrier, 'submit'>> & {
  onSubmit?: (segment: SmsSegment, id: string) => Promise<SmsOutcome> | SmsOutcome
}

let carrierMessageIds = 0

/** A network that accepts everything, unless a test sets `onSubmit`. */
export function createSmsCarrier({ onSubmit = acceptSegment, ...options }: SmsCarrierOptions = {}): TestSmsCarrier {
  const seen: TestSmsCarrier['seen'] = []
  return {
    name: SMS_CARRIER,
    longestCallMs: 1_000,
    concurrency: 10,
    messagesPerSecond: undefined,
    pausedForMs: () => 0,
    health: () => ({ circuit: 'closed', sessions: 0 }),
    close: async () => {},
    ...options,
    seen,
    to: (recipient) => seen.filter((segment) => segment.recipient === recipient),
    submit: async (segment) => {
      seen.push({ ...segment, at: performance.now() })
      carrierMessageIds += 1
      return await onSubmit(segment, `${carrierMessageIds}`)
    },
  }
}

export function acceptSegment(_segment: SmsSegment, carrierMessageId: string): SmsOutcome {
  return { is: 'sent', carrierMessageId }
}

export function startSmsWorker(t: TestContext, databaseUrl: string, carrier: SmsCarrier | undefined): Dispatcher {
  const links = { key: randomBytes(32), publicUrl: PUBLIC_URL }
  return runDispatcher(t, databaseUrl, (pool, metrics) => createSmsDispatcher({ pool, carrier, links, erased, logger, metrics }))
}
