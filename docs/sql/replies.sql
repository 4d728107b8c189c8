-- The hot statements of replies, as PostgreSQL gets them. "npm run generate" writes this page from server/scripts/hot-statements.ts.
-- Tables of a month have the name that they have in July 2026. To try one in psql: paste it, then run
--   set plan_cache_mode = force_generic_plan; explain execute "name" (null, …);

-- Finds replies to process. (server/src/delivery/replies.ts)
prepare "find-replies" as
select carrier, event_id as "eventId" from carrier_events where process_after <= now() order by process_after limit $1;

-- Claims a reply to process. (server/src/delivery/replies.ts)
prepare "claim-reply" as
update carrier_events e set process_after = null, phone = '', event = '{}'
from (
  select ctid, event from carrier_events where carrier = $1 and event_id = $2 and process_after <= now() for update skip locked
) as mine
where e.ctid = mine.ctid
returning mine.event, e.occurred_at as "occurredAt", exists (select from erased_people) as "hasErased";

-- Finds the message that a recipient replies to. (server/src/replies/attribution.ts)
prepare "find-replied-message" as
select "accountId", "agentId", "messageId", test
from (
  select m.account_id as "accountId", m.agent_id as "agentId", m.id as "messageId", m.test, m.sent_at
  from messages m join agents a on a.agent_id = m.agent_id left join queue q on q.message_id = m.id
  where m.recipient = $1 and m.agent_id = $2 and a.carrier = $3 and m.id >= uuid_v7_from(now() - interval '45 days')
    and (m.sent_at <= $4::timestamptz + interval '10 seconds' and m.sent_at >= now() - interval '30 days'
      or m.sent_at is null and m.status = 'ACCEPTED' and coalesce(q.claimed, true))
  order by m.id desc limit 200
) as candidate
order by coalesce(sent_at, now()) desc, "messageId" desc limit 1;

-- Finds the SMS that a recipient replies to. (server/src/replies/attribution.ts)
prepare "find-replied-sms" as
select account_id as "accountId", agent_id as "agentId", case when not is_copy then message_id end as "messageId", false as test from sms_contacts where recipient = $1 and sender = $2 order by sent_at desc limit 1;

-- Finds the message whose button was tapped. (server/src/replies/attribution.ts)
prepare "find-tapped" as
select m.account_id as "accountId", m.agent_id as "agentId", m.id as "messageId", m.test, coalesce(m.content, c.message) as content
from messages m join agents a on a.agent_id = m.agent_id left join contents c on c.id = m.content_id
where m.id = $1 and m.recipient = $2 and m.agent_id = $3 and a.carrier = $4;

-- Records an action of a recipient. (server/src/replies/actions.ts)
prepare "record-action" as
with acted as (
  insert into recipient_actions (account_id, agent_id, recipient, message_id, kind, channel, occurred_at, button_id, text, payload, url,
      latitude, longitude, campaign_id)
  select $1, $2, $3, $4, $5, $6, greatest(least($7::timestamptz, now()), m.accepted_at), $8, $9, $10, $11, $12, $13, m.campaign_id
  from (values (1)) as always left join messages m on m.id = $4
  returning *
), action as materialized (
  select 0 as place, coalesce(a.message_id, a.id) as id, a.account_id, a.message_id, a.occurred_at as at,
    case a.kind when 'clicked' then 'message.clicked' when 'opted-out' then 'recipient.opted_out' else 'message.replied' end as kind,
    m.client_reference_id, a.agent_id, a.recipient, m.campaign_id, m.test,
    json_strip_nulls(json_build_object('channel', a.channel, 'source', $14::text, 'action', nullif(a.kind, 'opted-out'),
        'buttonId', a.button_id, 'text', a.text, 'payload', a.payload, 'url', a.url, 'latitude', a.latitude, 'longitude', a.longitude)) as more
  from acted a left join messages m on m.id = a.message_id where a.kind <> 'opted-in'
), action_logged as (
  insert into log_pages (account_id, event_count, events)
  select account_id, count(*), json_agg(
      json_build_array(kind, at, message_id, client_reference_id, agent_id, recipient, campaign_id, test, more) order by n)
  from (
    select *, row_number() over (partition by account_id order by place, id) - 1 as n from action
  ) as numbered
  group by account_id, n / 100 order by account_id, n / 100
), firsts as (
  insert into message_events (message_id, account_id, kind, occurred_at, campaign_id, recipient)
  select message_id, account_id, replace(split_part(kind, '.', 2), '_', '-'), at, campaign_id,
    case when campaign_id is not null then recipient end
  from action where not test
  on conflict do nothing
  returning account_id, campaign_id, false as test, occurred_at as at,
    case kind when 'clicked' then 'message.clicked' when 'replied' then 'message.replied' else 'recipient.opted_out' end as kind
), firsts_counted as (
  insert into report_deltas (account_id, campaign_id, hour, clicked, replied, opted_out)
  select account_id, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), date_trunc('hour', at, 'UTC'),
    count(*) filter (where kind = 'message.clicked'), count(*) filter (where kind = 'message.replied'), count(*) filter (where kind = 'recipient.opted_out')
  from firsts where not test group by 1, 2, 3
)
select;

