import type { Logger } from 'pino'
import { foldUsage } from '../accounts/usage.ts'
import { repeat } from '../background/repeat.ts'
import type { Carriers } from '../carriers/carriers.ts'
import type { Executor, Pool } from '../db/pool.ts'
import { refreshStatistics } from '../db/statistics.ts'
import type { Announce, Work } from '../messages/announce.ts'
import { foldReports } from '../reports/counters.ts'
import { startCampaignLoops } from './campaigns/loops.ts'
import { createDispatcher } from './dispatcher.ts'
import { expireDue } from './expiry.ts'
import { keepHouse } from './housekeeping.ts'
import { failInactive } from './inactive-agents.ts'
import type { DeliveryMetrics } from './metrics.ts'
import { takeUpReplies } from './replies.ts'
import { createSmsDispatcher } from './sms/dispatcher.ts'
import type { Links } from './sms/submit.ts'
import { listenForWork } from './wake.ts'

export type Delivery = { stop: () => Promise<void> }

export type DeliveryOptions = { pool: Pool; carriers: Carriers; logger: Logger; metrics: DeliveryMetrics; links: Links; announce: Announce }

const EXPIRY_EVERY_MS = 500
const INACTIVE_EVERY_MS = 1_000
const REPLIES_EVERY_MS = 1_000
const FOLD_EVERY_MS = 1_000
const STATISTICS_EVERY_MS = 5_000
const HOUSEKEEPING_EVERY_MS = 3_600_000

/** Everything that moves messages by itself. As many processes as one likes run it side by side. */
export function startDelivery({ pool, carriers, logger, metrics, links, announce }: DeliveryOptions): Delivery {
  const sms = createSmsDispatcher({ pool, carrier: carriers.sms, links, logger, metrics })
  const dispatchers = [...carriers.rcs.values()].map((carrier) => createDispatcher({ pool, carrier, logger, metrics, onFailed: sms.wake }))
  function wake(work?: Work): void {
    if (work !== 'replies') for (const dispatcher of dispatchers) dispatcher.wake()
    if (work !== 'messages') replies.wake()
  }

  async function expire(): Promise<number> {
    const { expired, mayBeMore } = await expireDue(pool)
    metrics.countExpired(expired)
    if (expired > 0) for (const dispatcher of [...dispatchers, sms]) dispatcher.wake()
    return mayBeMore ? 0 : EXPIRY_EVERY_MS
  }

  async function giveUpInactive(): Promise<number> {
    const { failed, mayBeMore } = await failInactive(pool)
    if (failed > 0) sms.wake()
    return mayBeMore ? 0 : INACTIVE_EVERY_MS
  }

  async function takeUp(): Promise<number> {
    const { taken, mayBeMore } = await takeUpReplies(pool, logger)
    // Some may have been answered by a template.
    if (taken > 0) announce('messages')
    return mayBeMore ? 0 : REPLIES_EVERY_MS
  }

  async function fold(): Promise<number> {
    const folded = [await foldReports(pool), await foldUsage(pool)]
    return folded.some(({ mayBeMore }) => mayBeMore) ? 0 : FOLD_EVERY_MS
  }

  async function refresh(): Promise<number> {
    await refreshStatistics(pool)
    return STATISTICS_EVERY_MS
  }

  async function house(): Promise<number> {
    await keepHouse(pool)
    return HOUSEKEEPING_EVERY_MS
  }

  void warnOfUnknownCarriers(pool, carriers, logger).catch(() => {})
  const replies = repeat('take up replies', logger, takeUp)
  const loops = [
    replies,
    listenForWork(pool, wake, logger),
    repeat('expire messages', logger, expire),
    repeat('give up messages of inactive agents', logger, giveUpInactive),
    ...startCampaignLoops(pool, logger, () => wake('messages')),
    repeat('fold reports and usage', logger, fold),
    repeat('refresh statistics', logger, refresh),
    repeat('housekeeping', logger, house),
  ]
  return {
    stop: async () => {
      await Promise.all([...loops, ...dispatchers, sms].map(({ stop }) => stop()))
    },
  }
}

/** What is sent by such an agent would wait in silence, and expire. */
async function warnOfUnknownCarriers(db: Executor, { rcs }: Carriers, logger: Logger): Promise<void> {
  const { rows } = await db.query<{ carrier: string }>('select distinct carrier from agents where carrier <> all ($1)', [[...rcs.keys()]])
  for (const { carrier } of rows) logger.warn({ carrier }, 'agents have this carrier, which is not configured here: their messages wait')
}
