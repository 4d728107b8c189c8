-- What the service's role cannot do by itself, since it owns nothing (docs/decisions/0019-database-role.md). These functions run with the
-- privileges of the owner. Their search path is that of the migration: the schema, and temporary tables last.

-- Creates the missing partitions of this month and the next three, and those of every month that has messages: a table that a newer version adds
-- needs partitions for older messages, too. If two sessions do this at once, the second waits and finds nothing to do.
create function create_missing_partitions() returns void language plpgsql security definer set search_path from current as $$
declare
  missing record;
begin
  if not exists (select from missing_partitions()) then return; end if;
  -- Any number that no other advisory lock uses: "hrlp" in ASCII.
  perform pg_advisory_xact_lock(1752329328);
  -- Attaching waits only for statements that change the table itself, not for reads and writes.
  perform set_config('lock_timeout', '2s', true);
  for missing in select * from missing_partitions() loop
    -- A partition is created first and then attached, which does not block writers. The fill factor leaves room on a page for new versions of
    -- its rows, so that updates touch no index. One statement may update all messages of a page.
    execute format('create table %I (like %I including all) with (fillfactor = %s)', missing.name, missing.parent,
      case missing.parent when 'messages' then 45 when 'sms_fallbacks' then 70 else 100 end);
    execute format('grant %s on %I to herald_service', missing.privileges, missing.name);
    execute format('alter table %I attach partition %I for values from (%L) to (%L)', missing.parent, missing.name, missing.first, missing.next);
  end loop;
end $$;

-- The privileges are those that the service's role has on the whole table.
create function missing_partitions() returns table (parent name, name text, first uuid, next uuid, privileges text) language sql as $$
  select parent.relname, named.name, uuid_v7_from(month at time zone 'UTC'), uuid_v7_from((month + interval '1 month') at time zone 'UTC'),
    (select string_agg(privilege_type, ', ') from aclexplode(parent.relacl) where grantee = 'herald_service'::regrole)
  from pg_class as parent, (
    select generate_series(date_trunc('month', now() at time zone 'UTC'), date_trunc('month', now() at time zone 'UTC') + interval '3 months', interval '1 month')
    union
    select to_timestamp(right(tablename, 7), 'YYYY_MM')::timestamp from pg_tables
    where schemaname = current_schema() and tablename ~ '^messages_\d{4}_\d{2}$'
  ) as months (month),
    lateral (select format('%s_%s', parent.relname, to_char(month, 'YYYY_MM')) as name) as named
  where parent.oid = any (array['messages', 'message_events', 'sms_fallbacks', 'recipient_actions']::regclass[])
    -- Not to_regclass(), which would return the result from before the wait for the lock.
    and not exists (select from pg_tables where schemaname = current_schema() and tablename = named.name)
  order by 2
$$;

-- Drops the tables of a month, all or none, in one session at a time. `month` is such as 2026_08, and must have been over for 30 days.
-- `gone`: another session has dropped the month. `in-use`: another session is dropping it.
create function drop_month(month text) returns text language plpgsql security definer set search_path from current as $$
declare
  tables text;
begin
  if month !~ '^\d{4}_\d{2}$' or to_timestamp(month, 'YYYY_MM') + interval '1 month 30 days' > now() then
    raise exception using errcode = 'invalid_parameter_value', message = format('%L is not a month that has been over for 30 days', month);
  end if;
  -- Any number that no other advisory lock uses: "hrlm" in ASCII.
  if not pg_try_advisory_xact_lock(1752329325) then return 'in-use'; end if;
  select string_agg(format('%I', c.relname), ', ') into tables
  from pg_class p join pg_inherits i on i.inhparent = p.oid join pg_class c on c.oid = i.inhrelid
  where p.oid = any (array['messages', 'message_events', 'sms_fallbacks', 'recipient_actions']::regclass[])
    and c.relname = format('%s_%s', p.relname, month);
  if tables is null then return 'gone'; end if;
  -- Short, since every statement on these tables waits behind the drop while it waits for its locks.
  perform set_config('lock_timeout', '200ms', true);
  execute format('drop table %s', tables);
  return 'dropped';
end $$;

-- Only the owner of a table may analyze it. A table that is being analyzed or vacuumed already is skipped.
create function analyze_table(table_name text) returns void language plpgsql security definer set search_path from current as $$
begin
  execute format('analyze (skip_locked) %I.%I', current_schema(), table_name);
end $$;

-- Row-level security, a second line of defence: in a transaction for one account, the service's role finds and writes only rows of that account,
-- also by a statement that forgets to say which. Transactions of workers serve all accounts, and set none. The tables that every message writes
-- to several times have none: there it costs too much (docs/decisions/0019-database-role.md).
do $$ declare
  name text;
  account constant text := $setting$nullif(current_setting('herald.account', true), '')::integer$setting$;
begin
  foreach name in array '{account_usage, account_usage_months, agent_assignments, audit_log, auto_replies, auto_reply_turns, campaign_references,
    campaigns, contents, group_members, groups, idempotency_keys, integration_keys, log_heads, log_pages, opt_outs, removed_members, report_totals,
    short_links, sms_contacts, template_references, template_versions, templates, webhook_attempts, webhook_deliveries, webhook_endpoints}'::text[]
  loop
    execute format('alter table %I enable row level security', name);
    -- Evaluated for each row, since an InitPlan for each use of a table costs more. Entries of the audit log may belong to no account.
    execute format('create policy one_account on %I using (coalesce(account_id = %s, %s))', name, account,
      case name when 'audit_log' then account || ' is null' else 'true' end);
  end loop;
end $$;
