-- Messages, and the pending work for them. `messages` has each message and its status, `queue` the calls to a carrier that are still to be made,
-- `expiries` the expiries that are still to come. A message leaves the last two tables as soon as it needs no such work, so both stay as small as
-- the work in progress, however many messages there have been.
--
-- Lock order: a statement that locks rows of several tables locks queue, then messages, then expiries, and the rows of each in the order of
-- their ids. Two statements may wait for each other's rows, but never in a circle. A statement that skips locked rows may lock in any order.
--
-- No foreign keys: each check would be a query and a lock for every row, and the rows that they would point to are never deleted.
-- No check constraints: PostgreSQL parses them for every statement, which was 22 % of a statement for one message. The tests check the same
-- conditions in every database that they leave behind (test/support/audit.ts).

-- Version 7: ids begin with the time, so they grow, and a partition is a month. The time is the database's, whichever node asks, rounded like
-- the columns with times: the order of ids is the order of `accepted_at`.
create function uuid_v7() returns uuid language sql volatile parallel safe as $$
  select encode(
    set_bit(set_bit(
      overlay(uuid_send(gen_random_uuid()) placing substring(int8send(round(extract(epoch from now()) * 1000)::bigint) from 3) from 1 for 6),
      52, 1), 53, 1),
    'hex')::uuid
$$;

-- The smallest id of a time. A month's partition begins with it, and a day's messages are a range of ids.
create function uuid_v7_from(at timestamptz) returns uuid language sql immutable parallel safe as $$
  select (lpad(to_hex(round(extract(epoch from at) * 1000)::bigint), 12, '0') || '70008000000000000000')::uuid
$$;

create table messages (
  id uuid primary key,
  account_id integer not null,
  agent_id text not null,
  recipient text not null,
  -- SENDING is not stored: the API shows it for an ACCEPTED message whose queue entry has been claimed.
  status text not null default 'ACCEPTED',
  basic boolean not null,
  test boolean not null,
  client_reference_id text,
  -- The content that the template had when the message was accepted; or else inline content, which belongs to the message.
  content_id bigint,
  content json,
  accepted_at timestamptz(3) not null default now(),
  expires_at timestamptz(3) not null,
  sent_at timestamptz(3),
  delivered_at timestamptz(3),
  read_at timestamptz(3),
  failed_at timestamptz(3),
  failure_reason text,
  failure_description text,
  -- The purpose of the message, for the carrier: TRANSACTION, PROMOTION or SERVICEREQUEST.
  traffic text not null default 'TRANSACTION',
  -- The message whose recipient asked for this one, by a tap or a keyword.
  triggered_by uuid,
  campaign_id uuid
) partition by range (id);
-- Finds the message that a recipient replies to: the last one that the agent sent to them.
create index on messages (recipient, id);
create index on messages (campaign_id, id) where campaign_id is not null;
-- The list of a campaign's recipients, in the order of the numbers and by day. It reads the next few rows of each day, never the whole
-- campaign, and reads them from the index alone: 450 pages instead of 2,240 for ten days with 200 rows each. None of the columns changes, so
-- an update of a message does not touch the index.
create index messages_by_recipient on messages (campaign_id, utc_day(accepted_at), (recipient collate "C"), id)
  include (account_id, accepted_at, recipient) where campaign_id is not null;
-- The messages of an account, for its list. Each message is in one of these three; the first one also finds the messages of an export.
create index messages_transactional on messages (account_id, id) where campaign_id is null and not test;
create index messages_promotional on messages (account_id, id) where campaign_id is not null;
create index messages_for_test on messages (account_id, id) where test;
create index messages_by_reference on messages (account_id, client_reference_id, id) where client_reference_id is not null;

-- Steps of a message that have no column in `messages`, such as attempts, and the steps that a campaign's reports list. A receipt that comes
-- twice has the same time, so it is one row. `campaign_id` and `recipient` are set only if a report lists the step.
create table message_events (
  message_id uuid not null,
  account_id integer not null,
  kind text not null,
  occurred_at timestamptz(3) not null,
  recorded_at timestamptz(3) not null default now(),
  reason text,
  detail text,
  campaign_id uuid,
  recipient text collate "C",
  primary key (message_id, kind, occurred_at)
) partition by range (message_id);
create index message_events_by_time on message_events (campaign_id, kind, occurred_at, message_id) where campaign_id is not null;
create index message_events_by_recipient on message_events (campaign_id, kind, utc_day(occurred_at), recipient, message_id)
  include (account_id, occurred_at, reason) where campaign_id is not null;
-- A message counts as clicked once, however often its recipient clicks: only the first time is a row.
create unique index message_events_firsts on message_events (message_id, kind) where kind in ('clicked', 'replied', 'opted-out');

-- A lane has the entries of one account, agent, priority and campaign (all zeros: none), in the order in which they are due. A worker that
-- claims an entry stores a lease: a token that its result must name, and the time until which no other worker claims the entry. After a
-- crash the lease ends, another worker claims the entry, and a late result of the first worker no longer matches the token. No index has a
-- column that a claim changes, so a claim updates its entry in place.
create table queue (
  message_id uuid primary key,
  account_id integer not null,
  agent_id text not null,
  task text not null,
  priority smallint not null,
  campaign_id uuid not null default '00000000-0000-0000-0000-000000000000',
  due_at timestamptz not null,
  expires_at timestamptz(3) not null,
  -- Calls to the carrier that were made, or may have been.
  attempts integer not null default 0,
  lease uuid,
  leased_until timestamptz not null default '-infinity',
  -- Whether it was ever claimed.
  claimed boolean not null default false,
  -- When it was first held back because the recipient opted out or was blocked, and after how many calls: after a further call, it is held back anew.
  held_back_at timestamptz,
  held_back_attempts integer
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index queue_lanes on queue (account_id, agent_id, priority, campaign_id, due_at);

-- Messages with an expiry of their own, until it is due.
create table expiries (
  message_id uuid primary key,
  expires_at timestamptz(3) not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index on expiries (expires_at);

-- All other messages live for 48 hours, so they expire in the order of their ids. This is the last id that the walk has read.
create table expiry_walk (
  reached uuid not null
);
insert into expiry_walk select uuid_v7_from(now() - interval '48 hours');

-- The requests that were accepted under an Idempotency-Key. A row is committed with the message or campaign that the request created. Old keys
-- are found by a walk through the table (delivery/retention.ts), so no index on a time slows down the insert.
create table idempotency_keys (
  account_id integer not null,
  -- messages or campaigns.
  endpoint text not null,
  key text collate "C" not null,
  request_hash bytea not null,
  -- The id of the message or campaign.
  resource_id uuid not null,
  created_at timestamptz(3) not null default now(),
  primary key (account_id, endpoint, key)
);
