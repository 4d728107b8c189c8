-- The hot statements of campaigns, as PostgreSQL gets them. "npm run generate" writes this page from server/scripts/hot-statements.ts.
-- Tables of a month have the name that they have in July 2026. To try one in psql: paste it, then run
--   set plan_cache_mode = force_generic_plan; explain execute "name" (null, …);

-- Finds out whether a campaign needs fan-out. (server/src/delivery/campaigns/statements.ts)
prepare "find-campaign" as
select from campaigns where status = 'RUNNING' and fan_out_completed_at is null and id <> all ($1::uuid[]) and account_id <> all (array(select id from accounts where suspended_at is not null)) limit 1;

-- Locks the next campaign to fan out. (server/src/delivery/campaigns/statements.ts)
prepare "lock-campaign" as
select id, account_id as "accountId", group_numbers as groups, group_generations as generations, fan_out_cursor as "cursor",
  retry_of is not null as "isRetry", exists (select from erased_people) as "hasErased", variables is not null as "isPersonal",
  delivery_window as window, (extract(epoch from now()) * 1000)::float8 as "nowMs"
from campaigns where status = 'RUNNING' and fan_out_completed_at is null and id <> all ($1::uuid[]) and account_id <> all (array(select id from accounts where suspended_at is not null))
order by recipients, id limit 1 for update skip locked;

-- Creates the next messages of a campaign for two groups. (server/src/delivery/campaigns/statements.ts)
-- Its transaction runs before it:
--   set local enable_sort = off; set local enable_hashagg = off; set local enable_bitmapscan = off;
--   set local max_parallel_workers_per_gather = 0
prepare "create-campaign-messages 2" as
with campaign as materialized (
  select * from campaigns where id = $1
), member as materialized (
  select distinct phone from (
    (select phone from group_members where account_id = $3 and group_number = ($4::int[])[1] and phone > $6 and generation <= ($5::int[])[1] order by phone)
    union all (select phone from removed_members where account_id = $3 and group_number = ($4::int[])[1] and phone > $6 and generation <= ($5::int[])[1] and removed_generation > ($5::int[])[1] order by phone)
    union all (select phone from group_members where account_id = $3 and group_number = ($4::int[])[2] and phone > $6 and generation <= ($5::int[])[2] order by phone)
    union all (select phone from removed_members where account_id = $3 and group_number = ($4::int[])[2] and phone > $6 and generation <= ($5::int[])[2] and removed_generation > ($5::int[])[2] order by phone)
  ) as people
  order by phone limit $2
), progress as materialized (
  select max(phone) as position, count(*) < $2 as is_last, count(*)::int as created from member
), created as materialized (
  -- A message is not accepted before its campaign started: the start may have been committed after this transaction began.
  select uuid_v7() as id, c.account_id, c.agent_id, m.phone as recipient, c.basic, false as test, null as client_reference_id,
    c.content_id as content_id, null::json as content, greatest(now(), c.started_at) as accepted_at,
    null::timestamptz as scheduled_at, null::text as delivery_window, null::timestamptz as opens_at, c.expires_at as own_expiry, 'PROMOTION' as traffic, null::uuid as triggered_by, c.id as campaign_id, c.routing, c.fallback as fallback,
    false as is_unfit
  from member m, campaign c
), written as (
  insert into messages as m (id, account_id, agent_id, recipient, basic, test, client_reference_id, content_id, content, accepted_at,
      scheduled_at, delivery_window, expires_at, traffic, triggered_by, campaign_id, routing)
  select id, account_id, agent_id, recipient, basic, test, client_reference_id, content_id, content, accepted_at,
    scheduled_at, delivery_window, coalesce(own_expiry, now() + interval '48 hours'), traffic, triggered_by, campaign_id, routing
  from created
  returning m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test, m.accepted_at
), queued as (
  insert into queue (message_id, account_id, agent_id, task, priority, campaign_id, due_at, expires_at, delivery_window, lease,
      leased_until, attempts, claimed)
  select id, account_id, agent_id, 'send', 2, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), greatest(now(), scheduled_at, opens_at),
    coalesce(own_expiry, now() + interval '48 hours'), delivery_window, null::uuid,
    case when null::uuid is null then '-infinity' else now() + 0 * interval '1 millisecond' end, (null::uuid is not null)::int,
    null::uuid is not null
  from created
), expiring as (
  insert into expiries (message_id, expires_at) select id, own_expiry from created where own_expiry is not null
), falling_back as (
  insert into sms_fallbacks (message_id, account_id, plan, segments, delay_seconds, not_before,
      after_expiry, after_expiry_delay_seconds, after_expiry_not_before)
  select id, account_id, fallback -> 'plan', (fallback ->> 'segments')::smallint, (fallback ->> 'delaySeconds')::int,
    (fallback ->> 'notBefore')::timestamptz, (fallback ->> 'afterExpiry')::bool, (fallback ->> 'afterExpiryDelaySeconds')::int,
    (fallback ->> 'afterExpiryNotBefore')::timestamptz
  from created where fallback is not null
), written_change as materialized (
  select 0 as place, 'message.accepted' as kind, accepted_at as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from written m where accepted_at is not null
), written_change_counted as (
  insert into report_deltas (account_id, campaign_id, hour, accepted)
  select account_id, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), date_trunc('hour', at, 'UTC'),
    count(*) filter (where kind = 'message.accepted')
  from written_change where not test group by 1, 2, 3
), used as (
  insert into account_usage_deltas (account_id, messages, message_bytes, content_bytes)
  select account_id, 0, sum(created * (2048 + coalesce(octet_length(null), 0) + coalesce(octet_length(null), 0) + coalesce(octet_length((fallback -> 'plan')::text), 0))), -sum(case when is_last then campaign.reserved_bytes else least(campaign.reserved_bytes, created * (2048 + coalesce(octet_length(null), 0) + coalesce(octet_length(null), 0) + coalesce(octet_length((fallback -> 'plan')::text), 0))) end) from campaign, progress where created > 0 or reserved_bytes > 0 group by 1
), advanced as (
  update campaigns c set
    fan_out_cursor = coalesce(r.position, c.fan_out_cursor),
    recipients = c.recipients + r.created,
    fan_out_completed_at = case when r.is_last then now() end,
    reserved_bytes = c.reserved_bytes - case when is_last then c.reserved_bytes else least(c.reserved_bytes, created * (2048 + coalesce(octet_length(null), 0) + coalesce(octet_length(null), 0) + coalesce(octet_length((fallback -> 'plan')::text), 0))) end
  from progress r where c.id = $1
)
select created from progress;

