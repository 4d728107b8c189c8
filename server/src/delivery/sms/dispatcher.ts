import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { repeat } from '../../background/repeat.ts'
import { createResultWriter } from '../../background/result-writer.ts'
import { createUnderWay } from '../../background/under-way.ts'
import type { SmsCarrier } from '../../carriers/carrier.ts'
import type { Pool } from '../../db/pool.ts'
import type { DeliveryMetrics } from '../metrics.ts'
import { ensurePace, TURNS_AHEAD_MS } from '../rate.ts'
import { claimSms, type SmsEntry } from './claim.ts'
import { recordSmsResults, type SmsResult } from './results.ts'
import { createSubmitter, type Links, type Submitted } from './submit.ts'

export type SmsDispatcher = { wake: () => void; stop: () => Promise<void> }

export type SmsDispatcherOptions = {
  pool: Pool
  /** Undefined: there is no SMS network, and what is due fails. */
  carrier: SmsCarrier | undefined
  links: Links
  logger: Logger
  metrics: DeliveryMetrics
}

const POLL_MS = 1_000
const CLAIM_AGAIN_MS = 5
// Nobody submits an SMS again whose worker has not come back, so there is no hurry to give it up: as long as that, a worker that lives goes
// on writing its result, through a database that is away for a minute.
const MARGIN_MS = 60_000
const NO_CARRIER = { name: 'no-sms-network', concurrency: 100, longestCallMs: 0, messagesPerSecond: undefined, pausedForMs: () => 0 }

/** Submits the SMS that are due, as many at once as the carrier takes, each once, and writes down what came of them. */
export function createSmsDispatcher({ pool, carrier, links, logger, metrics }: SmsDispatcherOptions): SmsDispatcher {
  const { name, concurrency, longestCallMs, messagesPerSecond, pausedForMs } = carrier ?? NO_CARRIER
  const stopping = new AbortController()
  const submit = createSubmitter({ pool, carrier, links, metrics, logger, stopping: stopping.signal })
  const log = logger.child({ carrier: name })
  const write = createResultWriter((results: SmsResult[]) => recordSmsResults(pool, name, results), log, stopping.signal)
  const underWay = createUnderWay()
  const abandoned = new Set<string>()
  let submitting = 0
  let endedSinceClaim = 0

  async function round(): Promise<number> {
    const free = concurrency - submitting
    if (free === 0) return POLL_MS
    const pauseMs = pausedForMs()
    const claimedAt = performance.now()
    const times = { partMs: longestCallMs, marginMs: MARGIN_MS, isPaused: pauseMs > 0 }
    const lease = randomUUID()
    const request = { carrier: { name, messagesPerSecond }, free, lease, ...times, abandoned: [...abandoned] }
    endedSinceClaim = 0
    abandoned.add(lease)
    const { entries, isBusy, isHeldBack } = await claimSms(pool, request)
    abandoned.delete(lease)
    if (isBusy) return CLAIM_AGAIN_MS
    for (const returned of request.abandoned) abandoned.delete(returned)
    for (const entry of entries) underWay.add(handle(entry, claimedAt))
    if (pauseMs > 0) return Math.min(pauseMs, POLL_MS)
    return entries.length > 0 || isHeldBack ? TURNS_AHEAD_MS / 2 : POLL_MS
  }

  async function handle(entry: SmsEntry, claimedAt: number): Promise<void> {
    const leaseEndsAt = claimedAt + longestCallMs * Math.max(entry.segments - entry.segmentsSent, 1) + MARGIN_MS
    submitting += 1
    const submitted = await submit(entry, claimedAt, leaseEndsAt - MARGIN_MS)
    submitting -= 1
    endedSinceClaim += 1
    await settle(entry, submitted, leaseEndsAt)
    if (endedSinceClaim >= concurrency / 8 || submitting === 0) loop.wake()
  }

  async function settle({ messageId, copy, lease }: SmsEntry, submitted: Submitted, leaseEndsAt: number): Promise<void> {
    const hasCounted = await write({ messageId, copy, lease, ...submitted }, leaseEndsAt)
    if (!hasCounted) metrics.countRefused(name)
    else if ('afterMs' in submitted && submitted.afterMs < POLL_MS) setTimeout(loop.wake, submitted.afterMs).unref()
  }

  const loop = repeat(`send SMS by ${name}`, logger, round, { before: () => ensurePace(pool, name) })
  return {
    wake: loop.wake,
    stop: async () => {
      stopping.abort()
      await loop.stop()
      await underWay.ended()
    },
  }
}
