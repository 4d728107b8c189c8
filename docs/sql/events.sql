-- The hot statements of events, as PostgreSQL gets them. "npm run generate" writes this page from server/scripts/hot-statements.ts.
-- Tables of a month have the name that they have in July 2026. To try one in psql: paste it, then run
--   set plan_cache_mode = force_generic_plan; explain execute "name" (null, …);

-- Finds out whether pages wait for their positions. (server/src/events/router.ts)
prepare "find-unplaced" as
select id from log_pages where last_position is null and id >= $1 order by id limit 1;

-- Gives pages their positions in the log of their account. (server/src/events/router.ts)
prepare "place-pages" as
with unplaced as materialized (
  select ctid, id, account_id, event_count from log_pages where last_position is null and id >= $2 order by id limit $1
), grown as materialized (
  select account_id, sum(event_count) as events, count(*) as pages, max(id) as last from unplaced group by account_id order by account_id
), head as materialized (
  insert into log_heads as h (account_id, last_position, placed_at) select account_id, events, clock_timestamp() from grown
  on conflict (account_id) do update set last_position = h.last_position + excluded.last_position,
    placed_at = greatest(h.placed_at, excluded.placed_at)
  returning account_id, last_position, placed_at
), placed as (
  update log_pages p set last_position = h.last_position - u.events_after, placed_at = h.placed_at
  from (select *, sum(event_count) over (partition by account_id order by id desc) - event_count as events_after from unplaced) as u
  join head h using (account_id)
  where p.ctid = u.ctid
)
select account_id as "accountId", h.last_position - events as after, events, pages, last from grown join head h using (account_id)
order by account_id;

-- Queues the events of new pages for webhook endpoints. (server/src/events/router.ts)
prepare "address-events" as
insert into webhook_deliveries (endpoint_id, account_id, position, subject_id, due_at)
select wanting.id, grown.account_id, e.position, e.event ->> 2, statement_timestamp()
from unnest((select $1::int[]), (select $2::bigint[])) as grown (account_id, after), lateral (
  select array_agg(id) as ids, array_agg(array_to_string(kinds, ',')) as kinds from (
    select id, kinds from webhook_endpoints w where w.account_id = grown.account_id and w.status = 'ACTIVE' order by w.id for key share
  ) as locked
) as endpoints, lateral (
  select p.last_position - p.event_count + e.place as position, e.event, e.event ->> 0 as kind
  from log_pages p, json_array_elements(p.events) with ordinality as e (event, place)
  where endpoints.ids is not null and p.account_id = grown.account_id and p.last_position > grown.after offset 0
) as e, lateral (
  select w.id from unnest(endpoints.ids, endpoints.kinds) as w (id, kinds)
  where case e.kind when 'webhook.test' then e.event -> 8 ->> 'endpointId' = w.id::text
    else w.kinds is null or e.kind = any (string_to_array(w.kinds, ',')) end offset 0
) as wanting;

-- Claims endpoints, and reads their due deliveries. (server/src/webhooks/claim.ts)
prepare "claim-webhooks" as
with recursive first_due as (
  (select endpoint_id, due_at from webhook_deliveries where due_at is not null order by endpoint_id, due_at, position limit 1)
  union all
  select next.*
  from first_due, lateral (
    select endpoint_id, due_at from webhook_deliveries d where d.due_at is not null and d.endpoint_id > first_due.endpoint_id
    order by endpoint_id, due_at, position limit 1
  ) as next
), held as materialized (
  select e.id from first_due f join webhook_endpoints e on e.id = f.endpoint_id
  where f.due_at <= now() and e.status = 'ACTIVE' and (e.paused_until is null or e.paused_until <= now()) and e.lease = $1 and e.leased_until > now() + interval '5 seconds'
), claimed as materialized (
  -- Leases of this process that need renewal, and expired leases. Rows that are locked are skipped.
  select e.id from first_due f, lateral (
    select id, lease from webhook_endpoints e
    where e.id = f.endpoint_id and e.status = 'ACTIVE' and (e.paused_until is null or e.paused_until <= now()) and (e.leased_until <= now() or e.lease = $1 and e.leased_until <= now() + interval '5 seconds')
    for no key update skip locked
  ) as e
  where f.due_at <= now() order by e.lease = $1 desc nulls last, f.due_at limit 100 + cardinality($3::int[])
), leased as (
  update webhook_endpoints set lease = $1, leased_until = now() + interval '10 seconds'
  where id = any (array(select id from claimed))
)
select d.endpoint_id as "endpointId", d.account_id as "accountId", d.position, d.generation, d.attempts, d.subject_id as "subjectId",
  d.has_next as "hasNext", clock_timestamp() as "readAt"
from (select id from held union all select id from claimed) as mine, lateral (
  select *, row_number() over (order by due_at, position) as turn from (
    select distinct on (subject) * from (
      select d.*, coalesce(d.subject_id, d.position::text) as subject,
        count(*) over (partition by coalesce(d.subject_id, d.position::text)) > 1 as has_next
      from (
        select * from webhook_deliveries d where d.endpoint_id = mine.id and d.due_at <= now()
        order by d.due_at, d.position limit 256
      ) as d
    ) as near
    where (endpoint_id, subject) not in (select * from unnest($3::int[], $4::text[]))
    order by subject, due_at, position
  ) as first
  order by due_at, position limit coalesce(($2::jsonb ->> mine.id::text)::int, 4)
) as d
order by d.turn, d.due_at limit 2000;

