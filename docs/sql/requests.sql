-- The hot statements of requests, as PostgreSQL gets them. "npm run generate" writes this page from server/scripts/hot-statements.ts.
-- Tables of a month have the name that they have in July 2026. To try one in psql: paste it, then run
--   set plan_cache_mode = force_generic_plan; explain execute "name" (null, …);

-- Looks up the callers of requests by their integration keys. (server/src/accounts/authenticate.ts)
prepare "authenticate" as
select asked.key as "integrationKey", coalesce(k.account_id, 0) as "accountId", a.xmin::text as "accountVersion",
  coalesce(a.modules, '{rcs,sms}') as modules, a.suspended_at is not null as "isSuspended", k.xmin::text as "keyVersion", coalesce(k.secret_hash, $2) as "secretHash",
  k.scopes, k.addresses::text[] as addresses
from unnest((select $1::text[])) as asked (key)
left join integration_keys k on k.integration_key = asked.key and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
left join accounts a on a.id = coalesce(k.account_id, 0);

-- Counts requests in sliding windows that all nodes share. (server/src/http/limits-database.ts)
prepare "count-hits" as
insert into rate_limit_windows as w (bucket, quota, window_ms, hit_times, hit_counts, granted, held_turns, held_counts, checked_at)
select bucket, quota, window_ms, array[clock_timestamp()], array[least(asked, quota)], least(asked, quota), '{}', '{}', clock_timestamp()
from unnest((select $1::text[]), (select $2::int[]), (select $3::int[]), (select $4::int[])) as hit (bucket, asked, quota, window_ms)
order by bucket
on conflict (bucket) do update set (quota, window_ms, hit_times, hit_counts, granted, held_turns, held_counts, checked_at) = (
  select excluded.quota, excluded.window_ms, times || mark || held_turns, counts || granted || held_counts,
    granted, held_turns, held_counts, instant
  from (
    select clock_timestamp() as instant, excluded.window_ms * interval '1 millisecond' as span, 25 * interval '1 millisecond' as hold
  ) as clock,
  lateral (
    select case when excluded.quota <= 1000 then instant else date_bin(span / 1000, instant, 'epoch') + span / 1000 end as mark
  ) as step,
  lateral (
    select coalesce(array_agg(time), '{}') as times, coalesce(array_agg(count), '{}') as counts, coalesce(sum(count), 0)::int as used
    from (
      select time, sum(count)::int as count from unnest(w.hit_times, w.hit_counts) as hit (time, count)
      where count > 0 and time > instant - span and time <= mark + hold
      group by time
    ) as hit
  ) as recent,
  lateral (select greatest(0, least(excluded.granted, excluded.quota - used)) as granted) as at_once,
  lateral (
    -- Hits that leave the window within HOLD_MS make room for waiting requests, one after the other.
    select coalesce(array_agg(turn order by turn), '{}') as held_turns, coalesce(array_agg(given order by turn), '{}') as held_counts
    from (
      select turn, greatest(0, least(room, waiting)) - greatest(0, least(room - count, waiting)) as given
      from (
        select time + span as turn, count, excluded.granted - granted as waiting,
          (excluded.quota - used - granted + sum(count) over (order by time))::int as room
        from unnest(times, counts) as hit (time, count)
        where time + span <= instant + hold
      ) as leaving
    ) as turns
    where given > 0
  ) as soon
)
returning bucket, granted, held_counts as "heldCounts",
  array(select (extract(epoch from turn - checked_at) * 1000)::float8 from unnest(held_turns) as turn) as "heldMs",
(select sum(count) from unnest(w.hit_counts) as count)::int as used,
  greatest(0, extract(epoch from (
      select min(time) from (
        select time, sum(count) over (order by time desc rows between unbounded preceding and 1 preceding) as later
        from unnest(w.hit_times, w.hit_counts) as hit (time, count)
      ) as hit
      where coalesce(later, 0) < w.quota
    ) - checked_at) * 1000 + window_ms)::float8 as "resetMs";

