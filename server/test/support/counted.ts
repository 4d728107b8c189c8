import assert from 'node:assert/strict'
import { ROW_BYTES } from '../../src/accounts/usage.ts'
import type { Executor } from '../../src/db/pool.ts'
import { memberBytes } from '../../src/groups/member-bytes.ts'
import { COUNTED } from '../../src/reports/counters.ts'

// Compares counters with rows: each counter of each account, campaign and hour is computed once more from messages, SMS fallbacks and actions
// of recipients.

const MOST_SHOWN = 20
const COLUMNS = COUNTED.join(', ')
/** No row says when a message was claimed. The claims of each campaign are compared as a whole. */
const BY_HOUR = COUNTED.filter((counter) => counter !== 'claimed')

/** A missing time becomes an hour that no counter has. */
const NEVER = `'infinity'::timestamptz`

/** One statement, so that it sees one moment: the service may go on meanwhile. */
const COMPARE = `
  with counters as materialized (
    select account_id, campaign_id, hour, ${COLUMNS} from report_totals
    union all select account_id, campaign_id, hour, ${COLUMNS} from report_deltas
  ), counted as materialized (
    select c.account_id, c.campaign_id, c.hour, each.kind, sum(each.count)::int as count
    from counters c, lateral (values ${BY_HOUR.map((counter) => `('${counter}', c.${counter})`).join(', ')}) as each (kind, count)
    group by 1, 2, 3, 4 having sum(each.count) <> 0
  ), own as materialized (
    select * from messages where not test
  ), acts as materialized (
    select a.message_id, done.kind, array_agg(a.occurred_at) as times
    from recipient_actions a,
      lateral (select case a.kind when 'clicked' then 'clicked' when 'opted-out' then 'opted-out' else 'replied' end as kind) as done
    where a.kind <> 'opted-in' group by 1, 2
  ), reached as materialized (
    select m.id, m.account_id, m.campaign_id, m.recipient collate "C" as recipient, step.kind, step.at
    from own m left join sms_fallbacks f on f.message_id = m.id, lateral (
      values ('accepted', m.accepted_at), ('sent', m.sent_at), ('delivered', m.delivered_at), ('read', m.read_at), ('failed', m.failed_at),
        ('expired', case m.status when 'EXPIRED' then m.expires_at end),
        ('unsent', case when m.sent_at is null then case m.status when 'EXPIRED' then m.expires_at when 'FAILED' then m.failed_at end end),
        ('sms_sent', f.sent_at), ('sms_delivered', f.delivered_at), ('sms_failed', f.failed_at),
        -- It has no column of its own.
        ('sms_skipped', case f.status when 'SKIPPED' then coalesce(
          (select min(e.occurred_at) from message_events e where e.message_id = m.id and e.kind = 'sms-skipped'), ${NEVER}) end)
    ) as step (kind, at)
    where step.at is not null
    union all
    -- Only the timeline says which of two concurrent actions was first; its time is that of one of them.
    select m.id, m.account_id, m.campaign_id, m.recipient, replace(d.kind, '-', '_'), coalesce(
      (select min(e.occurred_at) from message_events e where e.message_id = m.id and e.kind = d.kind and e.occurred_at = any (d.times)), ${NEVER})
    from acts d join messages m on m.id = d.message_id where not m.test
  ), recounted as materialized (
    select account_id, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000') as campaign_id,
      to_timestamp(floor(extract(epoch from at) / 3600) * 3600) as hour, kind, count(*)::int as count
    from reached group by 1, 2, 3, 4
  ), listed as materialized (
    select message_id as id, campaign_id, recipient, replace(kind, '-', '_') as kind, occurred_at as at from message_events where campaign_id is not null
  ), to_be_listed as materialized (
    select id, campaign_id, recipient, kind, at from reached where campaign_id is not null and kind not in ('accepted', 'unsent', 'sms_skipped')
  )
  select (select count(*)::int from recounted) as compared,
    (select coalesce(json_agg(d), '[]') from (
      select account_id, campaign_id, hour, kind, coalesce(c.count, 0) as counted, coalesce(r.count, 0) as recounted
      from counted c full join recounted r using (account_id, campaign_id, hour, kind)
      where c.count is distinct from r.count order by 1, 2, 3, 4 limit ${MOST_SHOWN}
    ) as d) as miscounted,
    (select coalesce(json_agg(d), '[]') from (select * from (
      select c.id, coalesce((select sum(n.claimed) from counters n where n.campaign_id = c.id), 0) as counted, (
        select count(*) from messages m left join queue q on q.message_id = m.id
        where m.campaign_id = c.id and (m.status <> 'ACCEPTED' or coalesce(q.claimed, true))) as recounted
      from campaigns c
    ) as c where counted <> recounted limit ${MOST_SHOWN}) as d) as "miscountedClaims",
    (select coalesce(json_agg(d), '[]') from ((table listed except all table to_be_listed) limit ${MOST_SHOWN}) as d) as "wronglyListed",
    (select coalesce(json_agg(d), '[]') from ((table to_be_listed except all table listed) limit ${MOST_SHOWN}) as d) as unlisted,
    (select coalesce(json_agg(d), '[]') from (
      select a.id, a.message_id, a.campaign_id from recipient_actions a left join messages m on m.id = a.message_id
      where a.campaign_id is distinct from m.campaign_id and (m.id is not null or a.message_id is null) limit ${MOST_SHOWN}
    ) as d) as misattributed`

