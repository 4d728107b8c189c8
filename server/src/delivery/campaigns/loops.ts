import type { Logger } from 'pino'
import { type Loop, repeat } from '../../background/repeat.ts'
import type { Pool } from '../../db/pool.ts'
import { completeDone, startDue } from './course.ts'
import { fanOut } from './fan-out.ts'
import { withdrawCancelled } from './withdraw.ts'

const COURSE_EVERY_MS = 500
// A request that starts a campaign wakes this loop. Polling finds only what another process left behind.
const MAKE_EVERY_MS = 1_000
const WITHDRAW_EVERY_MS = 1_000
// A campaign whose messages can't be made is skipped for this long, so that the others get their turn.
const PASSED_BY_MS = 10_000

/** The loops that move campaigns. Each runs by itself, so that a slow or failing one does not delay the others. `onMade`: messages are queued. */
export function startCampaignLoops(pool: Pool, logger: Logger, onMade: () => void): Loop[] {
  const passedBy = new Set<string>()

  async function course(): Promise<number> {
    if ((await startDue(pool)) > 0) making.wake()
    await completeDone(pool)
    return COURSE_EVERY_MS
  }

  async function make(): Promise<number> {
    const { made, mayBeMore, failed } = await fanOut(pool, [...passedBy])
    if (made > 0) onMade()
    if (failed !== undefined) {
      logger.error({ err: failed.error }, 'the messages of a campaign could not be made; others go on, and it is tried again')
      passedBy.add(failed.campaignId)
      setTimeout(() => passedBy.delete(failed.campaignId), PASSED_BY_MS).unref()
    }
    return mayBeMore ? 0 : MAKE_EVERY_MS
  }

  const withdraw = async () => ((await withdrawCancelled(pool)).mayBeMore ? 0 : WITHDRAW_EVERY_MS)

  const making = repeat('make messages of campaigns', logger, make)
  return [making, repeat('start and complete campaigns', logger, course), repeat('withdraw cancelled campaigns', logger, withdraw)]
}
