-- The hot statements of receipts, as PostgreSQL gets them. "npm run generate" writes this page from server/scripts/hot-statements.ts.
-- Tables of a month have the name that they have in July 2026. To try one in psql: paste it, then run
--   set plan_cache_mode = force_generic_plan; explain execute "name" (null, …);

-- Moves messages by the receipts of phones. (server/src/delivery/receipts.ts)
prepare "apply-receipts" as
with queued as materialized (
  select q.message_id from queue q where q.message_id = any ((select $1::uuid[])::uuid[]) order by q.message_id for update
), receipt as materialized (
  -- A step of its own: the locks on the queue come first, and the step that locks messages does not read "queued" again after a wait.
  select r.* from unnest((select $1::uuid[]), (select $2::text[]), (select $3::text[]), (select $4::text[]), (select $5::timestamptz(3)[]), (select $6::timestamptz(3)[]))
  with ordinality as r (message_id, carrier, phone, agent_id, delivered_at, read_at, place), (select count(*) from queued) as locks
), known as materialized (
  select r.place, m.id, m.recipient, m.agent_id, m.status, m.expires_at, m.sent_at is null as is_unsent,
    r.read_at is not null as is_read, at.sent, at.delivered,
    greatest(at.delivered, least(r.read_at, now())) as read
  from receipt r
  join messages_2026_07 m on m.id = r.message_id and (m.recipient = r.phone or m.recipient like 'erased-%')
    and split_part(m.agent_id, '@rbm.goog', 1) = r.agent_id
  join agents a on a.agent_id = m.agent_id and a.carrier = r.carrier,
  lateral (select least(coalesce(r.delivered_at, r.read_at), now()) as first) as reported,
  lateral (select coalesce(m.sent_at, greatest(reported.first, m.accepted_at)) as sent) as sending,
  lateral (select sending.sent, coalesce(m.delivered_at, greatest(reported.first, sending.sent)) as delivered) as at
  order by m.id for no key update of m
), moved as (
  -- The condition uses the columns read under the lock.
  update messages_2026_07 m set status = case when k.is_read then 'READ' else 'DELIVERED' end, sent_at = k.sent, delivered_at = k.delivered,
    read_at = case when k.is_read then k.read end
  from known k
  where m.id = k.id and (k.status = 'DELIVERED' or k.expires_at > clock_timestamp())
    and (k.is_read and k.status in ('ACCEPTED', 'SENDING', 'SENT', 'DELIVERED') or not k.is_read and k.status in ('ACCEPTED', 'SENDING', 'SENT'))
  returning m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test, k.status as was, k.is_unsent, m.sent_at, m.delivered_at, m.read_at
), unqueued as (
  delete from queue where message_id = any (array(select message_id from queued where message_id in (select id from moved)))
), moved_change as materialized (
  select 0 as place, 'message.sent' as kind, sent_at as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from moved m where sent_at is not null and is_unsent
  union all
  select 1 as place, 'message.delivered' as kind, delivered_at as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from moved m where delivered_at is not null and was in ('ACCEPTED', 'SENDING', 'SENT')
  union all
  select 2 as place, 'message.read' as kind, read_at as at, null::json as more, null as reason, m.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test
  from moved m where read_at is not null
), moved_change_counted as (
  insert into report_deltas (account_id, campaign_id, hour, sent, delivered, read)
  select account_id, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), date_trunc('hour', at, 'UTC'),
    count(*) filter (where kind = 'message.sent'), count(*) filter (where kind = 'message.delivered'), count(*) filter (where kind = 'message.read')
  from moved_change where not test group by 1, 2, 3
), moved_change_logged as (
  insert into log_pages (account_id, event_count, events)
  select account_id, count(*), json_agg(
      json_build_array(kind, at, id, client_reference_id, agent_id, recipient, campaign_id, test, more) order by n)
  from (
    select *, row_number() over (partition by account_id order by place, id) - 1 as n from moved_change where kind in ('message.sent', 'message.delivered', 'message.read')
  ) as numbered
  group by account_id, n / 100 order by account_id, n / 100
), moved_change_listed as (
  insert into message_events (message_id, account_id, kind, occurred_at, reason, campaign_id, recipient)
  select id, account_id, replace(replace(kind, 'message.', ''), '.', '-'), at, reason, campaign_id,
    case when campaign_id is not null then recipient end
  from moved_change where kind in ('message.sent', 'message.delivered', 'message.read') and (campaign_id is not null or kind like 'sms.%')
), learned as (
  update capabilities c set reachable = true, checked_at = l.at
  from (
    select c.phone, c.agent_id, s.read as at
    from known as s join capabilities c on c.phone = s.recipient and c.agent_id = s.agent_id
    where c.checked_at < s.read and (c.reachable <> true or c.checked_at < s.read - interval '12 hours')
    order by c.phone, c.agent_id for update of c
  ) as l
  where c.phone = l.phone and c.agent_id = l.agent_id
)
select place::int, 'unmatched' as why from receipt where place not in (select place from known)
union all
select place::int, 'late' from known where status not in ('DELIVERED', 'READ') and id not in (select id from moved);