/**
 * Every counter equals its rows, and the lists of campaigns have what is counted. Returns how many counters were compared, so that a test can
 * assert that there was something to compare. Not for a database in which a test writes or moves messages by hand.
 */
export async function assertAllCounted(db: Executor): Promise<number> {
  const { rows } = await db.query<{ compared: number } & Record<string, object[]>>({ name: 'assert-all-counted', text: COMPARE })
  const { compared, ...faults } = rows[0] as (typeof rows)[number]
  const lines = Object.entries(faults).flatMap(([fault, all]) => all.map((one) => `${fault}: ${JSON.stringify(one)}`))
  assert.ok(lines.length === 0, `reports do not say what the rows do:\n${lines.join('\n')}`)
  return compared
}

/** `hour`: as the API writes times. `counts`: without zeros. */
export type Counted = { campaignId: string; hour: string; counts: Record<string, number> }

/** The counters of an account, folded or not. */
export async function readCounted(db: Executor, { accountId }: { accountId: number }): Promise<Counted[]> {
  const { rows } = await db.query<{ campaignId: string; hour: Date; counts: Record<string, number> }>(
    `select campaign_id as "campaignId", hour, json_build_object(${COUNTED.map((counter) => `'${counter}', sum(${counter})`).join(', ')}) as counts
     from (
       select account_id, campaign_id, hour, ${COLUMNS} from report_totals
       union all select account_id, campaign_id, hour, ${COLUMNS} from report_deltas
     ) as counters
     where account_id = $1 group by 1, 2 order by 1, 2`,
    [accountId],
  )
  return rows.map(({ campaignId, hour, counts }) => ({
    campaignId,
    hour: hour.toISOString(),
    counts: Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0)),
  }))
}

/** The usage of accounts, computed once more from the rows: the messages of the last counted day, and all stored bytes. */
const COMPARE_USAGE = `
  with changes as materialized (
    select account_id, utc_day(at) as day, sum(messages) as messages, sum(message_bytes + content_bytes) as bytes
    from account_usage_deltas group by 1, 2
  ), last_days as materialized (
    select account_id, max(day) as day from (select account_id, day from account_usage union all select account_id, day from changes) as days group by 1
  ), counted as materialized (
    select d.account_id, d.day,
      coalesce((select u.messages from account_usage u where u.account_id = d.account_id and u.day = d.day), 0)
        + coalesce((select c.messages from changes c where c.account_id = d.account_id and c.day = d.day), 0) as messages,
      coalesce((select u.stored_bytes from account_usage u where u.account_id = d.account_id), 0)
        + coalesce((select sum(c.bytes) from changes c where c.account_id = d.account_id), 0) as bytes
    from last_days d
  ), recounted as materialized (
    select a.id as account_id,
      (select count(*) from messages m
       where m.account_id = a.id and m.campaign_id is null and m.traffic = 'TRANSACTION' and utc_day(m.accepted_at) = d.day) as messages,
      coalesce((select sum(${ROW_BYTES} + coalesce(octet_length(m.content::text), 0) + coalesce(octet_length(m.client_reference_id), 0)
                  + coalesce(octet_length(f.plan::text), 0))
                from messages m left join sms_fallbacks f on f.message_id = m.id where m.account_id = a.id), 0)
        + coalesce((select sum(octet_length(c.message::text)) from contents c where c.account_id = a.id), 0)
        + coalesce((select sum(${ROW_BYTES} + coalesce(octet_length(c.fallback::text), 0) + coalesce(octet_length(c.variables::text), 0)) from campaigns c
                    where c.account_id = a.id and c.retry_of is null), 0)
        + coalesce((select sum(g.bytes) from groups g where g.account_id = a.id), 0)
        + coalesce((select sum(c.reserved_bytes) from campaigns c where c.account_id = a.id and c.status <> 'CANCELLED'), 0) as bytes
    from accounts a left join last_days d on d.account_id = a.id
  )
  select account_id, day, c.messages, r.messages as "messagesOfRows", c.bytes, r.bytes as "bytesOfRows"
  from recounted r join counted c using (account_id)
  where c.messages <> r.messages or c.bytes <> r.bytes order by 1 limit ${MOST_SHOWN}`

/** Skips a group whose members a test wrote by hand. */
const COMPARE_GROUPS = `
  select g.account_id, g.number, g.bytes, m.bytes as "bytesOfMembers" from groups g, lateral (
    select coalesce(sum(${memberBytes('m')}), 0) as bytes from group_members m where m.account_id = g.account_id and m.group_number = g.number
  ) as m
  where g.bytes > 0 and g.bytes <> m.bytes limit ${MOST_SHOWN}`

/** Fails where the counted usage differs from the rows. Skips an account without counted usage: a test wrote its rows by hand. */
export async function assertUsageCounted(db: Executor): Promise<void> {
  const { rows: groups } = await db.query(COMPARE_GROUPS)
  assert.deepEqual(groups, [], 'the bytes of a group are not those of its members')
  const { rows } = await db.query(COMPARE_USAGE)
  assert.ok(rows.length === 0, `usage is not what the rows say:\n${rows.map((row) => JSON.stringify(row)).join('\n')}`)
}
