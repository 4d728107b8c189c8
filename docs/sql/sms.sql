-- The hot statements of sms, as PostgreSQL gets them. "npm run generate" writes this page from server/scripts/hot-statements.ts.
-- Tables of a month have the name that they have in July 2026. To try one in psql: paste it, then run
--   set plan_cache_mode = force_generic_plan; explain execute "name" (null, …);

-- Finds due SMS. (server/src/delivery/sms/claim.ts)
prepare "find-due-sms" as
with recursive lane as (
  (select account_id, priority, campaign_id, due_at from sms_queue order by account_id, priority, campaign_id, due_at limit 1)
  union all
  select next.*
  from lane, lateral (
    select account_id, priority, campaign_id, due_at from sms_queue q
    where (q.account_id, q.priority, q.campaign_id) > (lane.account_id, lane.priority, lane.campaign_id)
    order by account_id, priority, campaign_id, due_at limit 1
  ) as next
), due as materialized (
  select q.*, row_number() over (partition by q.account_id order by q.priority, q.due_at) as account_turn,
    row_number() over (partition by q.account_id, q.recipient order by q.priority, q.due_at) as person_turn
  from lane l left join campaigns c on c.id = l.campaign_id and c.status = 'PAUSED', lateral (
    select message_id, copy, account_id, recipient, priority, due_at, expires_at from sms_queue q
    where q.account_id = l.account_id and q.priority = l.priority and q.campaign_id = l.campaign_id and q.due_at <= now() and not exists (
      select from sms_queue o where o.account_id = q.account_id and o.recipient = q.recipient and o.lease is not null and o.due_at > now()
    )
    order by q.due_at limit $1
  ) as q
  where l.due_at <= now() and c.id is null and (l.account_id <> all (array(select id from accounts where suspended_at is not null)) or q.expires_at <= now())
)
select message_id as "messageId", copy, (select count(*)::int from due) as "dueInAll"
from due where person_turn = 1 order by priority, account_turn, due_at limit $1;

-- Locks due SMS. (server/src/delivery/sms/claim.ts)
prepare "hold-sms" as
select q.message_id as "messageId", q.copy from unnest((select $1::uuid[]), (select $2::smallint[])) with ordinality as due (message_id, copy, place), lateral (
  select message_id, copy from sms_queue q
  where q.message_id = due.message_id and q.copy = due.copy and q.due_at <= now() for update skip locked
) as q
order by due.place;

-- Checks whether to submit locked SMS. (server/src/delivery/sms/claim.ts)
prepare "check-sms" as
with held as materialized (
  select q.*, held.place from unnest((select $1::uuid[]), (select $2::smallint[])) with ordinality as held (message_id, copy, place), lateral (
    select * from sms_queue q where q.message_id = held.message_id and q.copy = held.copy limit 1
  ) as q
)
select q.message_id as "messageId", q.copy, q.account_id as "accountId", m.agent_id as "agentId", q.recipient, f.plan, q.segments,
  q.segments_sent as "segmentsSent", q.attempts + 1 as attempts, q.expires_at as "expiresAt",
  case
  when q.submitted_under is not null then 'lost'
  when f.message_id is null or m.id is null then 'gone'
  when q.copy = 0 and q.segments_sent = 0 and (select kind from message_events where message_id = q.message_id and kind in ('delivered-late', 'read-late') limit 1) is not null then 'not-needed'
  when q.recipient like 'erased-%' then 'ERASED'
-- A copy of a single SMS to an erased person, whose text is erased.
  when q.copy > 0 and m.campaign_id is null and m.recipient like 'erased-%' then 'ERASED'
  when q.expires_at <= now() then 'late'