-- Notes receipts that move no message. (server/src/delivery/receipts.ts)
prepare "note-receipts" as
with known as materialized (
  -- Locks the messages: the expiry of a message either sees this note, or the next statement sees the expiry.
  select r.place, m.id, m.account_id, r.kind, r.occurred_at from unnest((select $1::uuid[]), (select $2::text[]), (select $3::text[]), (select $4::text[]), (select $5::timestamptz(3)[]), (select $6::text[]))
  with ordinality as r (message_id, carrier, phone, agent_id, occurred_at, kind, place)
  join messages_2026_07 m on m.id = r.message_id and (m.recipient = r.phone or m.recipient like 'erased-%')
    and split_part(m.agent_id, '@rbm.goog', 1) = r.agent_id
  join agents a on a.agent_id = m.agent_id and a.carrier = r.carrier
  order by m.id for no key update of m
), noted as (
  insert into message_events_2026_07 (message_id, account_id, kind, occurred_at) select id, account_id, kind, occurred_at from known
  on conflict do nothing
)
select place::int from known;

-- Ends the wait of SMS whose message was revoked. (server/src/delivery/sms/schedule.ts)
prepare "release-after-revocation" as
with revoked as materialized (
  select ids.message_id from unnest((select $1::uuid[])) as ids (message_id), lateral (
    select from message_events_2026_07 v where v.message_id = ids.message_id and v.kind = 'revoked' limit 1
  ) as v
), sms_awaiting as materialized (
  select s.message_id from revoked as settled, lateral (
    select message_id from sms_queue s
    where s.message_id = settled.message_id and s.copy = 0 and s.awaits_revocation and s.lease is null
    for update skip locked
  ) as s
), sms_released as (
  update sms_queue s set due_at = least(s.due_at, greatest(s.planned_at, now() + interval '0 seconds'))
  where s.copy = 0 and s.message_id = any (array(select message_id from sms_awaiting))
)
select;

-- Stores events of carriers, such as replies. (server/src/delivery/receipts.ts)
prepare "store-carrier-events" as
with stored as (
  insert into carrier_events (carrier, event_id, kind, phone, occurred_at, event, process_after)
  select carrier, event_id, kind, phone, occurred_at, event::json, case when kind = any ($8::text[]) then now() end
  from unnest((select $1::text[]), (select $2::text[]), (select $3::text[]), (select $4::text[]), (select $5::timestamptz(3)[]), (select $6::text[]), (select $7::bytea[]))
    as e (carrier, event_id, kind, phone, occurred_at, event, hash)
  where not exists (
    select from erased_people x where x.hash = e.hash and (x.account_id = 0 or e.kind <> all ($8::text[]))
  )
  order by carrier, event_id
  on conflict do nothing
)
select pg_logical_emit_message(true, 'herald', '');