-- Creates the next messages of a campaign that retries another one. (server/src/delivery/campaigns/statements.ts)
-- Its transaction runs before it:
--   set local enable_sort = off; set local enable_hashagg = off; set local enable_bitmapscan = off;
--   set local max_parallel_workers_per_gather = 0
prepare "create-retried-messages" as
with campaign as materialized (
  select * from campaigns where id = $1
), looked_at as materialized (
  select m.id, m.recipient, m.status, m.failure_reason, m.delivery_window
  from campaign c, lateral (
    select id, recipient, status, failure_reason, delivery_window from messages m
    where m.campaign_id = c.retry_of and m.id > (case c.fan_out_cursor when '' then '00000000-0000-0000-0000-000000000000' else c.fan_out_cursor end)::uuid
    order by m.id limit 10 * $2::int
  ) as m
), unreached as materialized (
  select l.id, l.recipient as phone, l.delivery_window, l.failure_reason as reason, l.failure_reason = 'CAMPAIGN_CANCELLED' as is_withdrawn
  from looked_at l left join lateral (
    select kind from message_events e where e.message_id = l.id and e.kind in ('delivered-late', 'read-late') limit 1
  ) as arrived on true
  where l.status = 'FAILED' and arrived.kind is null and not l.recipient like 'erased-%'
), member as materialized (
  select u.id, u.phone, u.delivery_window, u.reason from unreached u, campaign c where c.retry_includes_cancelled or not u.is_withdrawn
), progress as materialized (
  select max(id::text) as position, count(*) < 10 * $2::int as is_last, (select count(*)::int from member) as created from looked_at
), created as materialized (
  -- A message is not accepted before its campaign started: the start may have been committed after this transaction began.
  select uuid_v7() as id, c.account_id, c.agent_id, m.phone as recipient, c.basic, false as test, null as client_reference_id,
    c.content_id as content_id, null::json as content, greatest(now(), c.started_at) as accepted_at,
    null::timestamptz as scheduled_at, null::text as delivery_window, null::timestamptz as opens_at, c.expires_at as own_expiry, 'PROMOTION' as traffic, null::uuid as triggered_by, c.id as campaign_id, c.routing, c.fallback as fallback,
    false as is_unfit
  from member m, campaign c
), written as (
  insert into messages as m (id, account_id, agent_id, recipient, basic, test, client_reference_id, content_id, content, accepted_at,
      scheduled_at, delivery_window, expires_at, traffic, triggered_by, campaign_id, routing)
  select id, account_id, agent_id, recipient, basic, test, client_reference_id, content_id, content, accepted_at,
    scheduled_at, delivery_window, coalesce(own_expiry, now() + interval '48 hours'), traffic, triggered_by, campaign_id, routing
  from created
  returning m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test, m.accepted_at
), queued as (
  insert into queue (message_id, account_id, agent_id, task, priority, campaign_id, due_at, expires_at, delivery_window, lease,
      leased_until, attempts, claimed)
  select id, account_id, agent_id, 'send', 2, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), greatest(now(), scheduled_at, opens_at),
    coalesce(own_expiry, now() + interval '48 hours'), delivery_window, null::uuid,
    case when null::uuid is null then '-infinity' else now() + 0 * interval '1 millisecond' end, (null::uuid is not null)::int,
    null::uuid is not null
  from created
), expiring as (
  insert into expiries (message_id, expires_at) select id, own_expiry from created where own_expiry is not null
), falling_back as (
  insert into sms_fallbacks (message_id, account_id, plan, segments, delay_seconds, not_before,
      after_expiry, after_expiry_delay_seconds, after_expiry_not_before)
  select id, account_id, fallback -> 'plan', (fallback ->> 'segments')::smallint, (fallback ->> 'delaySeconds')::int,
    (fallback ->> 'notBefore')::timestamptz, (fallback ->> 'afterExpiry')::bool, (fallback ->> 'afterExpiryDelaySeconds')::int,
    (fallback ->> 'afterExpiryNotBefore')::timestamptz
  from created where fallback is not null
), written_change as materialized (
  select 0 as place, 'message.accepted' as kind, accepted_at as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from written m where accepted_at is not null
), written_change_counted as (
  insert into report_deltas (account_id, campaign_id, hour, accepted)
  select account_id, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), date_trunc('hour', at, 'UTC'),
    count(*) filter (where kind = 'message.accepted')
  from written_change where not test group by 1, 2, 3
), used as (
  insert into account_usage_deltas (account_id, messages, message_bytes, content_bytes)
  select account_id, 0, sum(created * (2048 + coalesce(octet_length(null), 0) + coalesce(octet_length(null), 0) + coalesce(octet_length((fallback -> 'plan')::text), 0))), -sum(case when is_last then campaign.reserved_bytes else least(campaign.reserved_bytes, created * (2048 + coalesce(octet_length(null), 0) + coalesce(octet_length(null), 0) + coalesce(octet_length((fallback -> 'plan')::text), 0))) end) from campaign, progress where created > 0 or reserved_bytes > 0 group by 1
), advanced as (
  update campaigns c set
    fan_out_cursor = coalesce(r.position, c.fan_out_cursor),
    recipients = c.recipients + r.created,
    fan_out_completed_at = case when r.is_last then now() end,
    reserved_bytes = c.reserved_bytes - case when is_last then c.reserved_bytes else least(c.reserved_bytes, created * (2048 + coalesce(octet_length(null), 0) + coalesce(octet_length(null), 0) + coalesce(octet_length((fallback -> 'plan')::text), 0))) end
  from progress r where c.id = $1
)
select created from progress;

