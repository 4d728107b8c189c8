import type { Executor } from '../db/pool.ts'
import type { EventKind } from '../events/schemas.ts'

// The statement that makes a change also inserts its counts as deltas (events/changes.ts). Deltas are folded into totals here.

/** The counter of each kind of change. A message counts at most once in each. */
export const COUNTERS = {
  'message.accepted': 'accepted',
  'message.sent': 'sent',
  'message.delivered': 'delivered',
  'message.read': 'read',
  'message.failed': 'failed',
  'message.expired': 'expired',
  'message.clicked': 'clicked',
  'message.replied': 'replied',
  'recipient.opted_out': 'opted_out',
  'sms.sent': 'sms_sent',
  'sms.delivered': 'sms_delivered',
  'sms.failed': 'sms_failed',
  'sms.skipped': 'sms_skipped',
  // Failed or expired before it was sent. Reports do not show it, but it is needed to derive the status of a campaign's messages.
  'message.unsent': 'unsent',
} as const satisfies Partial<Record<EventKind | 'message.accepted' | 'message.unsent' | 'sms.skipped', string>>
export type Counter = keyof typeof COUNTERS
export const COUNTED = Object.values(COUNTERS)
export type Counts = Record<(typeof COUNTED)[number], number>

/** SQL over summed counters: the number of messages in each status now. */
export const BY_STATUS = {
  ACCEPTED: 'accepted - sent - unsent',
  SENT: 'sent - delivered - (failed + expired - unsent)',
  DELIVERED: 'delivered - read',
  READ: 'read',
  FAILED: 'failed',
  EXPIRED: 'expired',
} as const

/** SQL for counters `n`, folded or not. One statement reads both, so that a concurrent fold neither loses nor doubles any. */
export const countersWhere = (condition: string) =>
  ['report_totals', 'report_deltas']
    .map((table) => `select hour, ${COUNTED.join(', ')} from ${table} n where ${condition}`)
    .join(' union all ')

export const countersOfCampaign = (campaign: string) =>
  `(${countersWhere(`n.account_id = ${campaign}.account_id and n.campaign_id = ${campaign}.id`)})`

const BATCH_SIZE = 10_000

/** Folds deltas into totals, so that reading stays fast. Concurrent folds take different deltas. Returns whether there may be more. */
export async function foldReports(db: Executor): Promise<{ mayBeMore: boolean }> {
  const { rows } = await db.query<{ folded: number }>({ name: 'fold-reports', text: FOLD, values: [BATCH_SIZE] })
  return { mayBeMore: rows[0]?.folded === BATCH_SIZE }
}

const FOLD = `
  with batch as (
    delete from report_deltas where ctid = any (array(
      select ctid from report_deltas order by account_id, campaign_id, hour limit $1 for update skip locked))
    returning *
  ), folded as (
    insert into report_totals as c (account_id, campaign_id, hour, ${COUNTED.join(', ')})
    select account_id, campaign_id, hour, ${COUNTED.map((counter) => `sum(${counter})`).join(', ')}
    from batch group by 1, 2, 3 order by 1, 2, 3
    on conflict (account_id, campaign_id, hour) do update
    set ${COUNTED.map((counter) => `${counter} = c.${counter} + excluded.${counter}`).join(', ')}
  )
  select count(*) as folded from batch`
