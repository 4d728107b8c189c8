-- Campaigns: one content to all the people of some groups.

create table campaigns (
  id uuid primary key,
  account_id integer not null references accounts,
  agent_id text not null,
  name text not null check (char_length(name) between 1 and 200),
  client_reference_id text check (char_length(client_reference_id) <= 255),
  -- Empty where it repeats another one for those whose message failed.
  group_numbers integer[] not null,
  -- Of each, when it started.
  group_generations integer[],
  retry_of uuid,
  basic boolean not null,
  -- Of the moment it was accepted; contents never change.
  content_id bigint not null,
  -- As with a message, but for the whole campaign.
  fallback json,
  status text not null default 'SCHEDULED' check (status in ('SCHEDULED', 'RUNNING', 'PAUSED', 'COMPLETED', 'CANCELLED')),
  created_at timestamptz(3) not null default now(),
  scheduled_at timestamptz(3) not null,
  -- Where the caller gave none, its messages live as long as others do, from the start on.
  expires_at timestamptz(3),
  started_at timestamptz(3),
  completed_at timestamptz(3),
  cancelled_at timestamptz(3),
  -- Messages are made in the order of the numbers (or, of a repetition, of the failed messages), and this is the last one that is done:
  -- it moves in the transaction that makes the messages, so that nobody is left out and nobody gets two.
  made_up_to text collate "C" not null default '',
  made_at timestamptz(3),
  recipients integer not null default 0,
  -- Of a cancelled one: nothing of it waits to be sent any more.
  withdrawn_at timestamptz(3),
  constraint campaigns_started check ((started_at is null) = (status = 'SCHEDULED') or status = 'CANCELLED'),
  constraint campaigns_completed check ((completed_at is not null) = (status = 'COMPLETED')),
  constraint campaigns_cancelled check ((cancelled_at is not null) = (status = 'CANCELLED'))
);
create index on campaigns (account_id, id);
-- To repeat it once more, the repetition is repeated.
create unique index campaigns_retry on campaigns (retry_of);
create index campaigns_due on campaigns (scheduled_at) where status = 'SCHEDULED';
create index campaigns_running on campaigns (id) where status = 'RUNNING';
create index campaigns_withdrawing on campaigns (id) where status = 'CANCELLED' and withdrawn_at is null;

alter table messages add column campaign_id uuid;
create index on messages (campaign_id, id) where campaign_id is not null;

-- A lane is of one campaign, or of none: a paused one is passed by, however much of it waits.
alter table queue add column campaign_id uuid not null default '00000000-0000-0000-0000-000000000000';
drop index queue_lanes;
create index queue_lanes on queue (account_id, agent_id, priority, campaign_id, due_at);
alter table sms_queue add column campaign_id uuid not null default '00000000-0000-0000-0000-000000000000';
drop index sms_queue_lanes;
create index sms_queue_lanes on sms_queue (account_id, priority, campaign_id, due_at);

-- How many messages of a campaign have which status. Who moves messages adds what changes by it, in the same transaction; the changes are
-- folded together from time to time. A row for each campaign that all write to would have them wait for each other.
create table campaign_counts (
  campaign_id uuid not null,
  status text not null,
  count bigint not null,
  primary key (campaign_id, status)
);
create table campaign_changes (
  campaign_id uuid not null,
  status text not null,
  change integer not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index on campaign_changes (campaign_id);

-- A test number gets one copy of a campaign's SMS, however many of its messages fall back.
create table campaign_copies (
  campaign_id uuid not null,
  phone text not null,
  primary key (campaign_id, phone)
);