-- Creates the messages of listed members, with contents of their own. (server/src/delivery/campaigns/statements.ts)
-- Its transaction runs before it:
--   set local enable_sort = off; set local enable_hashagg = off; set local enable_bitmapscan = off;
--   set local max_parallel_workers_per_gather = 0
prepare "create-listed-messages" as
with campaign as materialized (
  select * from campaigns where id = $1
), member as materialized (
  select * from unnest($2::text[], $5::json[], $6::json[], $7::bool[], $8::text[], $9::timestamptz[])
    as m (phone, content, fallback, is_unfit, delivery_window, opens_at)
), progress as materialized (
  select $3::text as position, $4::boolean as is_last, cardinality($2::text[]) as created
), created as materialized (
  -- A message is not accepted before its campaign started: the start may have been committed after this transaction began.
  select uuid_v7() as id, c.account_id, c.agent_id, m.phone as recipient, c.basic, false as test, null as client_reference_id,
    case when m.content is null then c.content_id end as content_id, m.content as content, greatest(now(), c.started_at) as accepted_at,
    null::timestamptz as scheduled_at, m.delivery_window, m.opens_at, c.expires_at as own_expiry, 'PROMOTION' as traffic, null::uuid as triggered_by, c.id as campaign_id, c.routing, case when c.variables is null then c.fallback else m.fallback end as fallback,
    m.is_unfit as is_unfit
  from member m, campaign c
), written as (
  insert into messages as m (id, account_id, agent_id, recipient, basic, test, client_reference_id, content_id, content, accepted_at,
      scheduled_at, delivery_window, expires_at, traffic, triggered_by, campaign_id, routing)
  select id, account_id, agent_id, recipient, basic, test, client_reference_id, content_id, content, accepted_at,
    scheduled_at, delivery_window, coalesce(own_expiry, now() + interval '48 hours'), traffic, triggered_by, campaign_id, routing
  from created
  returning m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test, m.accepted_at
), queued as (
  insert into queue (message_id, account_id, agent_id, task, priority, campaign_id, due_at, expires_at, delivery_window, lease,
      leased_until, attempts, claimed)
  select id, account_id, agent_id, 'send', 2, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), greatest(now(), scheduled_at, opens_at),
    coalesce(own_expiry, now() + interval '48 hours'), delivery_window, null::uuid,
    case when null::uuid is null then '-infinity' else now() + 0 * interval '1 millisecond' end, (null::uuid is not null)::int,
    null::uuid is not null
  from created
), expiring as (
  insert into expiries (message_id, expires_at) select id, own_expiry from created where own_expiry is not null
), falling_back as (
  insert into sms_fallbacks (message_id, account_id, plan, segments, delay_seconds, not_before,
      after_expiry, after_expiry_delay_seconds, after_expiry_not_before)
  select id, account_id, fallback -> 'plan', (fallback ->> 'segments')::smallint, (fallback ->> 'delaySeconds')::int,
    (fallback ->> 'notBefore')::timestamptz, (fallback ->> 'afterExpiry')::bool, (fallback ->> 'afterExpiryDelaySeconds')::int,
    (fallback ->> 'afterExpiryNotBefore')::timestamptz
  from created where fallback is not null
), written_change as materialized (
  select 0 as place, 'message.accepted' as kind, accepted_at as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from written m where accepted_at is not null
), written_change_counted as (
  insert into report_deltas (account_id, campaign_id, hour, accepted)
  select account_id, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), date_trunc('hour', at, 'UTC'),
    count(*) filter (where kind = 'message.accepted')
  from written_change where not test group by 1, 2, 3
), used as (
  insert into account_usage_deltas (account_id, messages, message_bytes, content_bytes)
  select account_id, 0, sum((select coalesce(sum(2048 + coalesce(octet_length(content::text), 0) + coalesce(octet_length(null), 0) + coalesce(octet_length((fallback -> 'plan')::text), 0)), 0) from created)), -sum(case when is_last then campaign.reserved_bytes else least(campaign.reserved_bytes, (select coalesce(sum(2048 + coalesce(octet_length(content::text), 0) + coalesce(octet_length(null), 0) + coalesce(octet_length((fallback -> 'plan')::text), 0)), 0) from created)) end) from campaign, progress where created > 0 or reserved_bytes > 0 group by 1
), advanced as (
  update campaigns c set
    fan_out_cursor = coalesce(r.position, c.fan_out_cursor),
    recipients = c.recipients + r.created,
    fan_out_completed_at = case when r.is_last then now() end,
    reserved_bytes = c.reserved_bytes - case when is_last then c.reserved_bytes else least(c.reserved_bytes, (select coalesce(sum(2048 + coalesce(octet_length(content::text), 0) + coalesce(octet_length(null), 0) + coalesce(octet_length((fallback -> 'plan')::text), 0)), 0) from created)) end
  from progress r where c.id = $1
)
select created, (select json_object_agg(recipient, id) from created where is_unfit) as unfit from progress;