-- Reads the quotas and the usage of accounts. (server/src/accounts/quotas.ts)
prepare "read-usage" as
select asked.id as "accountId", own.usage,
  ceil(extract(epoch from date_trunc('day', now(), 'UTC') + interval '1 day' - now()))::bigint as "secondsToMidnight"
from unnest((select $1::int[])) as asked (id), lateral (
  select array[
    coalesce(a.quota_messages_per_day, 5000000), coalesce(case when u.day = utc_day(now()) then u.messages end, 0) + coalesce(recent.messages, 0),
    coalesce(a.quota_stored_bytes, 1099511627776), coalesce(u.stored_bytes, 0) + coalesce(recent.bytes, 0)
    ]::bigint[] as usage
  from accounts a left join account_usage u on u.account_id = a.id, lateral (
    select sum(c.messages) filter (where c.at >= (select date_trunc('day', now(), 'UTC'))) as messages,
      sum(c.message_bytes + c.content_bytes) as bytes
    from account_usage_deltas c where c.account_id = a.id and c.at >= coalesce(u.folded_until, '-infinity')
  ) as recent
  where a.id = asked.id) as own;

-- Finds out whether a request was accepted under its key. (server/src/messages/accept.ts)
prepare "was-accepted" as
select from idempotency_keys where account_id = $1 and endpoint = $2 and key = $3 and request_hash = $4;

-- Checks and accepts the messages of a batch of requests. (server/src/messages/accept.ts)
prepare "accept-messages" as
with requested as materialized (
  select r.*, ((select lpad(to_hex(round(extract(epoch from now()) * 1000)::bigint), 12, '0')) || r.id_end)::uuid as id,
    t.content_id as template_content, case when r.rendered_from is null then t.content_id end as content_id,
    used.resource_id as used_id, missing.ids as missing_targets,
    case
    when r.caller is not null and r.caller not in (
    select c.place from unnest((select $25::text[]), (select $26::text[]), (select $27::text[]))
    with ordinality as c (integration_key, key_version, account_version, place)
    join integration_keys k on k.integration_key = c.integration_key and k.xmin::text = c.key_version and (k.expires_at is null or k.expires_at > now())
    join accounts a on a.id = k.account_id and a.xmin::text = c.account_version) then 'unconfirmed'
    when used.request_hash = r.hash then 'replayed'
    when r.scheduled_at < now() - interval '1 minute' then 'scheduled-past'
    when r.scheduled_at > now() + interval '15 days' then 'scheduled-late'
    when r.own_expiry <= now() then 'expires-past'
    when r.own_expiry > greatest(r.scheduled_at, now()) + interval '15 days' then 'expires-late'
    when r.has_violations then 'sms-text'
    when t.status <> 'APPROVED' then 'not-approved'
    when c.basic and not r.basic then 'template-basic'
    when not c.basic and r.basic then 'request-basic'
    when case when r.rendered_from is null then strpos(c.message::text, '{{') > 0 else r.rendered_from <> c.id end then 'to-render'
    when a.agent_id is null then 'no-agent'
    when r.template_id is not null and t.id is null then 'no-template'
    when missing.ids is not null then 'missing-targets'
    when used.resource_id is not null then 'conflict'
    when not r.has_room then 'no-room'
    end as outcome
  from unnest((select $1::int[]), (select $2::text[]), (select $3::bytea[]), (select $4::text[]), (select $5::text[]), (select $6::text[]), (select $7::bool[]), (select $8::bool[]), (select $9::text[]), (select $10::bigint[]), (select $11::json[]), (select $12::bigint[]), (select $13::timestamptz(3)[]), (select $14::text[]), (select $15::timestamptz[]), (select $16::timestamptz(3)[]), (select $17::json[]), (select $18::bool[]), (select $19::text[]), (select $20::int[]), (select $21::bool[]), (select $22::bigint[]), (select $23::text[]), (select $24::uuid[]))
  with ordinality as r (account_id, key, hash, id_end, agent_id, recipient, basic, test, client_reference_id, template_id, content, rendered_from, scheduled_at, delivery_window, opens_at, own_expiry, fallback, has_violations, targets, bytes, has_room, caller, routing, lease, n)
  left join idempotency_keys used on used.account_id = r.account_id and used.endpoint = 'messages' and used.key = r.key
  left join agent_assignments a on a.account_id = r.account_id and a.agent_id = r.agent_id and a.active
  left join templates t on t.account_id = r.account_id and t.id = r.template_id
  left join contents c on c.id = t.content_id
  left join lateral (
    select array_agg(target) as ids from unnest(r.targets::bigint[]) as target
    where not exists (select from templates x where x.account_id = r.account_id and x.id = target)
  ) as missing on r.targets is not null
), keyed as materialized (
  insert into idempotency_keys (account_id, endpoint, key, request_hash, resource_id)
  select account_id, 'messages', key, hash, id from requested where outcome is null and key is not null order by account_id, key, n
  on conflict do nothing
  returning resource_id
), created as materialized (
  select *, now() as accepted_at, 'TRANSACTION' as traffic, null::uuid as triggered_by, null::uuid as campaign_id from requested
  where outcome is null and (key is null or id in (select resource_id from keyed))
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
  select id, account_id, agent_id, 'send', 0, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), greatest(now(), scheduled_at, opens_at),
    coalesce(own_expiry, now() + interval '48 hours'), delivery_window, lease,
    case when lease is null then '-infinity' else now() + $28 * interval '1 millisecond' end, (lease is not null)::int,
    lease is not null
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
  select account_id, count(*), sum(bytes), 0 from created group by 1
), held as materialized (
  select pg_logical_emit_message(true, 'herald', '') from (select from requested where outcome = 'replayed' limit 1) as any_replayed
)
select coalesce(outcome, case when id in (select id from created) then 'accepted' else 'again' end) as outcome,
  coalesce(used_id, id) as "messageId", missing_targets as "missingTargets",
  template_content as "contentId", (select count(*) from held) as held
