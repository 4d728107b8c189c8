-- Messages, and what is still to be done about them. Three tables share a message's life: `messages` has what it is and became,
-- `queue` what is to be asked of a network, `expiries` what may still run out. A message leaves the last two as soon as nothing of
-- the kind is left to do, so that both stay as small as the work under way, however much history there is.
--
-- Whoever locks rows of several of them does so in the order queue, messages, expiries, and of each in the order of the ids: two
-- statements that need the same rows wait for each other, but never in a circle. Who skips what is locked may take it in any order.
--
-- None of them has foreign keys: a check is a query and a lock for every row, and what they would point to is never deleted.

-- Version 7: the time in front, so that ids grow and a partition is a month. Of the database's clock, whichever node asks.
create function uuid_v7() returns uuid language sql volatile parallel safe as $$
  select encode(
    set_bit(set_bit(
      overlay(uuid_send(gen_random_uuid()) placing substring(int8send(floor(extract(epoch from now()) * 1000)::bigint) from 3) from 1 for 6),
      52, 1), 53, 1),
    'hex')::uuid
$$;

-- The least id that can be made at a time: where a month's partition begins.
create function uuid_v7_from(at timestamptz) returns uuid language sql immutable parallel safe as $$
  select (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || '70008000000000000000')::uuid
$$;

create table messages (
  id uuid primary key,
  account_id integer not null,
  agent_id text not null,
  recipient text not null check (length(recipient) between 6 and 16 and recipient ~ '^\+[0-9]*$'),
  -- SENDING is not among them: a message is that while it is ACCEPTED and its queue entry has been taken up.
  status text not null default 'ACCEPTED' check (status in ('ACCEPTED', 'SENT', 'DELIVERED', 'READ', 'FAILED', 'EXPIRED')),
  basic boolean not null,
  test boolean not null,
  client_reference_id text check (char_length(client_reference_id) <= 255),
  -- Of a template: the content it had at the time. Inline content belongs to its message and goes with it.
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
  constraint messages_content check (num_nonnulls(content_id, content) = 1),
  constraint messages_sent check (status not in ('SENT', 'DELIVERED', 'READ') or sent_at is not null),
  constraint messages_delivered check ((delivered_at is not null) = (status in ('DELIVERED', 'READ'))),
  constraint messages_read check ((read_at is not null) = (status = 'READ')),
  constraint messages_failed check ((status = 'FAILED') = (num_nonnulls(failed_at, failure_reason, failure_description) = 3)
    and (status = 'FAILED' or num_nonnulls(failed_at, failure_reason, failure_description) = 0)),
  constraint messages_in_order check (sent_at >= accepted_at and delivered_at >= sent_at and read_at >= delivered_at)
) partition by range (id);

-- What a message went through, beside its acceptance, for people who ask why. A receipt that comes again has the same time, and is
-- the same row.
create table message_events (
  message_id uuid not null,
  account_id integer not null,
  kind text not null,
  occurred_at timestamptz(3) not null,
  recorded_at timestamptz(3) not null default now(),
  reason text,
  detail text,
  primary key (message_id, kind, occurred_at)
) partition by range (message_id);

-- A lane is what one account has for one agent at one priority, in the order it is due. `due_at` is also the lease: who takes an entry
-- up puts it off until a time by which it has surely ended, and leaves a token that its result has to name. After a crash the entry is
-- simply due again, and the token of the crashed one fits no more.
create table queue (
  message_id uuid primary key,
  account_id integer not null,
  agent_id text not null,
  task text not null check (task in ('send', 'revoke')),
  priority smallint not null,
  due_at timestamptz not null,
  expires_at timestamptz(3) not null,
  -- Calls to the network that were made, or may have been.
  attempts integer not null default 0,
  lease uuid,
  -- Whether it was ever taken up, be it in vain.
  claimed boolean not null default false
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index queue_lanes on queue (account_id, agent_id, priority, due_at);

create table expiries (
  message_id uuid primary key,
  expires_at timestamptz(3) not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index on expiries (expires_at);

-- When the next turn is free, of a carrier and of an agent, where a rate is set for them. Claiming holds the carrier's row, so that all
-- workers together keep the rate, and no two of them go for the same entries.
create table carrier_paces (
  carrier text primary key,
  free_at timestamptz not null default '-infinity'
);
alter table agents add column free_at timestamptz not null default '-infinity';
-- When an account last had a turn: where there are fewer turns than accounts, the one that waited longest is next.
alter table agent_assignments add column served_at timestamptz not null default '-infinity';

-- Which requests were accepted under which key. The row is written with what it made, or not at all.
create table idempotency_keys (
  account_id integer not null,
  endpoint text not null check (endpoint in ('messages', 'campaigns')),
  -- Not {1,255} in the pattern, which took 80 µs for each.
  key text collate "C" not null check (length(key) between 1 and 255 and key ~ '^[ -~]*$'),
  request_hash bytea not null check (octet_length(request_hash) = 32),
  message_id uuid not null,
  created_at timestamptz(3) not null default now(),
  primary key (account_id, endpoint, key)
);
create index on idempotency_keys (created_at);

create index on carrier_events (received_at);
