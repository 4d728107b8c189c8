-- The hot statements of expiry, as PostgreSQL gets them. "npm run generate" writes this page from server/scripts/hot-statements.ts.
-- Tables of a month have the name that they have in July 2026. To try one in psql: paste it, then run
--   set plan_cache_mode = force_generic_plan; explain execute "name" (null, …);

-- Finds out whether messages have expired. (server/src/delivery/expiry.ts)
prepare "find-expired" as
select exists (select from expiries where expires_at <= now()) or reached not between uuid_v7_from(now() - interval '48 hours 30 seconds') and uuid_v7_from(now() - interval '48 hours 1 seconds')
  or exists (select from messages where id >= reached and id < uuid_v7_from(now() - interval '48 hours 1 seconds')) as "isDue" from expiry_walk;

-- Deletes expiries that have passed, and reads their messages. (server/src/delivery/expiry.ts)
prepare "delete-expiries" as
with due as materialized (
  delete from expiries where message_id = any (array(
      select message_id from expiries where expires_at <= now() order by expires_at limit $1))
  returning message_id
)
select due.message_id as "messageId", coalesce(m.status in ('ACCEPTED', 'SENDING', 'SENT'), false) as "isOpen"
from due left join messages m on m.id = due.message_id;

-- Reads the next messages that are older than the default lifetime. (server/src/delivery/expiry.ts)
prepare "walk-expired" as
select id as "messageId", expires_at <= now() and status in ('ACCEPTED', 'SENDING', 'SENT') as "isOpen"
from messages where id >= (select reached from expiry_walk) and id < uuid_v7_from(now() - interval '48 hours 1 seconds') order by id limit $1;

-- Marks messages as expired, and queues their revocation. (server/src/delivery/expiry.ts)
prepare "expire" as
with due as materialized (
  select ids.message_id, q.attempts, coalesce(q.claimed, true) as was_claimed
  from (select unnest((select $1::uuid[])) as message_id order by 1) as ids left join lateral (
    select attempts, claimed from queue q where q.message_id = ids.message_id for update
  ) as q on true
), locked as materialized (
  select m.id, m.status, m.expires_at, due.attempts, due.was_claimed from due join messages_2026_07 m on m.id = due.message_id
  order by m.id for no key update of m
), expired as (
  -- The condition uses the columns read under the lock. With the message's own columns, PostgreSQL expected no row, since the table was last
  -- analyzed when nothing had expired, and scanned all messages: 1.8 s for 1,000 of 8,000.
  update messages_2026_07 m set status = 'EXPIRED'
  from locked l where m.id = l.id and l.status in ('ACCEPTED', 'SENDING', 'SENT') and l.expires_at <= now()
  returning m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test, m.expires_at, m.sent_at, l.attempts, l.was_claimed
), dropped as (
  delete from queue where message_id = any (array(select id from expired where attempts = 0))
), turned as (
  -- A lease that has not ended is a running call.
  update queue q set task = 'revoke', priority = 1, due_at = greatest(q.leased_until, now()), attempts = 0, lease = null, leased_until = '-infinity',
    delivery_window = null
  where q.message_id = any (array(select id from expired where attempts > 0))
), revoking as (
  insert into queue (message_id, account_id, agent_id, task, priority, due_at, expires_at)
  select id, account_id, agent_id, 'revoke', 1, now(), expires_at from expired where attempts is null
), expired_change as materialized (
  select 0 as place, 'message.expired' as kind, expires_at as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from expired m where expires_at is not null
  union all
  select 1 as place, 'message.unsent' as kind, expires_at as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from expired m where expires_at is not null and sent_at is null
  union all
  select 2 as place, 'message.claimed' as kind, expires_at as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from expired m where expires_at is not null and campaign_id is not null and not was_claimed
), expired_change_counted as (
  insert into report_deltas (account_id, campaign_id, hour, expired, unsent, claimed)
  select account_id, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), date_trunc('hour', at, 'UTC'),
    count(*) filter (where kind = 'message.expired'), count(*) filter (where kind = 'message.unsent'), count(*) filter (where kind = 'message.claimed')
  from expired_change where not test group by 1, 2, 3
), expired_change_logged as (
  insert into log_pages (account_id, event_count, events)
  select account_id, count(*), json_agg(
      json_build_array(kind, at, id, client_reference_id, agent_id, recipient, campaign_id, test, more) order by n)
  from (
    select *, row_number() over (partition by account_id order by place, id) - 1 as n from expired_change where kind in ('message.expired')
  ) as numbered
  group by account_id, n / 100 order by account_id, n / 100
), expired_change_listed as (
  insert into message_events (message_id, account_id, kind, occurred_at, reason, campaign_id, recipient)
  select id, account_id, replace(replace(kind, 'message.', ''), '.', '-'), at, reason, campaign_id,
    case when campaign_id is not null then recipient end
  from expired_change where kind in ('message.expired') and (campaign_id is not null or kind like 'sms.%')
)
select expired.id, coalesce(expired.attempts, 1) > 0 as "wasTried", f.message_id is not null as "fallsBack"
from expired left join sms_fallbacks_2026_07 f on f.message_id = expired.id;

-- Schedules or skips the SMS of expired messages. (server/src/delivery/sms/schedule.ts)
prepare "settle-expired" as
with expired as materialized (
  select m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test, m.traffic, m.expires_at, e.was_tried and revoked.kind is null as awaits_revocation
  from unnest((select $1::uuid[]), (select $2::bool[])) as e (id, was_tried) join messages_2026_07 m on m.id = e.id
  -- The network may have reported the revocation before this expiry. With "exists", PostgreSQL may read all events into memory.
  left join lateral (
    select kind from message_events_2026_07 v where v.message_id = m.id and v.kind = 'revoked' limit 1
  ) as revoked on true
), sms_settled as (
  update sms_fallbacks_2026_07 f set status = case when f.after_expiry then 'SCHEDULED' else 'SKIPPED' end,
    reason = case when f.after_expiry then 'RCS_EXPIRED' else 'EXPIRED' end,
    due_at = case when f.after_expiry then
    greatest(m.expires_at + f.after_expiry_delay_seconds * interval '1 second', f.after_expiry_not_before) end
  from expired as m where f.message_id = m.id and f.status in ('WAITING')
  returning m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test, m.traffic, m.awaits_revocation, f.status, f.reason, f.due_at, f.segments
), sms_queued as (
  insert into sms_queue (message_id, copy, account_id, recipient, priority, campaign_id, planned_at, awaits_revocation, due_at, expires_at,
      segments)
  select id, 0, account_id, recipient, case traffic when 'PROMOTION' then 2 else 0 end,
    coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), due_at, awaits_revocation,
    case when awaits_revocation then greatest(due_at, now() + interval '30 seconds') else due_at end,
    greatest(due_at, now()) + interval '48 hours', segments
  from sms_settled where status = 'SCHEDULED'
), sms_noted as (
  insert into message_events (message_id, account_id, kind, occurred_at, reason)
  select id, account_id, 'sms-' || replace(lower(status), '_', '-'), now(), reason from sms_settled
  on conflict do nothing
), sms_settled_change as materialized (
  select 0 as place, 'sms.skipped' as kind, now()::timestamptz(3) as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from sms_settled m where now()::timestamptz(3) is not null and status = 'SKIPPED'
), sms_settled_change_counted as (
  insert into report_deltas (account_id, campaign_id, hour, sms_skipped)
  select account_id, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), date_trunc('hour', at, 'UTC'),
    count(*) filter (where kind = 'sms.skipped')
  from sms_settled_change where not test group by 1, 2, 3
)
select;
