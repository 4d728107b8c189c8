import type { Logger } from 'pino'
import { type Loop, repeat } from '../../background/repeat.ts'
import type { Pool } from '../../db/pool.ts'
import type { ErasedPeople } from '../../erasure/erased.ts'
import { fanOut } from './fan-out.ts'
import { completeDone, startDue } from './lifecycle.ts'
import { withdrawCancelled } from './withdraw.ts'

const LIFECYCLE_EVERY_MS = 500
// The lifecycle loop wakes the fan-out loop when a campaign starts. Polling only finds campaigns whose process has stopped.
const FAN_OUT_EVERY_MS = 1_000
const WITHDRAW_EVERY_MS = 1_000
// A campaign whose fan-out failed is skipped for this long, so that the loop continues with the others.
const SKIPPED_FOR_MS = 10_000

type Options = { pool: Pool; logger: Logger; erased: ErasedPeople; publicUrl: string; onQueued: () => void }

/** Starts the loops that move campaigns. They are independent: a slow or failing loop delays no other. `onQueued`: messages were queued. */
export function startCampaignLoops({ pool, logger, erased, publicUrl, onQueued }: Options): Loop[] {
  const skipped = new Set<string>()

  async function startAndComplete(): Promise<number> {
    if ((await startDue(pool)) > 0) fanOutLoop.wake()
    await completeDone(pool)
    return LIFECYCLE_EVERY_MS
  }

  async function fanOutNext(): Promise<number> {
    const { created, mayBeMore, failed } = await fanOut(pool, erased, { skipped: [...skipped], publicUrl })
    if (created > 0) onQueued()
    if (failed !== undefined) {
      logger.error({ campaignId: failed.campaignId, err: failed.error }, 'failed to fan out a campaign; will retry')
      skipped.add(failed.campaignId)
      setTimeout(() => skipped.delete(failed.campaignId), SKIPPED_FOR_MS).unref()
    }
    return mayBeMore ? 0 : FAN_OUT_EVERY_MS
  }

  const withdraw = async () => ((await withdrawCancelled(pool)).mayBeMore ? 0 : WITHDRAW_EVERY_MS)

  const fanOutLoop = repeat('fan out campaigns', logger, fanOutNext)
  const lifecycleLoop = repeat('start and complete campaigns', logger, startAndComplete)
  return [fanOutLoop, lifecycleLoop, repeat('withdraw cancelled campaigns', logger, withdraw)]
}
