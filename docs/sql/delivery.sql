-- The hot statements of delivery, as PostgreSQL gets them. "npm run generate" writes this page from server/scripts/hot-statements.ts.
-- Tables of a month have the name that they have in July 2026. To try one in psql: paste it, then run
--   set plan_cache_mode = force_generic_plan; explain execute "name" (null, …);

-- Locks a carrier's rate for a claim. (server/src/delivery/rate.ts)
prepare "lock-rate" as
select case when next_slot_at > clock_timestamp() + $2 * interval '1 second' then 0
  else (extract(epoch from greatest(next_slot_at, clock_timestamp()) - clock_timestamp()) * 1000)::float8 end as "waitMs" from carrier_rates where carrier = $1 for update skip locked;

-- Reads the lanes of a carrier that have entries to send now. (server/src/delivery/lanes.ts)
prepare "read-lanes" as
with recursive lane as (
  (select account_id, agent_id, priority, campaign_id, due_at from queue order by account_id, agent_id, priority, campaign_id, due_at limit 1)
  union all
  select next.*
  from lane, lateral (
    select account_id, agent_id, priority, campaign_id, due_at from queue q
    where (q.account_id, q.agent_id, q.priority, q.campaign_id) > (lane.account_id, lane.agent_id, lane.priority, lane.campaign_id)
    order by account_id, agent_id, priority, campaign_id, due_at limit 1
  ) as next
)
select l.account_id as "accountId", l.agent_id as "agentId", l.priority, l.campaign_id as "campaignId", ready.due,
  (extract(epoch from l.due_at) * 1000)::float8 as "dueAt",
  coalesce(extract(epoch from nullif(s.served_at, '-infinity')) * 1000, 0)::float8 as "servedAt",
  case when a.next_slot_at > clock_timestamp() + 2 * interval '1 second' then 0
  else (extract(epoch from greatest(a.next_slot_at, clock_timestamp()) - clock_timestamp()) * 1000)::float8 end as "agentWaitMs"
from lane l
join agents a on a.agent_id = l.agent_id and a.carrier = $1
join agent_assignments s on s.account_id = l.account_id and s.agent_id = l.agent_id
left join campaigns c on c.id = l.campaign_id and l.campaign_id <> '00000000-0000-0000-0000-000000000000',
lateral (select count(*)::int as due from (
    select * from (
      select message_id, account_id, campaign_id, task, due_at, expires_at, claimed from queue q
      where q.account_id = l.account_id and q.agent_id = l.agent_id and q.priority = l.priority
        and q.campaign_id = l.campaign_id and q.due_at <= now() and q.leased_until <= now()
      order by q.due_at limit (select $2::int)
    ) as first
    where task = 'revoke' or expires_at > now()) as entries) as ready
where l.due_at <= now() and l.agent_id <> all ((select $3::text[])::text[]) and ready.due > 0
  and (l.priority = 1 or s.active and l.account_id <> all (array(select id from accounts where suspended_at is not null)) and (l.campaign_id = '00000000-0000-0000-0000-000000000000' or c.status = 'RUNNING'));

-- Leases the next entries of each lane. (server/src/delivery/claim.ts)
prepare "lease-entries" as
with unleased as materialized (
  select q.* from unnest((select $1::int[]), (select $2::text[]), (select $3::smallint[]), (select $4::uuid[]), (select $5::int[]))
    as lane (account_id, agent_id, priority, campaign_id, calls), lateral (
    select * from (
      select message_id, account_id, campaign_id, task, due_at, expires_at, claimed from queue q
      where q.account_id = lane.account_id and q.agent_id = lane.agent_id and q.priority = lane.priority
        and q.campaign_id = lane.campaign_id and q.due_at <= now() and q.leased_until <= now()
      order by q.due_at limit lane.calls for update skip locked
    ) as first
    where task = 'revoke' or expires_at > now()
  ) as q
), first as (
  select * from unleased where not claimed and task = 'send' and campaign_id <> '00000000-0000-0000-0000-000000000000'
), counted as (
  insert into report_deltas (account_id, campaign_id, hour, claimed)
  select account_id, campaign_id, date_trunc('hour', now()::timestamptz(3), 'UTC'), count(*) from first group by 1, 2
), served as (
  update agent_assignments s set served_at = now()
  from (select distinct * from unnest((select $1::int[]), (select $2::text[]))) as lane (account_id, agent_id)
  where $8 and s.account_id = lane.account_id and s.agent_id = lane.agent_id
)
update queue q set lease = $6, leased_until = now() + $7 * interval '1 millisecond', attempts = q.attempts + 1, claimed = true
where q.message_id = any (array(select message_id from unleased))
returning q.message_id as "messageId", q.account_id as "accountId", q.agent_id as "agentId", q.task, q.attempts, q.priority,
  q.campaign_id as "campaignId", q.delivery_window as window, (extract(epoch from now()) * 1000)::float8 as "nowMs",
  round(extract(epoch from q.expires_at - now()) * 1000)::float8 as "expiresInMs";

