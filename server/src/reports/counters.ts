import type { Executor } from '../db/pool.ts'
import type { EventKind } from '../events/schemas.ts'

// The statement that makes a change also writes its counts (events/changes.ts), as rows of its own. They are added up here from time to time.

/** What is counted, each once a message, by the kind of change. */
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
  // Failed or expired before it was sent. Reports do not show it, but it gives the status of a campaign's messages.
  'message.unsent': 'unsent',
} as const satisfies Partial<Record<EventKind | 'message.accepted' | 'message.unsent' | 'sms.skipped', string>>
export type Counter = keyof typeof COUNTERS
export const COUNTED = Object.values(COUNTERS)
export type Counts = Record<(typeof COUNTED)[number], number>

/** In SQL, of summed counters: how many messages have which status now. */
export const BY_STATUS = {
  ACCEPTED: 'accepted - sent - unsent',
  SENT: 'sent - delivered - (failed + expired - unsent)',
  DELIVERED: 'delivered - read',
  READ: 'read',
  FAILED: 'failed',
  EXPIRED: 'expired',
} as const

/** In SQL: counters `n`, folded or not. Read in one statement, so that a fold in between neither loses nor doubles any. */
export const countersWhere = (condition: string) =>
  ['report_counts', 'report_changes']
    .map((table) => `select hour, ${COUNTED.join(', ')} from ${table} n where ${condition}`)
    .join(' union all ')

export const countersOfCampaign = (campaign: string) =>
  `(${countersWhere(`n.account_id = ${campaign}.account_id and n.campaign_id = ${campaign}.id`)})`

const MOST_AT_ONCE = 10_000

/** Adds changes up, so that reading stays quick. Concurrent folds take different changes. Returns whether there may be more. */
export async function foldReports(db: Executor): Promise<{ mayBeMore: boolean }> {
  const { rows } = await db.query<{ folded: number }>({ name: 'fold-reports', text: FOLD, values: [MOST_AT_ONCE] })
  return { mayBeMore: rows[0]?.folded === MOST_AT_ONCE }
}

const FOLD = `
  with taken as (
    delete from report_changes where ctid = any (array(
      select ctid from report_changes order by account_id, campaign_id, hour limit $1 for update skip locked))
    returning *
  ), folded as (
    insert into report_counts as c (account_id, campaign_id, hour, ${COUNTED.join(', ')})
    select account_id, campaign_id, hour, ${COUNTED.map((counter) => `sum(${counter})`).join(', ')}
    from taken group by 1, 2, 3 order by 1, 2, 3
    on conflict (account_id, campaign_id, hour) do update set ${COUNTED.map((counter) => `${counter} = c.${counter} + excluded.${counter}`).join(', ')}
  )
  select count(*) as folded from taken`
