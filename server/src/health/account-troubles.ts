import { isLive } from '../accounts/accounts.ts'
import { QUOTAS } from '../accounts/quotas.ts'
import type { Executor } from '../db/pool.ts'
import { entriesOf, LANES } from '../delivery/lanes.ts'
import { NO_CAMPAIGN } from '../ids.ts'
import { countersWhere } from '../reports/counters.ts'

/** What may need a look in an account. The counts of messages are those of the last 24 hours. */
type AccountTroubles = {
  accountId: number
  /** For how long the oldest message has been due that could be sent now. */
  oldestDueMs: number | null
  /** Webhook endpoints whose last attempt failed, or that were disabled because they failed. */
  failingEndpoints: number
  accepted: number
  /** Messages that failed or expired, and for which no SMS was sent. */
  failed: number
  /** The larger share of the account's quotas that is used: messages of the day, or stored bytes. */
  quotaUsed: number
}

const MOST_ACCOUNTS = 1_000
/** Accounts that have used more than this share of a quota are listed. */
const MUCH_USED = 0.8

const sumIn = (condition: string) =>
  `select sum(accepted) as accepted, sum(failed + expired - sms_sent) as failed
   from (${countersWhere(`${condition} and n.hour >= now() - interval '24 hours'`)}) as counted`

const quota = (name: keyof typeof QUOTAS) => `greatest(1, coalesce(a.${QUOTAS[name].column}, ${QUOTAS[name].byDefault}))`

/**
 * The queue costs an index look-up for each lane, as the claim does. Counters are read by key: of messages sent one by one, and of campaigns that
 * have not ended or did so within three days, since their messages live for 48 hours by default. Cancelled campaigns do not count: their messages
 * failed on purpose.
 */
export const READ_TROUBLES = `
  with recursive ${LANES}, due as materialized (
    select l.account_id, min(entry.due_at) as oldest from lane l
    join agent_assignments s on s.account_id = l.account_id and s.agent_id = l.agent_id
    left join campaigns c on c.id = l.campaign_id and l.campaign_id <> '${NO_CAMPAIGN}',
    lateral (${entriesOf('l', '1')}) as entry
    where l.due_at <= now() and s.active and ${isLive('l.account_id')} and (l.campaign_id = '${NO_CAMPAIGN}' or c.status = 'RUNNING')
    group by 1
  ), failing as materialized (
    select account_id, count(*)::int as endpoints from webhook_endpoints
    where removed_at is null and (status = 'ACTIVE' and failing_since is not null or disabled_because = 'FAILING') group by 1
  ), recent as materialized (
    select id, account_id from campaigns where status in ('RUNNING', 'PAUSED')
    union all select id, account_id from campaigns where status = 'COMPLETED' and completed_at >= now() - interval '3 days'
  ), of_campaigns as materialized (
    select r.account_id, sum(of_one.accepted) as accepted, sum(of_one.failed) as failed
    from recent r, lateral (${sumIn('n.account_id = r.account_id and n.campaign_id = r.id')}) as of_one group by 1
  ), figures as (
    select a.id as "accountId", (extract(epoch from now() - due.oldest) * 1000)::bigint as "oldestDueMs",
      coalesce(failing.endpoints, 0) as "failingEndpoints",
      (coalesce(single.accepted, 0) + coalesce(of_campaigns.accepted, 0))::bigint as accepted,
      greatest(0, coalesce(single.failed, 0) + coalesce(of_campaigns.failed, 0))::bigint as failed,
      greatest(
        coalesce(case when u.day = utc_day(now()) then u.messages end, 0)::float8 / ${quota('messagesPerDay')},
        coalesce(u.stored_bytes, 0)::float8 / ${quota('storedBytes')}
      ) as "quotaUsed"
    from accounts a
    left join due on due.account_id = a.id
    left join failing on failing.account_id = a.id
    left join of_campaigns on of_campaigns.account_id = a.id
    left join account_usage u on u.account_id = a.id,
    lateral (${sumIn(`n.account_id = a.id and n.campaign_id = '${NO_CAMPAIGN}'`)}) as single
  )
  select * from figures
  where "oldestDueMs" is not null or "failingEndpoints" > 0 or failed > 0 or "quotaUsed" >= ${MUCH_USED}
  order by "oldestDueMs" desc nulls last, "failingEndpoints" desc, failed desc, "accountId" limit ${MOST_ACCOUNTS}`

/** Reads the accounts in which something may need a look. All others are well. */
export async function readTroubles(db: Executor): Promise<AccountTroubles[]> {
  // Without a name, so that it is planned each time: a plan that was made while the queue was empty would scan it for each lane later.
  return (await db.query<AccountTroubles>(READ_TROUBLES)).rows
}
