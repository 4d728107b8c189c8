-- Quotas by account, and what each account has used of them. A quota that is null is the default of this version (accounts/quotas.ts).
alter table accounts
  add column quota_messages_per_day bigint check (quota_messages_per_day >= 0),
  add column quota_templates bigint check (quota_templates >= 0),
  add column quota_stored_bytes bigint check (quota_stored_bytes >= 0),
  add column quota_exports bigint check (quota_exports >= 0);

-- Bytes for messages that are still to be made, counted from the campaign's acceptance. A cancelled campaign keeps its value, which no longer
-- counts.
alter table campaigns add column reserved_bytes bigint not null default 0 check (reserved_bytes >= 0);

-- Statements that store something for an account add a row here, so that no two of them wait for each other. A fold adds these rows to
-- `account_usage` and deletes them.
create table account_usage_changes (
  account_id integer not null,
  at timestamptz not null default now(),
  -- Messages that count towards the quota of the day.
  messages integer not null,
  -- Bytes that go with the messages of a month when its tables are dropped, and bytes that stay.
  message_bytes bigint not null,
  content_bytes bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index on account_usage_changes (account_id, at);

create table account_usage (
  account_id integer primary key,
  -- The last day (UTC) that has messages, and how many.
  day date not null,
  messages bigint not null,
  stored_bytes bigint not null,
  -- No change before this time is left to fold. A reader starts here, so that it never passes through dead rows of the whole day while a
  -- long transaction keeps vacuum from removing them.
  folded_until timestamptz not null
) with (fillfactor = 50);

create table account_usage_months (
  account_id integer not null,
  month date not null,
  message_bytes bigint not null,
  primary key (account_id, month)
) with (fillfactor = 50);

-- Counts the rows that exist. A node of an older version that still runs does not count what it accepts.
set local enable_seqscan = on; set local enable_hashjoin = on; set local enable_mergejoin = on; set local enable_bitmapscan = on;

insert into account_usage_months (account_id, month, message_bytes)
select m.account_id, date_trunc('month', m.accepted_at, 'UTC')::date,
  sum(2048 + coalesce(octet_length(m.content::text), 0) + coalesce(octet_length(m.client_reference_id), 0) + coalesce(octet_length(f.plan::text), 0))
from messages m left join sms_fallbacks f on f.message_id = m.id
group by 1, 2;

insert into account_usage (account_id, day, messages, stored_bytes, folded_until)
select a.id, utc_day(now()),
  (select count(*) from messages m
   where m.account_id = a.id and m.id >= uuid_v7_from(date_trunc('day', now(), 'UTC')) and m.campaign_id is null and m.traffic = 'TRANSACTION'),
  coalesce((select sum(message_bytes) from account_usage_months m where m.account_id = a.id), 0)
    + coalesce((select sum(octet_length(c.message::text)) from contents c where c.account_id = a.id), 0)
    + coalesce((select sum(2048 + coalesce(octet_length(c.fallback::text), 0)) from campaigns c where c.account_id = a.id and c.retry_of is null), 0),
  now()
from accounts a;