-- Postpones entries whose delivery window is closed. (server/src/delivery/postpone.ts)
prepare "postpone-entries" as
with closed as materialized (
  select * from unnest($3::text[], $4::timestamptz[]) as c (delivery_window, opens_at)
), waiting as materialized (
  select q.message_id from unnest($5::int[], $6::text[], $7::smallint[], $8::uuid[]) as lane (account_id, agent_id, priority, campaign_id), lateral (
    select message_id, delivery_window, task from queue q
    where q.account_id = lane.account_id and q.agent_id = lane.agent_id and q.priority = lane.priority and q.campaign_id = lane.campaign_id
      and q.due_at <= now() and q.leased_until <= now()
    order by q.due_at limit 1000 for update skip locked
  ) as q
  where q.task = 'send' and q.delivery_window in (select delivery_window from closed)
), held as materialized (
  select q.message_id from unnest((select $1::uuid[]), (select $2::uuid[])) as r (message_id, lease), lateral (
    select message_id from queue q where q.message_id = r.message_id and q.lease = r.lease for update skip locked
  ) as q
), postponed as (
  update queue q set lease = null, leased_until = '-infinity', attempts = q.attempts - 1, claimed = q.attempts > 1,
    due_at = (select opens_at from closed c where c.delivery_window = q.delivery_window)
  where q.message_id = any (array(select message_id from held))
  returning q.account_id, q.campaign_id, q.attempts
), unclaimed as (
  select * from postponed where attempts = 0 and campaign_id <> '00000000-0000-0000-0000-000000000000'
), uncounted as (
  insert into report_deltas (account_id, campaign_id, hour, claimed)
  select account_id, campaign_id, date_trunc('hour', now()::timestamptz(3), 'UTC'), -count(*) from unclaimed group by 1, 2
)
update queue q set due_at = (select opens_at from closed c where c.delivery_window = q.delivery_window)
where q.message_id = any (array(select message_id from waiting));

-- Takes slots of the rates of a carrier and its agents. (server/src/delivery/rate.ts)
prepare "take-slots" as
with of_carrier as (
  update carrier_rates set next_slot_at = case when next_slot_at > clock_timestamp() + $7 * interval '1 second' then clock_timestamp()
    else greatest(next_slot_at, clock_timestamp()) end + $2 * interval '1 second' / $3
  where carrier = $1 and $3::float8 is not null
  returning null::text as agent_id, next_slot_at - $2 * interval '1 second' / $3 as slot_at
), of_agent as (
  update agents a set next_slot_at = case when a.next_slot_at > clock_timestamp() + $7 * interval '1 second' then clock_timestamp()
    else greatest(a.next_slot_at, clock_timestamp()) end + taken.slots * interval '1 second' / $4
  from (select * from unnest((select $5::text[]), (select $6::int[])) as t (agent_id, slots) order by agent_id) as taken
  where a.agent_id = taken.agent_id and $4::float8 is not null
  returning a.agent_id, a.next_slot_at - taken.slots * interval '1 second' / $4 as slot_at
)
select agent_id as "agentId", greatest(0, extract(epoch from slot_at - clock_timestamp()) * 1000)::float8 as "waitMs"
from (select * from of_carrier union all select * from of_agent) as slot;