-- Reads the events of deliveries. (server/src/events/pages.ts)
prepare "read-events-at" as
select distinct on (p.account_id, p.last_position) p.account_id as "accountId", p.page_id as "pageId", p.last_position as "lastPosition", p.event_count as "eventCount", p.events
from unnest((select $1::int[]), (select $2::bigint[])) as wanted (account_id, position), lateral (
  select * from log_pages p where p.account_id = wanted.account_id and p.last_position >= wanted.position
  order by p.last_position limit 1
) as p;

-- Reads the URLs and secrets of endpoints. (server/src/webhooks/claim.ts)
prepare "read-webhook-endpoints" as
select e.id, e.url, s.key_id as "keyId", s.value
from webhook_endpoints e join webhook_secrets s on s.endpoint_id = e.id and (s.ends_at is null or s.ends_at > now())
where e.id = any ($1::int[]) and e.status = 'ACTIVE'
order by e.id, s.created_at desc, s.ends_at desc nulls first;

-- Records the results of attempts. (server/src/webhooks/results.ts)
prepare "record-webhook-attempts" as
with result as materialized (
  select * from unnest((select $1::int[]), (select $2::int[]), (select $3::bigint[]), (select $4::text[]), (select $5::xid8[]), (select $6::int[]), (select $7::timestamptz[]), (select $8::int[]), (select $9::bool[]), (select $10::bigint[]), (select $11::int[]), (select $12::int[]), (select $13::text[]), (select $14::text[])) as r (endpoint_id, account_id, position, subject_id, generation, attempts, attempted_at, duration_ms, is_accepted, after_ms, pause_ms, status, error, response) order by endpoint_id, position
), held as materialized (
  select r.* from result r, lateral (
    select from webhook_deliveries d
    where d.endpoint_id = r.endpoint_id and d.position = r.position and d.generation = r.generation and d.attempts = r.attempts
    for update
  ) as d
), done as (
  delete from webhook_deliveries d using held h where d.endpoint_id = h.endpoint_id and d.position = h.position and h.is_accepted
), postponed as (
  update webhook_deliveries d set attempts = h.attempts + 1, attempted_at = h.attempted_at,
    due_at = now() + h.after_ms * interval '1 millisecond'
  from held h where d.endpoint_id = h.endpoint_id and d.position = h.position and not h.is_accepted
), attempted as materialized (
  select endpoint_id, bool_or(is_accepted) as has_success, count(*) filter (where not is_accepted) as failed, min(attempted_at) as since,
    max(pause_ms) as pause_ms
  from held group by endpoint_id order by endpoint_id
), endpoint as materialized (
  select t.endpoint_id, t.has_success, t.pause_ms,
    case when t.has_success then 0 when e.still_failing then e.failures + t.failed else t.failed end as failures,
    case when e.still_failing then e.failing_since when not t.has_success then t.since end as failing_since,
    e.status = 'ACTIVE' and e.still_failing and e.failing_since < now() - interval '5 days' as is_disabled
  from attempted t, lateral (
    select status, failures, failing_since,
      not t.has_success and coalesce(last_failed_at > now() - interval '2 days', false) as still_failing
    from webhook_endpoints e
    where e.id = t.endpoint_id and (not t.has_success or e.failing_since is not null)
    for no key update
  ) as e
), updated as (
  update webhook_endpoints e set failures = c.failures, failing_since = c.failing_since,
    last_failed_at = case when not c.has_success then now() end,
    paused_until = case when not c.has_success then now() + greatest(c.pause_ms * interval '1 millisecond', case
      when c.failures >= 5
      then least(2 ^ least(c.failures - 5, 10), 30) * interval '1 second'
      end) end,
    status = case when c.is_disabled then 'DISABLED' else e.status end,
    disabled_at = case when c.is_disabled then now() else e.disabled_at end,
    disabled_because = case when c.is_disabled then 'FAILING' else e.disabled_because end,
    disabled_position = case when c.is_disabled then coalesce((select h.last_position from log_heads h where h.account_id = e.account_id), 0) else e.disabled_position end
  from endpoint c where e.id = c.endpoint_id
  returning e.id, e.account_id, e.url, e.failing_since, e.disabled_at, c.is_disabled
), disabled as (
  select * from updated where is_disabled
), disabled_logged as (
  insert into log_pages (account_id, event_count, events)
  select account_id, 1, json_build_array(json_build_array('webhook.disabled', disabled_at, null, null, null, null, null, null, json_build_object('endpointId', id, 'url', split_part(url, '?', 1), 'failingSince', to_char(failing_since at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))) from disabled
), history as (
  -- Skips endpoints removed meanwhile. A repeated write of the same attempt changes nothing.
  insert into webhook_attempts (endpoint_id, account_id, position, subject_id, attempt, attempted_at, duration_ms, status, error, response)
  select endpoint_id, account_id, position, subject_id, attempts + 1, attempted_at, duration_ms, status, error, response from result
  where endpoint_id in (select id from webhook_endpoints where id = any ($1::int[]))
  on conflict do nothing
)
select id as "endpointId", account_id as "accountId" from disabled;