-- Records an opt-out or opt-in. (server/src/replies/opt-outs.ts)
prepare "record-opt-out" as
with latest as materialized (
  select opted_out, blocked, changed_at from opt_outs
  where account_id = $1 and agent_id in ($2, '') and phone = $3
  order by changed_at desc, agent_id desc limit 1
), written as (
  insert into opt_outs (account_id, agent_id, phone, opted_out, blocked, source, changed_at)
  select $1, $2, $3, $4::boolean, coalesce($7, latest.blocked, false), $5, change.at
  from (select least($6, clock_timestamp()) as at) as change left join latest on true
  where latest.changed_at is null or latest.changed_at <= change.at and not ($7 is null and latest.blocked and not $4)
  on conflict (account_id, agent_id, phone) do update
  set opted_out = excluded.opted_out, blocked = excluded.blocked, source = excluded.source, changed_at = excluded.changed_at
  returning opted_out
)
select (select opted_out from latest) as before, (select opted_out from written) as after;

-- Accepts a template that a recipient asked for. (server/src/messages/send-template.ts)
prepare "send-template" as
with checked as materialized (
  select t.content_id, c.basic,
    case
    when o.suspended_at is not null then 'suspended'
    when a.agent_id is null then 'no-agent'
    when t.status is null then 'no-template'
    when t.status <> 'APPROVED' then 'not-approved'
    when lately.count >= 10 then 'too-many'
    when case when $7::bigint is null then strpos(c.message::text, '{{') > 0 else $7::bigint <> c.id end then 'to-render'
    end as why
  from accounts o
  left join agent_assignments a on a.account_id = $1 and a.agent_id = $2 and a.active
  left join lateral (
    select status, content_id from templates where account_id = $1 and id = $4
    union all
    (select status, content_id from template_versions
      where account_id = $1 and template_id = $4 and not exists (select from templates where account_id = $1 and id = $4)
      order by since <= (select accepted_at from messages where id = $5) desc, id desc limit 1)
  ) as t on true
  left join contents c on c.id = t.content_id
  cross join lateral (
    select count(*) as count from messages m
    where m.recipient = $3 and m.id >= uuid_v7_from(now() - interval '1 minute') and m.account_id = $1 and m.traffic = 'SERVICEREQUEST'
  ) as lately
  where o.id = $1
), created as materialized (
  select uuid_v7() as id, $1::int as account_id, $2 as agent_id, $3 as recipient, basic, $6::bool as test, null as client_reference_id,
    case when $7 is null then content_id end as content_id, $8::text::json as content, now() as accepted_at,
    null::timestamptz as scheduled_at, null::text as delivery_window, null::timestamptz as opens_at, null::timestamptz as own_expiry,
    'SERVICEREQUEST' as traffic, $5::uuid as triggered_by, null::uuid as campaign_id, null as routing, null::json as fallback
  from checked where why is null
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
  select account_id, 0, count(*) * (2048 + coalesce(octet_length($8::text), 0)), 0 from written group by 1
)
select created.id as "messageId", checked.why, checked.content_id as "contentId"
from checked left join created on true;