-- Finds erased numbers. Runs only if a person was erased. (server/src/erasure/erased.ts)
prepare "find-erased" as
select hash, account_id as "accountId" from erased_people where hash = any ((select $1::bytea[])::bytea[]);

-- Reads the messages of claimed entries. (server/src/delivery/read-claimed.ts)
prepare "read-claimed" as
select m.id as "messageId", m.recipient, coalesce(m.content, c.message) as content, m.traffic, m.expires_at as "expiresAt",
  case when m.routing = 'capability' then
  case (
  select k.reachable from capabilities k join agents a on a.agent_id = k.agent_id and a.carrier = k.carrier
  where k.phone = m.recipient and k.agent_id = m.agent_id and k.checked_at > now() - interval '24 hours') when true then 'reachable' when false then 'unreachable' else 'unknown' end
  end as capability, o.reason as "stoppedBy", exists (select from erased_people) as "hasErased",
  case when q.held_back_attempts = q.attempts - 1
  then round(greatest(0, extract(epoch from now() - q.held_back_at)) * 1000)::float8 else 0 end as "heldBackForMs"
from messages_2026_07 m left join contents c on c.id = m.content_id
left join lateral (
  select case when blocked then 'BLOCKED' when opted_out and m.traffic = 'PROMOTION' then 'OPTED_OUT' end as reason
  from (
    select opted_out, blocked from opt_outs
    where account_id = m.account_id and agent_id in (m.agent_id, '') and phone = m.recipient
    order by changed_at desc, agent_id desc limit 1) as latest
) as o on true
left join queue q on o.reason is not null and q.message_id = m.id
where m.id = any ((select $1::uuid[])::uuid[]);

-- Reads what networks said about numbers. Runs only before a look-up. (server/src/delivery/capabilities.ts)
prepare "read-capabilities" as
select phone, (
  select k.reachable from capabilities k join agents a on a.agent_id = k.agent_id and a.carrier = k.carrier
  where k.phone = wanted.phone and k.agent_id = $1 and k.checked_at > now() - interval '24 hours') as reachable from unnest((select $2::text[])) as wanted (phone);

-- Reads the next numbers to look up. (server/src/delivery/capabilities.ts)
prepare "read-ahead" as
select m.recipient as phone, exists (select from erased_people) as "hasErased"
from queue own, lateral (
  select message_id, attempts from queue q
  where q.account_id = own.account_id and q.agent_id = own.agent_id and q.priority = own.priority and q.campaign_id = own.campaign_id
    and q.due_at <= now()
  order by q.due_at limit 5000
) as next join messages m on m.id = next.message_id
where own.message_id = $1 and next.attempts = 0 and case when m.routing = 'capability' then
  case (
  select k.reachable from capabilities k join agents a on a.agent_id = k.agent_id and a.carrier = k.carrier
  where k.phone = m.recipient and k.agent_id = m.agent_id and k.checked_at > now() - interval '24 hours') when true then 'reachable' when false then 'unreachable' else 'unknown' end
  end = 'unknown';

-- Stores what a network said about numbers. (server/src/delivery/capabilities.ts)
prepare "store-capabilities" as
insert into capabilities as c (phone, agent_id, carrier, reachable, checked_at)
select s.phone, $4, $6, s.reachable, now() - $7 * interval '1 millisecond'
from unnest((select $1::text[]), (select $2::bool[]), (select $3::bytea[])) as s (phone, reachable, hash)
where not exists (select from erased_people x where x.hash = s.hash and x.account_id in (0, $5))
order by s.phone
on conflict (phone, agent_id) do update set carrier = excluded.carrier, reachable = excluded.reachable, checked_at = excluded.checked_at
where c.checked_at < excluded.checked_at;

