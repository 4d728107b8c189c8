import { randomUUID } from 'node:crypto'
import { SLOTS_AHEAD_MS } from '../rate.ts'
import { CLAIM_AGAIN_MS, createCarrierWorker, type Dispatcher, POLL_MS } from '../worker.ts'
import { claimSms, type SmsEntry } from './claim.ts'
import { recordSmsResults, type SmsResult } from './results.ts'
import { createSubmitter, type SmsOptions } from './submit.ts'

// An SMS without a recorded result is never submitted again, so failing it early gains nothing. A worker retries to record a result for this long,
// so results survive a database that is unavailable for up to a minute.
const MARGIN_MS = 60_000
const NO_CARRIER = { name: 'no-sms-network', concurrency: 100, longestCallMs: 0, messagesPerSecond: undefined, pausedForMs: () => 0 }

/** Submits each due SMS once, with as many concurrent calls as the carrier allows, and records the results. */
export function createSmsDispatcher(options: SmsOptions): Dispatcher {
  const { pool, carrier, erased, logger, metrics } = options
  const sms = carrier ?? NO_CARRIER
  // Leases of claims that failed, perhaps after the commit. The next claim releases their SMS.
  const abandoned = new Set<string>()

  async function claim(free: number, claimedAt: number): Promise<number> {
    const pauseMs = sms.pausedForMs()
    const lease = randomUUID()
    const releasing = [...abandoned]
    const times = { segmentMs: sms.longestCallMs, marginMs: MARGIN_MS, isPaused: pauseMs > 0 }
    abandoned.add(lease)
    const { entries, isBusy, mayBeMore } = await claimSms(pool, { carrier: sms, free, lease, ...times, abandoned: releasing, erased })
    abandoned.delete(lease)
    if (isBusy) return CLAIM_AGAIN_MS
    for (const released of releasing) abandoned.delete(released)
    for (const entry of entries) worker.add(handle(entry, claimedAt))
    if (pauseMs > 0) return Math.min(pauseMs, POLL_MS)
    return entries.length > 0 || mayBeMore ? SLOTS_AHEAD_MS / 2 : POLL_MS
  }

  async function handle(entry: SmsEntry, claimedAt: number): Promise<void> {
    const { messageId, copy, accountId, lease, leaseMs } = entry
    calls.begin(accountId)
    const result = await submit(entry, claimedAt, claimedAt + leaseMs - MARGIN_MS)
    calls.end(accountId)
    await worker.settle({ messageId, copy, lease, ...result }, claimedAt + leaseMs)
    if (calls.endedSinceClaim() >= sms.concurrency / 8 || calls.total() === 0) worker.wake()
  }

  const record = (results: SmsResult[]) => recordSmsResults(pool, sms.name, results)
  const worker = createCarrierWorker({ pool, carrier: sms, logger, metrics, claim, record })
  const { calls } = worker
  const submit = createSubmitter({ ...options, stopping: worker.stopping })
  return worker
}