-- Once one segment was sent, the remaining segments follow.
  when q.segments_sent > 0 then 'go'
  when true and o.blocked then 'BLOCKED'
  when true and o.opted_out then 'OPTED_OUT'
  when c.id is not null and c.status = 'CANCELLED' then 'CANCELLED'
  when q.copy > 0 then 'go'
  when (f.plan ->> 'controlGroup')::bool and r.control_group then 'CONTROL_GROUP'
  when not (f.plan ->> 'ignoreStatus')::bool and not r.active then 'INACTIVE'
  when json_array_length(f.plan -> 'consentIds') > 0 and not (array(select json_array_elements_text(f.plan -> 'consentIds')::int) <@ coalesce(r.consents, '{}')) then 'CONSENT'
  when (f.plan ->> 'quarantine')::bool and last.sent_at > now() - a.quarantine_hours * interval '1 hour' then 'QUARANTINE'
  else 'go'
  end as decision,
  case when q.copy = 0 and q.segments_sent = 0 and f.message_id is not null and m.id is not null then json_strip_nulls(json_build_array(
      json_build_object('rule', 'window', 'result', 'passed', 'dueAt', to_char(q.planned_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')),
      json_build_object('rule', 'block', 'result', case when not (true) then 'not-required' when o.blocked then 'failed' else 'passed' end),
      json_build_object('rule', 'optOut', 'result', case when not (true) then 'not-required' when o.opted_out then 'failed' else 'passed' end),
      json_build_object('rule', 'campaign', 'result', case when not (c.id is not null) then 'not-required' when c.status = 'CANCELLED' then 'failed' else 'passed' end),
      json_build_object('rule', 'controlGroup', 'result', case when not ((f.plan ->> 'controlGroup')::bool) then 'not-required' when r.control_group then 'failed' else 'passed' end),
      json_build_object('rule', 'status', 'result', case when not (not (f.plan ->> 'ignoreStatus')::bool) then 'not-required' when not r.active then 'failed' else 'passed' end),
      json_build_object('rule', 'consents', 'result', case when not (json_array_length(f.plan -> 'consentIds') > 0) then 'not-required' when not (array(select json_array_elements_text(f.plan -> 'consentIds')::int) <@ coalesce(r.consents, '{}')) then 'failed' else 'passed' end, 'required', array(select json_array_elements_text(f.plan -> 'consentIds')::int), 'given', array(select distinct id from unnest(coalesce(r.consents, '{}')) as id where id is not null order by id)),
      json_build_object('rule', 'quarantine', 'result', case when not ((f.plan ->> 'quarantine')::bool) then 'not-required' when last.sent_at > now() - a.quarantine_hours * interval '1 hour' then 'failed' else 'passed' end, 'hours', a.quarantine_hours, 'lastSmsAt', to_char(last.sent_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
))::text end as rules,
  exists (select from erased_people) as "hasErased", m.delivery_window as window, (extract(epoch from q.due_at) * 1000)::float8 as "dueMs", (extract(epoch from now()) * 1000)::float8 as "nowMs"
from held q
join accounts a on a.id = q.account_id
left join sms_fallbacks f on f.message_id = q.message_id
left join messages m on m.id = q.message_id
left join campaigns c on c.id = q.campaign_id
left join lateral (
  select opted_out, blocked from opt_outs
  where account_id = q.account_id and agent_id in (m.agent_id, '') and phone = q.recipient
  order by changed_at desc, agent_id desc limit 1) as o on true
left join lateral (
  -- One index look-up for each group of the account.
  select bool_or(p.control_group) as control_group, bool_and(p.active) as active, array_agg(consent) as consents
  from groups g
  join group_members p on p.account_id = g.account_id and p.group_number = g.number and p.phone = q.recipient
  left join unnest(p.consents) as consent on true
  where g.account_id = q.account_id
) as r on true
left join lateral (select max(sent_at) as sent_at from sms_contacts s where s.account_id = q.account_id and s.recipient = q.recipient and not s.is_copy) as last on (f.plan ->> 'quarantine')::bool
order by q.place;

-- Postpones SMS whose delivery window is closed. (server/src/delivery/sms/postpone.ts)
prepare "postpone-sms" as
update sms_queue q set due_at = p.opens_at, expires_at = greatest(q.expires_at, p.expires_at)
from unnest((select $1::uuid[]), (select $2::smallint[]), (select $3::timestamptz[]), (select $4::timestamptz[])) as p (message_id, copy, opens_at, expires_at)
where q.message_id = p.message_id and q.copy = p.copy;

-- Shows when postponed SMS are due. (server/src/delivery/sms/postpone.ts)
prepare "show-postponed-sms" as
update sms_fallbacks_2026_07 f set due_at = p.opens_at
from unnest((select $1::uuid[]), (select $2::timestamptz[])) as p (message_id, opens_at)
where f.message_id = p.message_id and f.status = 'SCHEDULED';

-- Leases SMS, and notes what the rules said. (server/src/delivery/sms/claim.ts)
prepare "lease-sms" as
with checked as materialized (
  select * from unnest((select $1::uuid[]), (select $2::smallint[]), (select $3::text[]), (select $4::float8[]), (select $5::text[])) as c (message_id, copy, decision, lease_ms, rules)
), leased as (
  update sms_queue q set lease = $6, attempts = q.attempts + 1, due_at = now() + c.lease_ms * interval '1 millisecond',
  -- A lost SMS stays lost, even if the worker that finds it dies too.
    submitted_under = case c.decision when 'go' then $6 else q.submitted_under end
  from checked c
  where q.message_id = any ((select $1::uuid[])::uuid[]) and q.message_id = c.message_id and q.copy = c.copy
  returning q.message_id, q.account_id, q.attempts, c.decision, c.rules
)
insert into message_events (message_id, account_id, kind, occurred_at, reason, detail)
select message_id, account_id, 'sms-checked', now(), nullif(decision, 'go'), rules from leased
where rules is not null and decision not in ('lost', 'gone', 'late', 'not-needed') and attempts <= 10
on conflict do nothing;

-- Stores the short links of an SMS. (server/src/links/links.ts)
prepare "create-short-links" as
insert into short_links (code, account_id, message_id, copy, agent_id, recipient, url)
select * from unnest($1::text[], $2::int[], $3::uuid[], $4::smallint[], $5::text[], $6::text[], $7::text[])
  as l (code, account_id, message_id, copy, agent_id, recipient, url)
order by code collate "C"
on conflict do nothing;

-- Records the results of SMS in the queue. (server/src/delivery/sms/results.ts)
prepare "settle-sms-queue" as
with held as materialized (
  select r.*, q.recipient
  from (
    select * from unnest((select $1::uuid[]), (select $2::smallint[]), (select $3::uuid[]), (select $4::text[]), (select $5::int[]), (select $6::int[]))
    with ordinality as r (message_id, copy, lease, outcome, after_ms, submitted, place)
    order by message_id, copy
  ) as r, lateral (
    select recipient from sms_queue q where q.message_id = r.message_id and q.copy = r.copy and q.lease = r.lease for update
  ) as q
), released as (
  update sms_queue q set lease = null, submitted_under = null, due_at = now() + h.after_ms * interval '1 millisecond',
    segments_sent = q.segments_sent + h.submitted, attempts = q.attempts - case h.outcome when 'not-tried' then 1 else 0 end
  from held h
  where q.message_id = any (array(select message_id from held)) and q.message_id = h.message_id and q.copy = h.copy and h.after_ms is not null
), ended as (
  delete from sms_queue q using held h
  where q.message_id = any (array(select message_id from held)) and q.message_id = h.message_id and q.copy = h.copy and h.after_ms is null
), submitted as (
  insert into sms_segments (message_id, copy, segment, carrier, carrier_message_id, recipient)
  select h.message_id, h.copy, s.segment, $10, s.carrier_message_id, h.recipient
  from unnest($7::int[], $8::smallint[], $9::text[]) as s (place, segment, carrier_message_id) join held h on h.place = s.place
)
select place::int from held;

-- Ends SMS, and queues their copies. (server/src/delivery/sms/results.ts)
prepare "end-sms" as
with moved as (
  update sms_fallbacks_2026_07 f set
    status = r.status,
    reason = coalesce(r.reason, f.reason),
    sent_at = case r.status when 'SENT' then now() end,
    failed_at = case r.status when 'FAILED' then now() end,
    detail = r.detail,
    segments = coalesce(r.segments, f.segments)
  from unnest((select $1::uuid[]), (select $2::text[]), (select $3::text[]), (select $4::text[]), (select $5::int[])) as r (message_id, status, reason, detail, segments)
  join messages_2026_07 m on m.id = r.message_id
  where f.message_id = r.message_id and f.status in ('SCHEDULED')
  returning m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test, f.status, f.reason, f.plan, f.segments, f.detail, f.sent_at, f.failed_at
), moved_change as materialized (
  select 0 as place, 'sms.sent' as kind, sent_at as at, json_build_object('segments', segments) as more, reason as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from moved m where sent_at is not null
  union all
  select 1 as place, 'sms.failed' as kind, failed_at as at, json_build_object('segments', segments, 'failure', json_build_object('reason', reason, 'description', detail)) as more, reason as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from moved m where failed_at is not null
  union all
  select 2 as place, 'sms.skipped' as kind, now()::timestamptz(3) as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from moved m where now()::timestamptz(3) is not null and status = 'SKIPPED'
), moved_change_counted as (
  insert into report_deltas (account_id, campaign_id, hour, sms_sent, sms_failed, sms_skipped)
  select account_id, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), date_trunc('hour', at, 'UTC'),
    count(*) filter (where kind = 'sms.sent'), count(*) filter (where kind = 'sms.failed'), count(*) filter (where kind = 'sms.skipped')
  from moved_change where not test group by 1, 2, 3
), moved_change_logged as (
  insert into log_pages (account_id, event_count, events)
  select account_id, count(*), json_agg(
      json_build_array(kind, at, id, client_reference_id, agent_id, recipient, campaign_id, test, more) order by n)
  from (
    select *, row_number() over (partition by account_id order by place, id) - 1 as n from moved_change where kind in ('sms.sent', 'sms.failed')
  ) as numbered
  group by account_id, n / 100 order by account_id, n / 100
), moved_change_listed as (
  insert into message_events (message_id, account_id, kind, occurred_at, reason, campaign_id, recipient)
  select id, account_id, replace(replace(kind, 'message.', ''), '.', '-'), at, reason, campaign_id,
    case when campaign_id is not null then recipient end
  from moved_change where kind in ('sms.sent', 'sms.failed') and (campaign_id is not null or kind like 'sms.%')
), sms_noted as (
  insert into message_events (message_id, account_id, kind, occurred_at, reason)
  select id, account_id, 'sms-' || replace(lower(status), '_', '-'), now(), reason from moved where status in ('SKIPPED', 'NOT_NEEDED')
  on conflict do nothing
), copy as materialized (
  select distinct on (coalesce(m.campaign_id, m.id), copy.number) m.*, copy.number, copy.place
  from moved m, json_array_elements_text(m.plan -> 'copies') with ordinality as copy (number, place)
  where m.status = 'SENT' and copy.number <> m.recipient
), first_of_campaign as (
  insert into campaign_copies (campaign_id, phone) select campaign_id, number from copy where campaign_id is not null order by 1, 2
  on conflict do nothing
  returning campaign_id, phone
)
insert into sms_queue (message_id, copy, account_id, recipient, priority, campaign_id, planned_at, due_at, expires_at, segments)
select id, place, account_id, number, 2, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), now(), now(),
  now() + interval '48 hours', segments
from copy where campaign_id is null or (campaign_id, number) in (select campaign_id, phone from first_of_campaign);

-- Notes why SMS are tried again. (server/src/delivery/sms/results.ts)
prepare "note-sms-retries" as
insert into message_events_2026_07 (message_id, account_id, kind, occurred_at, detail)
select q.message_id, q.account_id, 'sms-attempt-failed', now(), r.detail
from unnest((select $1::uuid[]), (select $2::text[])) as r (message_id, detail), lateral (
  select message_id, account_id, attempts from sms_queue q where q.message_id = r.message_id and q.copy = 0 offset 0
) as q
where q.attempts <= 10
on conflict do nothing;

-- Notes which recipients have an SMS. (server/src/delivery/sms/results.ts)
prepare "note-contacts" as
insert into sms_contacts as c (account_id, recipient, sender, agent_id, message_id, is_copy, sent_at)
select distinct on (1, 2, 3, 4, 6) m.account_id, coalesce(s.recipient, m.recipient), f.plan ->> 'sender', m.agent_id, m.id, r.copy > 0, now()
from unnest((select $1::uuid[]), (select $2::smallint[])) as r (message_id, copy)
join sms_fallbacks f on f.message_id = r.message_id
join messages m on m.id = r.message_id
left join lateral (select recipient from sms_segments s where s.message_id = r.message_id and s.copy = r.copy limit 1) as s on true
where s.recipient is not null or r.copy = 0 and (f.status = 'SENT' or f.reason = 'OUTCOME_UNKNOWN')
order by 1, 2, 3, 4, 6, m.id desc
on conflict (account_id, recipient, sender, agent_id, is_copy) do update
set message_id = excluded.message_id, sent_at = greatest(c.sent_at, excluded.sent_at);

-- Stores receipts of SMS. (server/src/delivery/sms/receipts.ts)
prepare "store-sms-receipts" as
with stored as (
  insert into sms_receipts (carrier, carrier_message_id, recipient, event_id, reading, state, detail, occurred_at)
  select * from unnest((select $1::text[]), (select $2::text[]), (select $3::text[]), (select $4::text[]), (select $5::smallint[]), (select $6::text[]), (select $7::text[]), (select $8::timestamptz[]))
  on conflict do nothing
)
select pg_logical_emit_message(true, 'herald', ''), exists (select from erased_people) as "hasErased";

-- Applies receipts to the segments of SMS. (server/src/delivery/sms/receipts.ts)
prepare "apply-sms-receipts" as
with candidate as materialized (
  select r.*, s.message_id, s.copy, s.segment, s.submitted_at
  from unnest((select $1::text[])) as ids (event_id), lateral (
    select * from sms_receipts r where r.event_id = ids.event_id offset 0
  ) as r, lateral (
    select * from sms_segments s where s.carrier_message_id = r.carrier_message_id and s.state = 'sent' offset 0
  ) as s
  where s.carrier = r.carrier and (s.recipient = r.recipient or s.recipient like 'erased-%')
  union all
  select r.*, s.message_id, s.copy, s.segment, s.submitted_at
  from unnest((select $2::uuid[])) as ids (message_id), lateral (
    select * from sms_segments s where s.message_id = ids.message_id offset 0
  ) as s, lateral (
    select * from sms_receipts r where r.carrier_message_id = s.carrier_message_id offset 0
  ) as r
  where r.carrier = s.carrier and (s.recipient = r.recipient or s.recipient like 'erased-%') and s.state = 'sent'
    and r.received_at > now() - interval '120 seconds'
), reading as materialized (
  select distinct on (carrier, event_id) * from candidate order by carrier, event_id, reading, submitted_at desc
), receipt as materialized (
  -- Of several receipts for a segment, the first counts.
  select distinct on (message_id, copy, segment) * from reading order by message_id, copy, segment, received_at, event_id
), applied as (
  update sms_segments s set state = r.state, detail = r.detail, occurred_at = least(r.occurred_at, now())
  from receipt r where s.message_id = r.message_id and s.copy = r.copy and s.segment = r.segment
  returning s.message_id
), matched as (
  delete from sms_receipts d using reading r where d.carrier = r.carrier and d.event_id = r.event_id
)
select distinct message_id as "messageId" from applied;

-- Moves SMS by the states of their segments. (server/src/delivery/sms/receipts.ts)
prepare "settle-sms" as
with total as materialized (
  select s.message_id, count(*) filter (where s.state = 'delivered') as delivered, count(*) filter (where s.state = 'failed') as failed,
    max(s.occurred_at) as at, min(s.detail) filter (where s.state = 'failed') as detail
  from unnest((select $1::uuid[])) as ids (message_id), lateral (
    select * from sms_segments s where s.message_id = ids.message_id and s.copy = 0 offset 0
  ) as s
  group by s.message_id
), moved as (
  update sms_fallbacks_2026_07 f set
    status = case when t.failed > 0 then 'FAILED' else 'DELIVERED' end,
    reason = case when t.failed > 0 then 'UNDELIVERABLE' else f.reason end,
    delivered_at = case when t.failed = 0 then greatest(t.at, f.sent_at) end,
    failed_at = case when t.failed > 0 then greatest(t.at, f.sent_at) end,
    detail = t.detail
  from total t join messages_2026_07 m on m.id = t.message_id
  where f.message_id = t.message_id and f.status in ('SENT') and (t.failed > 0 or t.delivered = f.segments)
  returning m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test, f.reason, f.delivered_at, f.failed_at, f.detail, f.segments
), moved_change as materialized (
  select 0 as place, 'sms.delivered' as kind, delivered_at as at, json_build_object('segments', segments) as more, reason as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from moved m where delivered_at is not null
  union all
  select 1 as place, 'sms.failed' as kind, failed_at as at, json_build_object('segments', segments, 'failure', json_build_object('reason', reason, 'description', 'The network could not deliver the message.' || coalesce(' The network said: ' || nullif(detail, ''), ''))) as more, reason as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from moved m where failed_at is not null
), moved_change_counted as (
  insert into report_deltas (account_id, campaign_id, hour, sms_delivered, sms_failed)
  select account_id, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), date_trunc('hour', at, 'UTC'),
    count(*) filter (where kind = 'sms.delivered'), count(*) filter (where kind = 'sms.failed')
  from moved_change where not test group by 1, 2, 3
), moved_change_logged as (
  insert into log_pages (account_id, event_count, events)
  select account_id, count(*), json_agg(
      json_build_array(kind, at, id, client_reference_id, agent_id, recipient, campaign_id, test, more) order by n)
  from (
    select *, row_number() over (partition by account_id order by place, id) - 1 as n from moved_change where kind in ('sms.delivered', 'sms.failed')
  ) as numbered
  group by account_id, n / 100 order by account_id, n / 100
), moved_change_listed as (
  insert into message_events (message_id, account_id, kind, occurred_at, reason, campaign_id, recipient)
  select id, account_id, replace(replace(kind, 'message.', ''), '.', '-'), at, reason, campaign_id,
    case when campaign_id is not null then recipient end
  from moved_change where kind in ('sms.delivered', 'sms.failed') and (campaign_id is not null or kind like 'sms.%')
), deleted as (
  delete from sms_segments s using moved m where s.message_id = m.id and s.copy = 0
), deleted_copies as (
  delete from sms_segments s using unnest($1::uuid[]) as ids (message_id)
  where s.message_id = ids.message_id and s.copy > 0 and s.state <> 'sent'
)
select;