-- Records that messages were sent. (server/src/delivery/results.ts)
prepare "record-sent" as
with held as materialized (
  delete from queue q where q.message_id = any ((select $1::uuid[])::uuid[]) and (q.message_id, q.lease) in (select * from unnest((select $1::uuid[]), (select $2::uuid[]))) returning q.message_id
), sent as (
  update messages_2026_07 m set status = 'SENT', sent_at = greatest(now(), m.accepted_at)
  where m.id = any (array(select message_id from held)) and m.expires_at > clock_timestamp() and m.status in ('ACCEPTED', 'SENDING')
  returning m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test, m.sent_at
), sent_change as materialized (
  select 0 as place, 'message.sent' as kind, sent_at as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from sent m where sent_at is not null
), sent_change_counted as (
  insert into report_deltas (account_id, campaign_id, hour, sent)
  select account_id, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), date_trunc('hour', at, 'UTC'),
    count(*) filter (where kind = 'message.sent')
  from sent_change where not test group by 1, 2, 3
), sent_change_logged as (
  insert into log_pages (account_id, event_count, events)
  select account_id, count(*), json_agg(
      json_build_array(kind, at, id, client_reference_id, agent_id, recipient, campaign_id, test, more) order by n)
  from (
    select *, row_number() over (partition by account_id order by place, id) - 1 as n from sent_change where kind in ('message.sent')
  ) as numbered
  group by account_id, n / 100 order by account_id, n / 100
), sent_change_listed as (
  insert into message_events (message_id, account_id, kind, occurred_at, reason, campaign_id, recipient)
  select id, account_id, replace(replace(kind, 'message.', ''), '.', '-'), at, reason, campaign_id,
    case when campaign_id is not null then recipient end
  from sent_change where kind in ('message.sent') and (campaign_id is not null or kind like 'sms.%')
)
select message_id as "messageId" from held;

-- Fails messages permanently. (server/src/delivery/results.ts)
prepare "record-failed" as
with held as materialized (
  select r.message_id, r.reason, r.description, r.reason in ('OPTED_OUT', 'BLOCKED', 'ERASED') and q.attempts > 1 as awaits_revocation,
    true as was_claimed, r.has_no_rcs
  from unnest((select $1::uuid[]), (select $2::uuid[]), (select $3::text[]), (select $4::text[]), (select $5::bool[])) as r (message_id, lease, reason, description, has_no_rcs), lateral (
    select attempts from queue q where q.message_id = r.message_id and q.lease = r.lease for update
  ) as q
), failed as (
  update messages_2026_07 m set status = 'FAILED', failed_at = greatest(now(), m.accepted_at), failure_reason = f.reason,
    failure_description = f.description
  from held f
  where m.id = f.message_id and m.status in ('ACCEPTED', 'SENDING', 'SENT') and m.expires_at > clock_timestamp()
  returning m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test, m.traffic, m.sent_at, m.failed_at, f.reason, f.description, f.awaits_revocation, f.was_claimed
), dropped as (
  delete from queue where message_id = any (array(select message_id from held where not awaits_revocation))
), turned as (
  update queue set task = 'revoke', priority = 1, due_at = now(), attempts = 0, lease = null, leased_until = '-infinity',
    delivery_window = null where message_id = any (array(select id from failed where awaits_revocation))
), sms_settled as (
  update sms_fallbacks_2026_07 f set status = 'SCHEDULED', reason = 'RCS_FAILED', due_at = greatest(m.failed_at + f.delay_seconds * interval '1 second', f.not_before)
  from failed as m where f.message_id = m.id and f.status in ('WAITING')
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
), failed_change as materialized (
  select 0 as place, 'message.failed' as kind, failed_at as at, json_build_object('failure', json_build_object('reason', reason, 'description', description)) as more, reason as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from failed m where failed_at is not null
  union all
  select 1 as place, 'message.unsent' as kind, failed_at as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from failed m where failed_at is not null and sent_at is null
  union all
  select 2 as place, 'message.claimed' as kind, failed_at as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from failed m where failed_at is not null and campaign_id is not null and not was_claimed
), failed_change_counted as (
  insert into report_deltas (account_id, campaign_id, hour, failed, unsent, claimed)
  select account_id, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), date_trunc('hour', at, 'UTC'),
    count(*) filter (where kind = 'message.failed'), count(*) filter (where kind = 'message.unsent'), count(*) filter (where kind = 'message.claimed')
  from failed_change where not test group by 1, 2, 3
), failed_change_logged as (
  insert into log_pages (account_id, event_count, events)
  select account_id, count(*), json_agg(
      json_build_array(kind, at, id, client_reference_id, agent_id, recipient, campaign_id, test, more) order by n)
  from (
    select *, row_number() over (partition by account_id order by place, id) - 1 as n from failed_change where kind in ('message.failed')
  ) as numbered
  group by account_id, n / 100 order by account_id, n / 100
), failed_change_listed as (
  insert into message_events (message_id, account_id, kind, occurred_at, reason, campaign_id, recipient)
  select id, account_id, replace(replace(kind, 'message.', ''), '.', '-'), at, reason, campaign_id,
    case when campaign_id is not null then recipient end
  from failed_change where kind in ('message.failed') and (campaign_id is not null or kind like 'sms.%')
), learned as (
  update capabilities c set reachable = false, checked_at = l.at
  from (
    select c.phone, c.agent_id, s.failed_at as at
    from (select * from failed where id not in (select message_id from held where has_no_rcs is not true)) as s join capabilities c on c.phone = s.recipient and c.agent_id = s.agent_id
    where c.checked_at < s.failed_at and (c.reachable <> false or c.checked_at < s.failed_at - interval '12 hours')
    order by c.phone, c.agent_id for update of c
  ) as l
  where c.phone = l.phone and c.agent_id = l.agent_id
)
select message_id as "messageId" from held;

