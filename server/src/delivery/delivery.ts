import type { Logger } from 'pino'
import { foldUsage } from '../accounts/usage.ts'
import { type Loop, repeat } from '../background/repeat.ts'
import type { Carriers } from '../carriers/carriers.ts'
import type { Pools } from '../db/database.ts'
import type { Executor, Pool } from '../db/pool.ts'
import { refreshStatistics } from '../db/statistics.ts'
import type { ErasedPeople } from '../erasure/erased.ts'
import type { Announce, Work } from '../messages/announce.ts'
import type { Reserve } from '../messages/send-at-once.ts'
import { foldReports } from '../reports/counters.ts'
import { startCampaignLoops } from './campaigns/loops.ts'
import { findOldMonths } from './drop-months.ts'
import { expireDue } from './expiry.ts'
import { failInactive } from './fail.ts'
import type { DeliveryMetrics } from './metrics.ts'
import { processReplies } from './replies.ts'
import { applyRetention, dropOldMonths } from './retention.ts'
import { createDispatcher, type RcsDispatcher } from './send.ts'
import { createSmsDispatcher } from './sms/dispatcher.ts'
import type { Links } from './sms/submit.ts'
import { listenForWork } from './wake.ts'

/** `reserve` serves messages that this process accepts (messages/send-at-once.ts). */
export type Delivery = Pick<RcsDispatcher, 'reserve' | 'stop'>

type DeliveryOptions = Pools & {
  carriers: Carriers
  logger: Logger
  metrics: DeliveryMetrics
  links: Links
  erased: ErasedPeople
  announce: Announce
  /** How many whole months to keep. Undefined: all. */
  retentionMonths?: number | undefined
}

const STATISTICS_EVERY_MS = 5_000
const RETENTION_EVERY_MS = 3_600_000
// The delay if a month could not be dropped because an export reads it.
const DROP_AGAIN_MS = 60_000

/** Starts every loop that moves messages. Any number of processes can run these loops side by side. */
export function startDelivery({
  pool,
  hotPool,
  carriers,
  logger,
  metrics,
  links,
  erased,
  announce,
  retentionMonths,
}: DeliveryOptions): Delivery {
  const sms = createSmsDispatcher({ pool: hotPool, carrier: carriers.sms, links, erased, logger, metrics })
  const dispatchers = [...carriers.rcs.values()].map((carrier) =>
    createDispatcher({ pool: hotPool, carrier, erased, logger, metrics, onFailed: sms.wake }),
  )
  function wake(work?: Work): void {
    if (work !== 'replies') for (const dispatcher of dispatchers) dispatcher.wake()
    if (work !== 'messages') replies.wake()
  }

  const reserve: Reserve = (...message) =>
    dispatchers
      .values()
      .map((dispatcher) => dispatcher.reserve(...message))
      .find((reservation) => reservation !== undefined)

  /** Runs `work` at this interval, and again at once if there may be more to do. */
  const every = (ms: number, name: string, work: () => Promise<{ mayBeMore: boolean }>) =>
    repeat(name, logger, async () => ((await work()).mayBeMore ? 0 : ms))

  async function expire() {
    const result = await expireDue(hotPool)
    metrics.countExpired(result.expired)
    if (result.expired > 0) for (const dispatcher of [...dispatchers, sms]) dispatcher.wake()
    return result
  }

  async function failForInactiveAgents() {
    const result = await failInactive(hotPool)
    if (result.failed > 0) sms.wake()
    return result
  }

  async function handleReplies() {
    const result = await processReplies(hotPool, logger, erased)
    // Automatic replies may have queued messages.
    if (result.processed > 0) announce('messages')
    return result
  }

  async function fold() {
    const folded = [await foldReports(hotPool), await foldUsage(hotPool)]
    return { mayBeMore: folded.some(({ mayBeMore }) => mayBeMore) }
  }

  void warnOfUnknownCarriers(pool, carriers, logger).catch(() => {})
  const replies = every(1_000, 'process replies', handleReplies)
  const loops = [
    replies,
    listenForWork(hotPool, wake, logger),
    every(500, 'expire messages', expire),
    every(1_000, 'fail messages of inactive agents', failForInactiveAgents),
    ...startCampaignLoops({ pool: hotPool, logger, erased, publicUrl: links.publicUrl, onQueued: () => wake('messages') }),
    every(1_000, 'fold reports and usage', fold),
    repeat('refresh statistics', logger, () => refreshStatistics(pool).then(() => STATISTICS_EVERY_MS)),
    repeat('apply retention', logger, () => applyRetention(pool).then(() => RETENTION_EVERY_MS)),
    ...(retentionMonths === undefined ? [] : [startDropping(pool, retentionMonths, logger)]),
  ]
  return {
    reserve,
    stop: async () => {
      await Promise.all([...loops, ...dispatchers, sms].map(({ stop }) => stop()))
    },
  }
}

/** Starts the loop that drops old months. Before its first iteration, it logs which months it will drop. */
function startDropping(pool: Pool, retentionMonths: number, logger: Logger): Loop {
  const drop = async () => ((await dropOldMonths(pool, retentionMonths, logger)) ? RETENTION_EVERY_MS : DROP_AGAIN_MS)
  return repeat('drop old months', logger, drop, {
    before: async () => {
      const months = (await findOldMonths(pool, retentionMonths)).map(({ name }) => name)
      if (months.length > 0) logger.info({ retentionMonths, months }, 'old months will be dropped')
    },
  })
}

/** Warns of agents whose carrier is not configured: their messages wait until they expire, and nothing else would say why. */
async function warnOfUnknownCarriers(db: Executor, { rcs }: Carriers, logger: Logger): Promise<void> {
  const { rows } = await db.query<{ carrier: string }>('select distinct carrier from agents where carrier <> all ($1)', [[...rcs.keys()]])
  for (const { carrier } of rows) logger.warn({ carrier }, 'agents use a carrier that is not configured; their messages wait')
}
