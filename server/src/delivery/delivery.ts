import type { Logger } from 'pino'
import type { Carriers } from '../carriers/carriers.ts'
import type { Executor, Pool } from '../db/pool.ts'
import { createDispatcher } from './dispatcher.ts'
import { expireDue } from './expiry.ts'
import { keepHouse } from './housekeeping.ts'
import { failInactive } from './inactive-agents.ts'
import type { DeliveryMetrics } from './metrics.ts'
import { repeat } from './repeat.ts'
import { listenForWork } from './wake.ts'

export type Delivery = { stop: () => Promise<void> }

export type DeliveryOptions = { pool: Pool; carriers: Carriers; logger: Logger; metrics: DeliveryMetrics }

const EXPIRY_EVERY_MS = 500
const INACTIVE_EVERY_MS = 1_000
const HOUSEKEEPING_EVERY_MS = 3_600_000

/** Everything that moves messages by itself. As many processes as one likes run it side by side. */
export function startDelivery({ pool, carriers, logger, metrics }: DeliveryOptions): Delivery {
  const dispatchers = [...carriers.rcs.values()].map((carrier) => createDispatcher({ pool, carrier, logger, metrics }))
  function wake(): void {
    for (const dispatcher of dispatchers) dispatcher.wake()
  }

  async function expire(): Promise<number> {
    const { expired, mayBeMore } = await expireDue(pool)
    metrics.countExpired(expired)
    if (expired > 0) wake()
    return mayBeMore ? 0 : EXPIRY_EVERY_MS
  }

  async function giveUpInactive(): Promise<number> {
    const { mayBeMore } = await failInactive(pool)
    return mayBeMore ? 0 : INACTIVE_EVERY_MS
  }

  async function house(): Promise<number> {
    await keepHouse(pool)
    return HOUSEKEEPING_EVERY_MS
  }

  void warnOfUnknownCarriers(pool, carriers, logger).catch(() => {})
  const loops = [
    listenForWork(pool, wake, logger),
    repeat('expire messages', logger, expire),
    repeat('give up messages of inactive agents', logger, giveUpInactive),
    repeat('housekeeping', logger, house),
  ]
  return {
    stop: async () => {
      await Promise.all([...loops, ...dispatchers].map(({ stop }) => stop()))
    },
  }
}

/** What is sent by such an agent would wait in silence, and expire. */
async function warnOfUnknownCarriers(db: Executor, { rcs }: Carriers, logger: Logger): Promise<void> {
  const { rows } = await db.query<{ carrier: string }>('select distinct carrier from agents where carrier <> all ($1)', [[...rcs.keys()]])
  for (const { carrier } of rows) logger.warn({ carrier }, 'agents have this carrier, which is not configured here: their messages wait')
}