-- Fails messages to erased people. (server/src/delivery/results.ts)
prepare "record-erased" as
with held as materialized (
  select r.message_id, r.reason, r.description, r.reason in ('OPTED_OUT', 'BLOCKED', 'ERASED') and q.attempts > 1 as awaits_revocation,
    true as was_claimed, r.has_no_rcs
  from unnest((select $1::uuid[]), (select $2::uuid[]), (select $3::text[]), (select $4::text[]), (select $5::bool[])) as r (message_id, lease, reason, description, has_no_rcs), lateral (
    select attempts from queue q where q.message_id = r.message_id and q.lease = r.lease for update
  ) as q
), failed as (
  update messages_2026_07 m set status = 'FAILED', failed_at = greatest(now(), m.accepted_at), failure_reason = f.reason,
    failure_description = f.description
  from held f
  where m.id = f.message_id and m.status in ('ACCEPTED', 'SENDING', 'SENT') and m.expires_at > clock_timestamp()
  returning m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test, m.traffic, m.sent_at, m.failed_at, f.reason, f.description, f.awaits_revocation, f.was_claimed
), dropped as (
  delete from queue where message_id = any (array(select message_id from held where not awaits_revocation))
), turned as (
  update queue set task = 'revoke', priority = 1, due_at = now(), attempts = 0, lease = null, leased_until = '-infinity',
    delivery_window = null where message_id = any (array(select id from failed where awaits_revocation))
), sms_settled as (
  update sms_fallbacks_2026_07 f set status = 'SKIPPED', reason = 'ERASED'
  from failed as m where f.message_id = m.id and f.status in ('WAITING')
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
), failed_change as materialized (
  select 0 as place, 'message.failed' as kind, failed_at as at, json_build_object('failure', json_build_object('reason', reason, 'description', description)) as more, reason as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from failed m where failed_at is not null
  union all
  select 1 as place, 'message.unsent' as kind, failed_at as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from failed m where failed_at is not null and sent_at is null
  union all
  select 2 as place, 'message.claimed' as kind, failed_at as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from failed m where failed_at is not null and campaign_id is not null and not was_claimed
), failed_change_counted as (
  insert into report_deltas (account_id, campaign_id, hour, failed, unsent, claimed)
  select account_id, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), date_trunc('hour', at, 'UTC'),
    count(*) filter (where kind = 'message.failed'), count(*) filter (where kind = 'message.unsent'), count(*) filter (where kind = 'message.claimed')
  from failed_change where not test group by 1, 2, 3
), failed_change_logged as (
  insert into log_pages (account_id, event_count, events)
  select account_id, count(*), json_agg(
      json_build_array(kind, at, id, client_reference_id, agent_id, recipient, campaign_id, test, more) order by n)
  from (
    select *, row_number() over (partition by account_id order by place, id) - 1 as n from failed_change where kind in ('message.failed')
  ) as numbered
  group by account_id, n / 100 order by account_id, n / 100
), failed_change_listed as (
  insert into message_events (message_id, account_id, kind, occurred_at, reason, campaign_id, recipient)
  select id, account_id, replace(replace(kind, 'message.', ''), '.', '-'), at, reason, campaign_id,
    case when campaign_id is not null then recipient end
  from failed_change where kind in ('message.failed') and (campaign_id is not null or kind like 'sms.%')
), learned as (
  update capabilities c set reachable = false, checked_at = l.at
  from (
    select c.phone, c.agent_id, s.failed_at as at
    from (select * from failed where id not in (select message_id from held where has_no_rcs is not true)) as s join capabilities c on c.phone = s.recipient and c.agent_id = s.agent_id
    where c.checked_at < s.failed_at and (c.reachable <> false or c.checked_at < s.failed_at - interval '12 hours')
    order by c.phone, c.agent_id for update of c
  ) as l
  where c.phone = l.phone and c.agent_id = l.agent_id
)
select message_id as "messageId" from held;

