-- Campaigns: one content for all members of some groups.

create table campaigns (
  id uuid primary key,
  account_id integer not null references accounts,
  agent_id text not null,
  name text not null check (char_length(name) between 1 and 200),
  client_reference_id text check (char_length(client_reference_id) <= 255),
  -- Empty if the campaign is a retry of another one, for the recipients whose messages failed.
  group_numbers integer[] not null,
  -- The generation of each group when the campaign started.
  group_generations integer[],
  -- The campaign that this one retries. The choice to include messages that a cancellation withdrew is stored too, so that every node creates the
  -- same messages, also after a crash.
  retry_of uuid,
  retry_includes_cancelled boolean not null default false,
  basic boolean not null,
  -- The content at acceptance.
  content_id bigint not null,
  -- The SMS fallback of all its messages.
  fallback json,
  status text not null default 'SCHEDULED' check (status in ('SCHEDULED', 'RUNNING', 'PAUSED', 'COMPLETED', 'CANCELLED')),
  created_at timestamptz(3) not null default now(),
  scheduled_at timestamptz(3) not null,
  -- Null: the default lifetime of messages, from the start of the campaign.
  expires_at timestamptz(3),
  started_at timestamptz(3),
  completed_at timestamptz(3),
  cancelled_at timestamptz(3),
  -- The fan-out creates messages in the order of the numbers (in a retry: of the failed messages), and the cursor is the last one. It moves in the
  -- transaction that creates the messages, so no recipient is left out and none gets two.
  fan_out_cursor text collate "C" not null default '',
  fan_out_completed_at timestamptz(3),
  recipients integer not null default 0,
  -- When all waiting messages of a cancelled campaign were withdrawn.
  withdrawn_at timestamptz(3),
  -- Bytes for messages that are still to be created. They count towards the quota from acceptance until the campaign is cancelled.
  reserved_bytes bigint not null default 0 check (reserved_bytes >= 0),
  constraint campaigns_started check ((started_at is null) = (status = 'SCHEDULED') or status = 'CANCELLED'),
  constraint campaigns_completed check ((completed_at is not null) = (status = 'COMPLETED')),
  constraint campaigns_cancelled check ((cancelled_at is not null) = (status = 'CANCELLED')),
  constraint campaigns_retry_choice check (retry_of is not null or not retry_includes_cancelled)
);
create index on campaigns (account_id, created_at, id);
create index on campaigns (account_id, client_reference_id, created_at, id) where client_reference_id is not null;
-- A campaign can be retried once. To try again, retry the retry.
create unique index campaigns_retry on campaigns (retry_of);
create index campaigns_due on campaigns (scheduled_at) where status = 'SCHEDULED';
create index campaigns_running on campaigns (id) where status = 'RUNNING';
create index campaigns_withdrawing on campaigns (id) where status = 'CANCELLED' and withdrawn_at is null;

-- The templates that buttons of a campaign's content send. Rows are deleted when the campaign is over. As with template_references, both deleting
-- a target and referring to it lock the target's row, so the later of two concurrent statements fails.
create table campaign_references (
  account_id integer not null,
  campaign_id uuid not null,
  target_id bigint not null,
  primary key (campaign_id, target_id),
  constraint campaign_references_target foreign key (account_id, target_id) references templates (account_id, id) on delete no action
);
create index on campaign_references (account_id, target_id);

-- Test numbers that have their copy of a campaign's SMS: they get one, however many messages fall back.
create table campaign_copies (
  campaign_id uuid not null,
  phone text not null,
  primary key (campaign_id, phone)
);
