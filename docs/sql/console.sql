-- The hot statements of console, as PostgreSQL gets them. "npm run generate" writes this page from server/scripts/hot-statements.ts.
-- Tables of a month have the name that they have in July 2026. To try one in psql: paste it, then run
--   set plan_cache_mode = force_generic_plan; explain execute "name" (null, …);

-- Finds running campaigns, for streams. (server/src/campaigns/campaigns.ts)
prepare "find-running" as
select id as "campaignId", account_id as "accountId" from (
  select id, account_id, row_number() over (partition by account_id order by id desc) as place
  from campaigns where status = 'RUNNING' and account_id = any ((select $1::int[])::int[])
) as running
where place <= 20;

-- Reads campaigns with their counts, for streams. (server/src/campaigns/campaigns.ts)
prepare "read-campaigns" as
select c.id as "campaignId", c.client_reference_id as "clientReferenceId", c.name, c.agent_id as "agentId", c.group_numbers as "segmentIds",
  c.retry_of as "retryOf", (select id from campaigns where retry_of = c.id) as "retriedBy", c.status, c.basic, c.routing,
  c.created_at as "createdAt", c.scheduled_at as "scheduledAt", c.started_at as "startedAt",
  c.completed_at as "completedAt", c.cancelled_at as "cancelledAt", c.expires_at as "expiresAt",
  c.delivery_window as "deliveryWindow", c.recipients, counted.*
from campaigns c, lateral (
  select coalesce(sum(accepted - claimed), 0)::bigint as "ACCEPTED", coalesce(sum(claimed - sent - unsent), 0)::bigint as "SENDING", coalesce(sum(sent - delivered - (failed + expired - unsent)), 0)::bigint as "SENT", coalesce(sum(delivered - read), 0)::bigint as "DELIVERED", coalesce(sum(read), 0)::bigint as "READ", coalesce(sum(failed), 0)::bigint as "FAILED", coalesce(sum(expired), 0)::bigint as "EXPIRED"
  from (select hour, accepted, sent, delivered, read, failed, expired, clicked, replied, opted_out, sms_sent, sms_delivered, sms_failed, sms_skipped, unsent, claimed from report_totals n where n.account_id = c.account_id and n.campaign_id = c.id union all select hour, accepted, sent, delivered, read, failed, expired, clicked, replied, opted_out, sms_sent, sms_delivered, sms_failed, sms_skipped, unsent, claimed from report_deltas n where n.account_id = c.account_id and n.campaign_id = c.id) as counters
) as counted where c.id = any ($1::uuid[]) order by c.id;

-- Reads what the sessions of streams may do. (server/src/people/sessions.ts)
prepare "find-session-rights" as
select s.id, p.is_operator as "isOperator", (
  select coalesce(json_agg(json_build_object('accountId', r.account_id, 'role', r.role) order by r.account_id), '[]')
  from people_roles r where r.person_id = p.id
) as roles from sessions s join people p on p.id = s.person_id where s.last_used_at > now() - interval '12 hours' and s.created_at > now() - interval '7 days' and p.disabled_at is null and s.id = any ($1::uuid[]);

-- Reads what the tokens of streams may do. (server/src/people/tokens.ts)
prepare "find-token-rights" as
select id as "tokenId", name, role, account_ids as "accountIds", expires_at as "expiresAt", created_at as "createdAt",
  last_used_at as "lastUsedAt", revoked_at as "revokedAt" from admin_tokens where id = any ($1::int[]) and revoked_at is null and expires_at > now();

-- Writes the status of this process. (server/src/health/node-status.ts)
prepare "write-node-status" as
with gone as (
  select node_id from node_status where seen_at < now() - interval '15 minutes' and node_id <> $1 for update skip locked
), deleted as (
  delete from node_status where node_id = any (array(select node_id from gone))
)
insert into node_status (node_id, host, pid, roles, version, started_at, seen_at, figures)
values ($1, $2, $3, $4, $5, $6, clock_timestamp(), $7)
on conflict (node_id) do update set seen_at = excluded.seen_at, figures = excluded.figures
returning clock_timestamp() as now, (select connected from count_standbys()) as standbys;

-- Reads the status of all processes. (server/src/health/node-status.ts)
prepare "read-nodes" as
select node_id as "nodeId", host, pid, roles, version, started_at as "startedAt", seen_at as "seenAt", figures
from node_status where seen_at >= now() - interval '15 minutes' order by host, started_at, node_id;

-- Reads which standbys the database has. (server/src/health/standbys.ts)
prepare "read-standbys" as
select connected, synchronous,
  case when current_setting('synchronous_commit') in ('local', 'off') then '' else current_setting('synchronous_standby_names') end as names,
(select count(*)::integer from pg_replication_slots where slot_type = 'physical' and not temporary and not active) as "inactiveSlots"
from count_standbys();

