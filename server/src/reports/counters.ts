import type { Executor } from '../db/pool.ts'
import type { EventKind } from '../events/kinds.ts'
import { NO_CAMPAIGN } from '../messages/states.ts'

// Counts are written by the statement that changes what they count, as a step of it: a crash loses neither or both. Each statement adds rows
// of its own, one for each account, campaign and hour, so that no two ever wait for each other; they are added up from time to time.

/** What is counted, each once a message: what callers are told of, and two things more. */
const COUNTERS = {
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
} as const satisfies Partial<Record<EventKind | 'message.accepted' | 'sms.skipped', string>>
export const COUNTED = Object.values(COUNTERS)
export type Counts = Record<(typeof COUNTED)[number], number>

/** `at`, `where`: as in the lists of what is told, which fit here. */
type Reached = { kind: keyof typeof COUNTERS; at: string; where?: string }

/**
 * A step that counts what messages have come to. `moved` names a step with `account_id`, `campaign_id`, `test` and the columns of `reached`;
 * times as they were stored, since rounding can lead into the next hour.
 */
export function countReached(moved: string, reached: readonly Reached[]): string {
  const counters = reached.map(({ kind }) => COUNTERS[kind])
  const steps = reached.map(
    ({ kind, at, where }) => `('${COUNTERS[kind]}', ${where === undefined ? at : `case when ${where} then ${at} end`})`,
  )
  return `
  ${moved}_counted as (
    insert into report_changes (account_id, campaign_id, hour, ${counters.join(', ')})
    select account_id, coalesce(campaign_id, '${NO_CAMPAIGN}'), date_trunc('hour', reached.reached_at, 'UTC'),
      ${counters.map((counter) => `count(*) filter (where reached.counter = '${counter}')`).join(', ')}
    from ${moved}, lateral (values ${steps.join(', ')}) as reached (counter, reached_at)
    where not test and reached.reached_at is not null
    group by 1, 2, 3
  )`
}

/** What `message_events` has of a campaign's message, for the lists: columns `campaign_id` and `recipient`. */
export const LISTED = 'campaign_id, case when campaign_id is not null then recipient end'

/** What of a message's timeline says that its recipient did something, the first time. */
const FIRST = `case a.kind when 'clicked' then 'clicked' when 'opted-out' then 'opted-out' else 'replied' end`

/**
 * Steps that note and count what recipients did, each once a message, however often they do it: of two at once, the second finds the note of
 * the first. `acted` names a step that returns the rows of `recipient_actions` that were written. Of a message that has been dropped,
 * nothing is left to count.
 */
export const countFirsts = (acted: string) => `
  firsts as (
    insert into message_events (message_id, account_id, kind, occurred_at, campaign_id, recipient)
    select m.id, m.account_id, ${FIRST}, a.occurred_at, m.campaign_id, case when m.campaign_id is not null then m.recipient end
    from ${acted} a join messages m on m.id = a.message_id
    where a.kind <> 'opted-in' and not m.test
    on conflict do nothing
    returning account_id, campaign_id, false as test, kind, occurred_at
  ), ${countReached('firsts', [
    { kind: 'message.clicked', at: 'occurred_at', where: `kind = 'clicked'` },
    { kind: 'message.replied', at: 'occurred_at', where: `kind = 'replied'` },
    { kind: 'recipient.opted_out', at: 'occurred_at', where: `kind = 'opted-out'` },
  ])}`

const MOST_AT_ONCE = 10_000

/** Adds changes up, so that reading stays quick. Of two at once each takes changes of its own. Returns whether there may be more. */
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
