import assert from 'node:assert/strict'
import type { Executor } from '../../src/db/pool.ts'
import { COUNTED } from '../../src/reports/counters.ts'

// What reports count, held against the rows that they count: each counter of each account, campaign and hour is worked out once more, from
// the messages, their SMS and what their recipients did, and not from anything that the counters were made of.

/** In one statement, and so of one moment: the service may go on meanwhile. */
const COMPARE = `
  with counters as materialized (
    select * from report_counts union all select * from report_changes
  ), counted as materialized (
    select c.account_id, c.campaign_id, c.hour, each.kind, sum(each.count)::int as count
    from counters c, lateral (values ${COUNTED.map((counter) => `('${counter}', c.${counter})`).join(', ')}) as each (kind, count)
    group by 1, 2, 3, 4 having sum(each.count) <> 0
  ), own as materialized (
    select * from messages where not test
  ), reached as materialized (
    select m.id, m.account_id, m.campaign_id, m.recipient, step.kind, step.at
    from own m left join sms_fallbacks f on f.message_id = m.id, lateral (
      values ('accepted', m.accepted_at), ('sent', m.sent_at), ('delivered', m.delivered_at), ('read', m.read_at), ('failed', m.failed_at),
        ('expired', case when m.status = 'EXPIRED' then m.expires_at end),
        ('sms_sent', f.sent_at), ('sms_delivered', f.delivered_at), ('sms_failed', f.failed_at),
        ('sms_skipped', case when f.status = 'SKIPPED' then
          (select max(e.occurred_at) from message_events e where e.message_id = m.id and e.kind = 'sms-skipped') end)
    ) as step (kind, at)
    where step.at is not null
    union all
    -- The first that was written down, whichever time it has.
    select * from (
      select distinct on (m.id, done.kind) m.id, m.account_id, m.campaign_id, m.recipient, done.kind, a.occurred_at
      from recipient_actions a join own m on m.id = a.message_id,
        lateral (select case a.kind when 'clicked' then 'clicked' when 'opted-out' then 'opted_out' else 'replied' end as kind) as done
      where a.kind <> 'opted-in'
      order by m.id, done.kind, a.id
    ) as first
  ), recounted as materialized (
    select account_id, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000') as campaign_id, date_trunc('hour', at, 'UTC') as hour, kind,
      count(*)::int as count
    from reached group by 1, 2, 3, 4
  ), listed as materialized (
    select message_id as id, campaign_id, recipient, replace(kind, '-', '_') as kind, occurred_at as at from message_events where campaign_id is not null
    union all
    select id, campaign_id, recipient, 'accepted', accepted_at from own where campaign_id is not null
  ), to_be_listed as materialized (
    select id, campaign_id, recipient, kind, at from reached where campaign_id is not null and kind <> 'sms_skipped'
  )
  select (select count(*)::int from recounted) as compared,
    (select coalesce(json_agg(d), '[]') from (
      select account_id, campaign_id, hour, kind, coalesce(c.count, 0) as counted, coalesce(r.count, 0) as recounted
      from counted c full join recounted r using (account_id, campaign_id, hour, kind)
      where c.count is distinct from r.count order by 1, 2, 3, 4
    ) as d) as miscounted,
    (select coalesce(json_agg(d), '[]') from ((table listed except all table to_be_listed) limit 20) as d) as "wronglyListed",
    (select coalesce(json_agg(d), '[]') from ((table to_be_listed except all table listed) limit 20) as d) as unlisted,
    (select coalesce(json_agg(a.id), '[]') from recipient_actions a left join messages m on m.id = a.message_id
      where a.campaign_id is distinct from m.campaign_id) as misattributed`

/**
 * Every counter is what the rows say, and the lists of campaigns hold what is counted. Returns how many were compared, so that a caller can
 * see that there was something to see. Not for a database in which a test has moved messages by hand.
 */
export async function assertAllCounted(db: Executor): Promise<number> {
  const { rows } = await db.query<{ compared: number } & Record<string, unknown>>({ name: 'assert-all-counted', text: COMPARE })
  const { compared, ...faults } = rows[0] as (typeof rows)[number]
  assert.deepEqual(faults, { miscounted: [], wronglyListed: [], unlisted: [], misattributed: [] })
  return compared
}