-- Releases and postpones entries. (server/src/delivery/results.ts)
prepare "record-released" as
with held as (
  update queue q set
    lease = null,
    leased_until = '-infinity',
    due_at = now() + r.after_ms * interval '1 millisecond',
    attempts = q.attempts - case when r.outcome in ('retry', 'unknown') then 0 else 1 end,
    held_back_at = case when r.outcome <> 'held-back' then q.held_back_at
    when q.held_back_attempts = q.attempts - 1 then least(q.held_back_at, now()) else now() end,
    held_back_attempts = case r.outcome when 'held-back' then q.attempts - 1 else q.held_back_attempts end
  from unnest((select $1::uuid[]), (select $2::uuid[]), (select $3::text[]), (select $4::text[]), (select $5::float8[])) as r (message_id, lease, outcome, detail, after_ms)
  where q.message_id = r.message_id and q.lease = r.lease
  returning q.message_id, q.account_id, q.attempts, r.outcome, r.detail
), noted as (
  insert into message_events_2026_07 (message_id, account_id, kind, occurred_at, detail)
  select message_id, account_id, case outcome when 'held-back' then 'held-back' else 'attempt-failed' end, now(), detail
  from held where outcome = 'held-back' or outcome in ('retry', 'unknown') and attempts <= 10
  on conflict do nothing
)
select message_id as "messageId" from held;

-- Ends revocations. (server/src/delivery/results.ts)
prepare "record-revoked" as
with held as materialized (
  delete from queue q where q.message_id = any ((select $1::uuid[])::uuid[]) and (q.message_id, q.lease) in (select * from unnest((select $1::uuid[]), (select $2::uuid[]))) returning q.message_id, q.account_id
), result as materialized (
  select * from unnest((select $1::uuid[]), (select $2::uuid[]), (select $3::text[]), (select $4::text[])) as r (message_id, lease, outcome, detail) join held using (message_id)
), asked as (
  select message_id from result where outcome = 'revoke-asked'
), sms_awaiting as materialized (
  select s.message_id from asked as settled, lateral (
    select message_id from sms_queue s
    where s.message_id = settled.message_id and s.copy = 0 and s.awaits_revocation and s.lease is null
    for update skip locked
  ) as s
), sms_released as (
  update sms_queue s set due_at = least(s.due_at, greatest(s.planned_at, now() + interval '5 seconds'))
  where s.copy = 0 and s.message_id = any (array(select message_id from sms_awaiting))
), noted as (
  insert into message_events_2026_07 (message_id, account_id, kind, occurred_at, detail)
  select message_id, account_id, outcome, now(), detail from result r
  -- If a message has expired at the network, the network says so first, and then refuses the request as too late.
  left join lateral (
    select kind from message_events_2026_07 e where e.message_id = r.message_id and e.kind = 'revoked' limit 1
  ) as revoked on true
  where outcome <> 'revoke-refused' or revoked.kind is null
  on conflict do nothing
)
select message_id as "messageId" from held;