from requested order by n;

-- Reads the time zones of a recipient with a delivery window. (server/src/windows/recipients.ts)
prepare "read-time-zones" as
select (extract(epoch from now()) * 1000)::float8 as "nowMs", (
  select string_agg(distinct time_zone, ',' order by time_zone) from groups g, lateral (
    select time_zone from group_members p where p.account_id = g.account_id and p.group_number = g.number and p.phone = $2 offset 0
  ) as p
  where g.account_id = $1
) as "timeZones";

-- Reads a message for GET /v1/messages/{messageId}. (server/src/messages/messages.ts)
prepare "read-message" as
select m.id as "messageId", coalesce(m.client_reference_id, campaign.client_reference_id) as "clientReferenceId",
  m.campaign_id as "campaignId", m.agent_id as "agentId", m.recipient, now.status, m.basic, m.test,
  m.accepted_at as "acceptedAt", m.scheduled_at as "scheduledAt", m.delivery_window as "deliveryWindow", m.sent_at as "sentAt",
  m.delivered_at as "deliveredAt", m.read_at as "readAt", m.failed_at as "failedAt",
  case when now.status = 'EXPIRED' then m.expires_at end as "expiredAt", m.expires_at as "expiresAt",
  m.failure_reason as "failure.reason", m.failure_description as "failure.description", m.routing, m.triggered_by as "triggeredBy",
  coalesce(needless.status, f.status) as "smsFallback.status", coalesce(needless.reason, f.reason) as "smsFallback.reason",
  f.plan ->> 'campaign' as "smsFallback.campaign",
  case when coalesce(needless.status, f.status) <> 'NOT_NEEDED' then f.due_at end as "smsFallback.dueAt", f.sent_at as "smsFallback.sentAt",
  f.delivered_at as "smsFallback.deliveredAt", f.segments as "smsFallback.segments"