-- Fails new messages whose recipients have no fitting values. (server/src/delivery/fail.ts)
prepare "fail-unfit" as
with failing as materialized (
  select q.message_id, u.reason, u.description, false as awaits_revocation, false as was_claimed
  from unnest((select $1::uuid[]), (select $2::text[]), (select $3::text[])) as u (message_id, reason, description), lateral (
    select message_id from queue q where q.message_id = u.message_id for update
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

-- Reads the next members of two groups, with two attributes. (server/src/delivery/campaigns/statements.ts)
-- Its transaction runs before it:
--   set local enable_sort = off; set local enable_hashagg = off; set local enable_bitmapscan = off;
--   set local max_parallel_workers_per_gather = 0
prepare "read-members 2 2" as
-- Gives the statement the same parameters as createFromGroups.
with campaign as (select $1::uuid), next as (
  select distinct on (phone) phone, attributes, null as "timeZones" from (
    (select phone, attributes, 0 as place from group_members where account_id = $3 and group_number = ($4::int[])[1] and phone > $6 and generation <= ($5::int[])[1] order by phone)
    union all (select phone, attributes, 0 as place from removed_members where account_id = $3 and group_number = ($4::int[])[1] and phone > $6 and generation <= ($5::int[])[1] and removed_generation > ($5::int[])[1] order by phone)
    union all (select phone, attributes, 1 as place from group_members where account_id = $3 and group_number = ($4::int[])[2] and phone > $6 and generation <= ($5::int[])[2] order by phone)
    union all (select phone, attributes, 1 as place from removed_members where account_id = $3 and group_number = ($4::int[])[2] and phone > $6 and generation <= ($5::int[])[2] and removed_generation > ($5::int[])[2] order by phone)
  ) as people
  order by phone, place limit $2
)
select phone, "timeZones", json_build_array(left(attributes ->> ($7::text[])[1], 1001), left(attributes ->> ($7::text[])[2], 1001)) as values from next;

-- Reads the next members of two groups, with two attributes and their time zones. (server/src/delivery/campaigns/statements.ts)
-- Its transaction runs before it:
--   set local enable_sort = off; set local enable_hashagg = off; set local enable_bitmapscan = off;
--   set local max_parallel_workers_per_gather = 0
prepare "read-members 2 2 zoned" as
-- Gives the statement the same parameters as createFromGroups.
with campaign as (select $1::uuid), next as (
  select phone, (array_agg(attributes order by place))[1] as attributes, string_agg(distinct time_zone, ',' order by time_zone) as "timeZones" from (
    (select phone, attributes, time_zone, 0 as place from group_members where account_id = $3 and group_number = ($4::int[])[1] and phone > $6 and generation <= ($5::int[])[1] order by phone)
    union all (select phone, attributes, time_zone, 0 as place from removed_members where account_id = $3 and group_number = ($4::int[])[1] and phone > $6 and generation <= ($5::int[])[1] and removed_generation > ($5::int[])[1] order by phone)
    union all (select phone, attributes, time_zone, 1 as place from group_members where account_id = $3 and group_number = ($4::int[])[2] and phone > $6 and generation <= ($5::int[])[2] order by phone)
    union all (select phone, attributes, time_zone, 1 as place from removed_members where account_id = $3 and group_number = ($4::int[])[2] and phone > $6 and generation <= ($5::int[])[2] and removed_generation > ($5::int[])[2] order by phone)
  ) as people
  group by phone order by phone limit $2
)
select phone, "timeZones", json_build_array(left(attributes ->> ($7::text[])[1], 1001), left(attributes ->> ($7::text[])[2], 1001)) as values from next;

-- Reads the next recipients of a retry, with what their messages had. (server/src/delivery/campaigns/statements.ts)
-- Its transaction runs before it:
--   set local enable_sort = off; set local enable_hashagg = off; set local enable_bitmapscan = off;
--   set local max_parallel_workers_per_gather = 0
prepare "read-retried-members 2" as
with recursive campaign as materialized (
  select * from campaigns where id = $1
), chain as (
  select retry_of, group_numbers from campaign
  union all
  select c.retry_of, c.group_numbers from chain join campaigns c on c.id = chain.retry_of
), looked_at as materialized (
  select m.id, m.recipient, m.status, m.failure_reason, m.delivery_window
  from campaign c, lateral (
    select id, recipient, status, failure_reason, delivery_window from messages m
    where m.campaign_id = c.retry_of and m.id > (case c.fan_out_cursor when '' then '00000000-0000-0000-0000-000000000000' else c.fan_out_cursor end)::uuid
    order by m.id limit 10 * $2::int
  ) as m
), unreached as materialized (
  select l.id, l.recipient as phone, l.delivery_window, l.failure_reason as reason, l.failure_reason = 'CAMPAIGN_CANCELLED' as is_withdrawn
  from looked_at l left join lateral (
    select kind from message_events e where e.message_id = l.id and e.kind in ('delivered-late', 'read-late') limit 1
  ) as arrived on true
  where l.status = 'FAILED' and arrived.kind is null and not l.recipient like 'erased-%'
), member as materialized (
  select u.id, u.phone, u.delivery_window, u.reason from unreached u, campaign c where c.retry_includes_cancelled or not u.is_withdrawn
), progress as materialized (
  select max(id::text) as position, count(*) < 10 * $2::int as is_last, (select count(*)::int from member) as created from looked_at
)
select p.position, p.is_last as "isLast", r.* from progress p left join (
  select m.id, m.phone, m.reason in ('MISSING_VARIABLE', 'INVALID_CONTENT') as "wasUnfit", m.delivery_window as window,
    s.content::text as content, f.plan, f.segments, now.values
  from member m, lateral (
    select account_id, content from messages where id = m.id limit 1
  ) as s left join lateral (
    select plan, segments from sms_fallbacks where message_id = m.id limit 1
  ) as f on true left join lateral (
    select json_build_array(left(attributes ->> ($3::text[])[1], 1001), left(attributes ->> ($3::text[])[2], 1001)) as values
    from chain, unnest(chain.group_numbers) with ordinality as one (number, place), group_members g
    where g.account_id = s.account_id and g.group_number = one.number and g.phone = m.phone
    order by place limit 1
  ) as now on true
  order by m.id
) as r on true;

-- Reads the content, the SMS and the values of a campaign with variables. (server/src/delivery/campaigns/statements.ts)
prepare "read-personal-campaign" as
select p.basic, c.message as content, p.fallback, p.variables, octet_length(c.message::text) + coalesce(octet_length(p.fallback::text), 0) as bytes
from campaigns p join contents c on c.id = p.content_id where p.id = $1;

-- Starts campaigns whose start time has passed. (server/src/delivery/campaigns/lifecycle.ts)
prepare "start-campaigns" as
with started as (
  update campaigns c set
    status = 'RUNNING',
    started_at = greatest(now(), c.scheduled_at),
  -- Records the groups' generations now: members who are added later are left out, and members who are removed later still get their message.
  -- A group that no longer exists has no members.
    group_generations = array(
    select coalesce(g.generation, -1) from unnest(c.group_numbers) with ordinality as n (number, place)
    left join groups g on g.account_id = c.account_id and g.number = n.number order by place)
  where c.id = any (array(
      select id from campaigns where status = 'SCHEDULED' and scheduled_at <= now() and account_id <> all (array(select id from accounts where suspended_at is not null))
      order by scheduled_at limit $1 for update skip locked
  ))
  returning c.*
), started_logged as (
  insert into log_pages (account_id, event_count, events)
  select account_id, 1, json_build_array(json_build_array('campaign.started', started_at::timestamptz(3), id, null, null, null, null, null, json_strip_nulls(json_build_object('campaignId', id, 'clientReferenceId', client_reference_id, 'name', name,
            'agentId', agent_id, 'recipients', case when fan_out_completed_at is not null then recipients end)))) from started
)
select from started;

-- Completes campaigns with no message left to send. (server/src/delivery/campaigns/lifecycle.ts)
prepare "complete-campaigns" as
with completed as (
  update campaigns c set status = 'COMPLETED', completed_at = now()
  where c.status in ('RUNNING') and c.fan_out_completed_at is not null
    and (select coalesce(sum(accepted - sent - unsent), 0) from (select hour, accepted, sent, delivered, read, failed, expired, clicked, replied, opted_out, sms_sent, sms_delivered, sms_failed, sms_skipped, unsent, claimed from report_totals n where n.account_id = c.account_id and n.campaign_id = c.id union all select hour, accepted, sent, delivered, read, failed, expired, clicked, replied, opted_out, sms_sent, sms_delivered, sms_failed, sms_skipped, unsent, claimed from report_deltas n where n.account_id = c.account_id and n.campaign_id = c.id) as counters) = 0
  returning c.*
), unreferred as (
  delete from campaign_references where campaign_id = any (array(select id from completed))
), completed_logged as (
  insert into log_pages (account_id, event_count, events)
  select account_id, 1, json_build_array(json_build_array('campaign.completed', completed_at::timestamptz(3), id, null, null, null, null, null, json_strip_nulls(json_build_object('campaignId', id, 'clientReferenceId', client_reference_id, 'name', name,
            'agentId', agent_id, 'recipients', case when fan_out_completed_at is not null then recipients end)))) from completed
)
select from completed;

-- Finds waiting messages of cancelled campaigns. (server/src/delivery/campaigns/withdraw.ts)
prepare "find-cancelled" as
select q.message_id as "messageId"
from campaigns c, lateral (
  select message_id from queue q
  where q.account_id = c.account_id and q.agent_id = c.agent_id and q.priority = 2 and q.campaign_id = c.id
    and q.leased_until <= now() and q.expires_at > now()
  order by due_at limit $1
) as q
where c.status = 'CANCELLED' and c.withdrawn_at is null
limit $1;

-- Fails waiting messages of cancelled campaigns. (server/src/delivery/fail.ts)
prepare "fail-waiting CAMPAIGN_CANCELLED" as
with failing as materialized (
  select q.message_id, 'CAMPAIGN_CANCELLED' as reason, $2::text as description, q.attempts > 0 as awaits_revocation, q.claimed as was_claimed
  from unnest($1::uuid[]) as ids (message_id), lateral (
    select * from queue q where q.message_id = ids.message_id and q.task = 'send' and q.leased_until <= now() and q.expires_at > now() and true for update skip locked
  ) as q
  join campaigns c on c.id = q.campaign_id and c.status = 'CANCELLED'
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

-- Makes waiting SMS of cancelled campaigns due. (server/src/delivery/campaigns/withdraw.ts)
prepare "make-cancelled-sms-due" as
update sms_queue set due_at = now() where ctid = any (array(
    select s.ctid from campaigns c, lateral (
      select ctid from sms_queue s
      where s.account_id = c.account_id and s.priority = 2 and s.campaign_id = c.id and s.due_at > now() and s.lease is null
      order by due_at limit $1 for update skip locked
    ) as s
    where c.status = 'CANCELLED' and c.withdrawn_at is null
    limit $1));

-- Ends the withdrawal of cancelled campaigns. (server/src/delivery/campaigns/withdraw.ts)
prepare "end-withdrawing" as
update campaigns c set withdrawn_at = now()
where c.status = 'CANCELLED' and c.withdrawn_at is null and (
  select true from queue q
  where q.account_id = c.account_id and q.agent_id = c.agent_id and q.priority = 2 and q.campaign_id = c.id limit 1
) is null;