-- Finds waiting messages whose agent was deactivated. (server/src/delivery/fail.ts)
prepare "find-inactive" as
with recursive lane as (
  (select account_id, agent_id, priority, campaign_id, due_at from queue order by account_id, agent_id, priority, campaign_id, due_at limit 1)
  union all
  select next.*
  from lane, lateral (
    select account_id, agent_id, priority, campaign_id, due_at from queue q
    where (q.account_id, q.agent_id, q.priority, q.campaign_id) > (lane.account_id, lane.agent_id, lane.priority, lane.campaign_id)
    order by account_id, agent_id, priority, campaign_id, due_at limit 1
  ) as next
)
select q.message_id as "messageId"
from lane l join agent_assignments s on s.account_id = l.account_id and s.agent_id = l.agent_id, lateral (
  select message_id from queue q
  where q.account_id = l.account_id and q.agent_id = l.agent_id and q.priority = l.priority and q.campaign_id = l.campaign_id and q.leased_until <= now() and q.expires_at > now()
  order by due_at limit $1
) as q
where not s.active and l.priority <> 1
limit $1;

-- Fails waiting messages whose agent was deactivated. (server/src/delivery/fail.ts)
prepare "fail-waiting AGENT_INACTIVE" as
with failing as materialized (
  select q.message_id, 'AGENT_INACTIVE' as reason, $2::text as description, q.attempts > 0 as awaits_revocation, q.claimed as was_claimed
  from unnest($1::uuid[]) as ids (message_id), lateral (
    select * from queue q where q.message_id = ids.message_id and q.task = 'send' and q.leased_until <= now() and q.expires_at > now() and true for update skip locked
  ) as q
  join agent_assignments s on s.account_id = q.account_id and s.agent_id = q.agent_id and not s.active
), failed as (
  update messages_2026_07 m set status = 'FAILED', failed_at = greatest(now(), m.accepted_at), failure_reason = f.reason,
    failure_description = f.description
  from failing f
  where m.id = f.message_id and m.status in ('ACCEPTED', 'SENDING', 'SENT') and m.expires_at > clock_timestamp()
  returning m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test, m.traffic, m.sent_at, m.failed_at, f.reason, f.description, f.awaits_revocation, f.was_claimed
), dropped as (
  delete from queue where message_id = any (array(select id from failed where not awaits_revocation))
), turned as (
  update queue set task = 'revoke', priority = 1, due_at = now(), attempts = 0, lease = null, leased_until = '-infinity',
    delivery_window = null where message_id = any (array(select id from failed where awaits_revocation))
), sms_settled as (
  update sms_fallbacks_2026_07 f set status = 'SCHEDULED', reason = 'RCS_FAILED', due_at = greatest(m.failed_at + f.delay_seconds * interval '1 second', f.not_before)
  from failed as m where f.message_id = m.id and f.status in ('WAITING')
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
), failed_change as materialized (
  select 0 as place, 'message.failed' as kind, failed_at as at, json_build_object('failure', json_build_object('reason', reason, 'description', description)) as more, reason as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from failed m where failed_at is not null
  union all
  select 1 as place, 'message.unsent' as kind, failed_at as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from failed m where failed_at is not null and sent_at is null
  union all
  select 2 as place, 'message.claimed' as kind, failed_at as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from failed m where failed_at is not null and campaign_id is not null and not was_claimed
), failed_change_counted as (
  insert into report_deltas (account_id, campaign_id, hour, failed, unsent, claimed)
  select account_id, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), date_trunc('hour', at, 'UTC'),
    count(*) filter (where kind = 'message.failed'), count(*) filter (where kind = 'message.unsent'), count(*) filter (where kind = 'message.claimed')
  from failed_change where not test group by 1, 2, 3
), failed_change_logged as (
  insert into log_pages (account_id, event_count, events)
  select account_id, count(*), json_agg(
      json_build_array(kind, at, id, client_reference_id, agent_id, recipient, campaign_id, test, more) order by n)
  from (
    select *, row_number() over (partition by account_id order by place, id) - 1 as n from failed_change where kind in ('message.failed')
  ) as numbered
  group by account_id, n / 100 order by account_id, n / 100
), failed_change_listed as (
  insert into message_events (message_id, account_id, kind, occurred_at, reason, campaign_id, recipient)
  select id, account_id, replace(replace(kind, 'message.', ''), '.', '-'), at, reason, campaign_id,
    case when campaign_id is not null then recipient end
  from failed_change where kind in ('message.failed') and (campaign_id is not null or kind like 'sms.%')
)
select id from failed;