-- Reads how many messages are due, and since when. (server/src/health/backlog.ts)
prepare "read-queue" as
with recursive lane as (
  (select account_id, agent_id, priority, campaign_id, due_at from queue order by account_id, agent_id, priority, campaign_id, due_at limit 1)
  union all
  select next.*
  from lane, lateral (
    select account_id, agent_id, priority, campaign_id, due_at from queue q
    where (q.account_id, q.agent_id, q.priority, q.campaign_id) > (lane.account_id, lane.agent_id, lane.priority, lane.campaign_id)
    order by account_id, agent_id, priority, campaign_id, due_at limit 1
  ) as next
), open as materialized (
  select l.* from lane l
  join agent_assignments s on s.account_id = l.account_id and s.agent_id = l.agent_id
  left join campaigns c on c.id = l.campaign_id and l.campaign_id <> '00000000-0000-0000-0000-000000000000'
  where l.due_at <= now() and s.active and l.account_id <> all (array(select id from accounts where suspended_at is not null)) and (l.campaign_id = '00000000-0000-0000-0000-000000000000' or c.status = 'RUNNING')
)
select due, oldest as "oldestDueAt", (extract(epoch from now() - oldest) * 1000)::bigint as "oldestMs"
from (
  select (select count(*)::int from (
      select from open l, lateral (
        select * from (
          select message_id, account_id, campaign_id, task, due_at, expires_at, claimed from queue q
          where q.account_id = l.account_id and q.agent_id = l.agent_id and q.priority = l.priority
            and q.campaign_id = l.campaign_id and q.due_at <= now() and q.leased_until <= now()
          order by q.due_at limit 1000
        ) as first
        where task = 'revoke' or expires_at > now()) as entry limit 1000
    ) as counted) as due,
  (select min(entry.due_at) from open l, lateral (
      select * from (
        select message_id, account_id, campaign_id, task, due_at, expires_at, claimed from queue q
        where q.account_id = l.account_id and q.agent_id = l.agent_id and q.priority = l.priority
          and q.campaign_id = l.campaign_id and q.due_at <= now() and q.leased_until <= now()
        order by q.due_at limit 1
      ) as first
      where task = 'revoke' or expires_at > now()) as entry) as oldest
) as found;

-- Reads how many SMS are due, and since when. (server/src/health/backlog.ts)
prepare "read-sms-queue" as
with recursive lane as (
  (select account_id, priority, campaign_id, due_at from sms_queue order by account_id, priority, campaign_id, due_at limit 1)
  union all
  select next.*
  from lane, lateral (
    select account_id, priority, campaign_id, due_at from sms_queue q
    where (q.account_id, q.priority, q.campaign_id) > (lane.account_id, lane.priority, lane.campaign_id)
    order by account_id, priority, campaign_id, due_at limit 1
  ) as next
), open as materialized (
  select l.* from lane l left join campaigns c on c.id = l.campaign_id and c.status = 'PAUSED'
  where l.due_at <= now() and c.id is null and l.account_id <> all (array(select id from accounts where suspended_at is not null))
)
select due, oldest as "oldestDueAt", (extract(epoch from now() - oldest) * 1000)::bigint as "oldestMs"
from (
  select (select count(*)::int from (
      select from open l, lateral (
        select message_id, copy, account_id, recipient, priority, due_at, expires_at from sms_queue q
        where q.account_id = l.account_id and q.priority = l.priority and q.campaign_id = l.campaign_id and q.due_at <= now()
        order by q.due_at limit 1000) as entry limit 1000
    ) as counted) as due,
  (select min(entry.due_at) from open l, lateral (
      select message_id, copy, account_id, recipient, priority, due_at, expires_at from sms_queue q
      where q.account_id = l.account_id and q.priority = l.priority and q.campaign_id = l.campaign_id and q.due_at <= now()
      order by q.due_at limit 1) as entry) as oldest
) as found;

-- Reads how many deliveries to endpoints are due. (server/src/health/backlog.ts)
prepare "read-webhook-backlog" as
with recursive first_due as (
  (select endpoint_id, due_at from webhook_deliveries where due_at is not null order by endpoint_id, due_at, position limit 1)
  union all
  select next.*
  from first_due, lateral (
    select endpoint_id, due_at from webhook_deliveries d where d.due_at is not null and d.endpoint_id > first_due.endpoint_id
    order by endpoint_id, due_at, position limit 1
  ) as next
), open as materialized (
  select e.id, e.failing_since from first_due f, lateral (
    select id, failing_since from webhook_endpoints e where e.id = f.endpoint_id and e.status = 'ACTIVE'
  ) as e
)
select backlog.*, (select count(*)::int from open where failing_since is not null) as failing
from (
  select due, oldest as "oldestDueAt", (extract(epoch from now() - oldest) * 1000)::bigint as "oldestMs"
  from (
    select (select count(*)::int from (
        select from open l, lateral (select due_at from webhook_deliveries d where d.endpoint_id = l.id and d.due_at <= now() order by d.due_at limit 1000) as entry limit 1000
      ) as counted) as due,
    (select min(entry.due_at) from open l, lateral (select due_at from webhook_deliveries d where d.endpoint_id = l.id and d.due_at <= now() order by d.due_at limit 1) as entry) as oldest
  ) as found) as backlog;