from messages m
left join campaigns campaign on campaign.id = m.campaign_id
left join lateral (select * from sms_fallbacks f where f.message_id = m.id offset 0) as f on true
left join lateral (select 'NOT_NEEDED' as status, 'RCS_DELIVERED' as reason where (
      case f.status
      when 'WAITING' then true
      when 'SCHEDULED' then not coalesce((
        select s.submitted_under is not null or s.segments_sent > 0 from sms_queue s where s.message_id = m.id and s.copy = 0), false)
      else false
      end
      and (m.delivered_at is not null or (
        select true from message_events e where e.message_id = m.id and e.kind in ('delivered-late', 'read-late') limit 1) is not null))) as needless on true,
lateral (select case
    when m.delivered_at is not null then m.status
    when m.status in ('ACCEPTED', 'SENDING', 'SENT') and m.expires_at <= now() - interval '1 second' then 'EXPIRED'
  -- Without a queue entry, the call ended after the message had expired.
    when m.status = 'ACCEPTED' and coalesce((select q.claimed from queue q where q.message_id = m.id), true) then 'SENDING'
    else m.status
    end as status) as now
where m.id = $1 and m.account_id = $2;

-- Finds the position of the event feed for GET /v1/events?since=. (server/src/events/start.ts)
prepare "find-start" as
with recursive search as (
  select coalesce((select last_position - event_count from log_pages where account_id = $1 and last_position is not null
      order by last_position limit 1), coalesce((select last_position from log_heads where account_id = $1), 0)) + 1 as low,
    coalesce((select max(last_position) from log_pages where account_id = $1), coalesce((select last_position from log_heads where account_id = $1), 0)) + 1 as high
  union all
  select case when p.placed_at < $2 then p.last_position + 1 else low end,
    case when p.placed_at < $2 then high else p.last_position - p.event_count + 1 end
  from search, lateral (
    select last_position, event_count, placed_at from log_pages where account_id = $1 and last_position >= (low + high) / 2
    order by last_position limit 1
  ) as p
  where low < high
)
select found.position as position, coalesce(
  (select right(page_id::text, 8) from log_pages where account_id = $1 and last_position = found.position), repeat('0', 8)) as mark from (select low - 1 as position from search where low >= high) as found;

-- Finds the ends of the logs of accounts, for GET /v1/events?after=now and streams. (server/src/events/start.ts)
prepare "find-ends" as
select head.account_id as "accountId", head.position as position, coalesce(
  (select right(page_id::text, 8) from log_pages where account_id = head.account_id and last_position = head.position), repeat('0', 8)) as mark
from (
  select wanted.account_id, coalesce((select last_position from log_heads h where h.account_id = wanted.account_id), 0) as position
  from unnest((select $1::int[])) as wanted (account_id)
) as head;

-- Reads a page of the event feed for GET /v1/events. (server/src/events/feed.ts)
prepare "read-feed" as
select not $5::bool or coalesce(
  (select case when last_position - event_count < $2 then right(page_id::text, 8) = $4 else last_position - event_count = $2 end
    from log_pages where account_id = $1 and last_position >= $2 order by last_position limit 1),
    coalesce((select last_position from log_heads where account_id = $1), 0) = $2
) as "hasPlace", (select last_position from log_heads where account_id = $1) as newest, p.page_id as "pageId", p.last_position as "lastPosition", p.event_count as "eventCount", p.events
from (values (1)) as always left join (
  select *, sum(octet_length(events::text)) over (order by last_position rows between unbounded preceding and 1 preceding) as bytes_before
  from (
    select * from (
      select *, sum(wanted) over (order by last_position) - wanted as events_before from (
        select *, least(event_count, last_position - $2) as wanted from log_pages where account_id = $1 and last_position > $2
        order by last_position limit $3
      ) as next
    ) as counted
    where events_before < $3
  ) as next
) as p on coalesce(p.bytes_before, 0) < 1048576
order by p.last_position;
