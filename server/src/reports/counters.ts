import { fold, foldStatement } from '../db/fold.ts'
import type { Executor } from '../db/pool.ts'
import { COUNTERS } from '../events/changes.ts'

// The statement that makes a change also inserts its counts as deltas (events/changes.ts). Deltas are folded into totals here.

export const COUNTED = Object.values(COUNTERS)
export type Counts = Record<(typeof COUNTED)[number], number>

/** SQL over summed counters: the number of a campaign's messages in each status now. */
export const BY_STATUS = {
  ACCEPTED: 'accepted - claimed',
  SENDING: 'claimed - sent - unsent',
  SENT: 'sent - delivered - (failed + expired - unsent)',
  DELIVERED: 'delivered - read',
  READ: 'read',
  FAILED: 'failed',
  EXPIRED: 'expired',
} as const

/** SQL over summed counters: the number of messages that are ACCEPTED or SENDING. */
export const UNFINISHED = 'accepted - sent - unsent'

/** SQL for counters `n`, folded or not. One statement reads both, so that a concurrent fold neither loses nor doubles any. */
export const countersWhere = (condition: string) =>
  ['report_totals', 'report_deltas']
    .map((table) => `select hour, ${COUNTED.join(', ')} from ${table} n where ${condition}`)
    .join(' union all ')

export const countersOfCampaign = (campaign: string) =>
  `(${countersWhere(`n.account_id = ${campaign}.account_id and n.campaign_id = ${campaign}.id`)})`

export const FOLD_REPORTS = foldStatement({
  deltas: 'report_deltas',
  order: 'account_id, campaign_id, hour',
  steps: `folded as (
    insert into report_totals as c (account_id, campaign_id, hour, ${COUNTED.join(', ')})
    select account_id, campaign_id, hour, ${COUNTED.map((counter) => `sum(${counter})`).join(', ')}
    from batch group by 1, 2, 3 order by 1, 2, 3
    on conflict (account_id, campaign_id, hour) do update
    set ${COUNTED.map((counter) => `${counter} = c.${counter} + excluded.${counter}`).join(', ')}
  )`,
})

export const foldReports = (db: Executor) => fold(db, 'fold-reports', FOLD_REPORTS)