-- Fails a message that its caller cancels. (server/src/delivery/cancel.ts)
prepare "cancel-message" as
with failing as materialized (
  select q.message_id, 'CANCELLED' as reason, $2::text as description, q.attempts > 0 as awaits_revocation, q.claimed as was_claimed
  from unnest($1::uuid[]) as ids (message_id), lateral (
    select * from queue q where q.message_id = ids.message_id and q.task = 'send' and q.leased_until <= now() and q.expires_at > now() and true for update
  ) as q
), failed as (
  update messages_2026_07 m set status = 'FAILED', failed_at = greatest(now(), m.accepted_at), failure_reason = f.reason,
    failure_description = f.description
  from failing f
  where m.id = f.message_id and m.status in ('ACCEPTED', 'SENDING', 'SENT') and m.expires_at > clock_timestamp()
  returning m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test, m.traffic, m.sent_at, m.failed_at, f.reason, f.description, f.awaits_revocation, f.was_claimed
), dropped as (
  delete from queue where message_id = any (array(select id from failed where not awaits_revocation))
), turned as (
  update queue set task = 'revoke', priority = 1, due_at = now(), attempts = 0, lease = null, leased_until = '-infinity',
    delivery_window = null where message_id = any (array(select id from failed where awaits_revocation))
), sms_settled as (
  update sms_fallbacks_2026_07 f set status = 'SKIPPED', reason = 'CANCELLED'
  from failed as m where f.message_id = m.id and f.status in ('WAITING')
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
), failed_change as materialized (
  select 0 as place, 'message.failed' as kind, failed_at as at, json_build_object('failure', json_build_object('reason', reason, 'description', description)) as more, reason as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from failed m where failed_at is not null
  union all
  select 1 as place, 'message.unsent' as kind, failed_at as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from failed m where failed_at is not null and sent_at is null
  union all
  select 2 as place, 'message.claimed' as kind, failed_at as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from failed m where failed_at is not null and campaign_id is not null and not was_claimed
), failed_change_counted as (
  insert into report_deltas (account_id, campaign_id, hour, failed, unsent, claimed)
  select account_id, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), date_trunc('hour', at, 'UTC'),
    count(*) filter (where kind = 'message.failed'), count(*) filter (where kind = 'message.unsent'), count(*) filter (where kind = 'message.claimed')
  from failed_change where not test group by 1, 2, 3
), failed_change_logged as (
  insert into log_pages (account_id, event_count, events)
  select account_id, count(*), json_agg(
      json_build_array(kind, at, id, client_reference_id, agent_id, recipient, campaign_id, test, more) order by n)
  from (
    select *, row_number() over (partition by account_id order by place, id) - 1 as n from failed_change where kind in ('message.failed')
  ) as numbered
  group by account_id, n / 100 order by account_id, n / 100
), failed_change_listed as (
  insert into message_events (message_id, account_id, kind, occurred_at, reason, campaign_id, recipient)
  select id, account_id, replace(replace(kind, 'message.', ''), '.', '-'), at, reason, campaign_id,
    case when campaign_id is not null then recipient end
  from failed_change where kind in ('message.failed') and (campaign_id is not null or kind like 'sms.%')
)
select id from failed;
