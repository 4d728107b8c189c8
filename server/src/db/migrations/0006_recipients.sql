-- Recipients: their groups, their opt-outs and their actions.

-- A recipient's flags are stored with each group that has the recipient. A recipient is inactive, or in the control group, if any group of the
-- account says so, and has all consents that any group lists.
--
-- Every change of a group draws a generation under the lock of the group (groups/groups.ts). A campaign records the generations of its groups
-- when it starts, so it knows the members at that moment. Generations only grow, even if a group is removed and created again.
create sequence group_generations as integer;

create table groups (
  account_id integer not null references accounts,
  number integer not null check (number > 0),
  name text check (char_length(name) between 1 and 200),
  -- Stored, since counting a million members takes half a second.
  members integer not null default 0,
  -- What the members count towards the quota storedBytes (groups/member-bytes.ts).
  bytes bigint not null default 0,
  -- The generation of the last change. Both are committed together, so this number identifies the current members.
  generation integer not null default 0,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (account_id, number)
);

-- No foreign keys: they would double the time of an import. A group is removed with its members.
create table group_members (
  account_id integer not null,
  group_number integer not null,
  phone text collate "C" not null check (length(phone) between 6 and 16 and phone ~ '^\+[0-9]*$'),
  consents integer[] not null default '{}',
  control_group boolean not null default false,
  active boolean not null default true,
  -- An IANA name.
  time_zone text,
  -- Further columns of the imported file, as an object of texts.
  attributes json,
  -- The generation of the change that added the member.
  generation integer not null default 0,
  primary key (account_id, group_number, phone)
);

-- Members who were removed. A campaign that started before the removal still sends to members who were added in its generation or earlier. Every
-- removal is stored, since a campaign may be starting at the same moment; delivery/retention.ts deletes rows that no campaign needs.
create table removed_members (
  account_id integer not null,
  group_number integer not null,
  phone text collate "C" not null,
  generation integer not null,
  removed_generation integer not null,
  removed_at timestamptz not null default now(),
  primary key (account_id, group_number, phone, generation)
);
create index on removed_members (removed_at);

-- Recipients who want no campaigns from an agent of an account, by RCS or SMS; a blocked recipient gets no single messages either. The row stays
-- when the recipient opts in again: if STOP and START arrive in the wrong order, the later one counts. If a phone has a row for one agent and a
-- row for all agents, the later one counts, too.
create table opt_outs (
  account_id integer not null,
  -- Empty: all agents of the account, also agents that are assigned later. So there is no foreign key.
  agent_id text not null,
  phone text not null,
  opted_out boolean not null,
  blocked boolean not null default false check (opted_out or not blocked),
  source text not null check (source in ('word', 'unsubscribe', 'operator', 'api')),
  -- In microseconds: two requests in the same millisecond keep their order.
  changed_at timestamptz not null,
  primary key (account_id, agent_id, phone)
);

-- People whose data was erased. Herald never writes to them again, so a keyed hash of the number stays (erasure/erased.ts).
create table erased_people (
  hash bytea not null check (octet_length(hash) = 32),
  -- 0: all accounts.
  account_id integer not null,
  -- The placeholders that replace the number are derived from this seed, so a second run of an unfinished erasure uses the same ones. The seed is
  -- deleted when the erasure is complete: then nothing connects the hash with the rows of the person.
  seed bytea check (octet_length(seed) = 32),
  erased_at timestamptz(3) not null default now(),
  primary key (hash, account_id)
);

-- What recipients did: taps, clicks, replies, opt-outs.
create table recipient_actions (
  id uuid primary key default uuid_v7(),
  account_id integer not null,
  agent_id text not null,
  recipient text not null,
  -- Null if the recipient writes to an agent that has not sent them anything lately.
  message_id uuid,
  campaign_id uuid,
  kind text not null check (kind in ('clicked', 'tapped', 'wrote', 'shared-location', 'sent-file', 'opted-out', 'opted-in')),
  channel text not null check (channel in ('rcs', 'sms')),
  button_id text,
  text text,
  payload text,
  url text,
  latitude double precision,
  longitude double precision,
  occurred_at timestamptz(3) not null
) partition by range (id);
create index on recipient_actions (message_id);
create index recipient_actions_by_time on recipient_actions (campaign_id, occurred_at, id) where campaign_id is not null;
create index recipient_actions_by_recipient on recipient_actions (campaign_id, utc_day(occurred_at), (recipient collate "C"), id) where campaign_id is not null;
create index recipient_actions_by_kind on recipient_actions (campaign_id, utc_day(occurred_at), (kind collate "C"), id) where campaign_id is not null;

-- Events from carriers that are still to be processed: a receipt may come before the response to its message, and a reply is processed after
-- the response to the carrier. A carrier repeats an event that was not acknowledged, with the same id.
create table carrier_events (
  carrier text not null,
  event_id text not null,
  kind text not null,
  phone text not null,
  occurred_at timestamptz(3) not null,
  received_at timestamptz(3) not null default now(),
  event json not null,
  -- When to process a reply. Null if there is nothing to do, or nothing more.
  process_after timestamptz,
  primary key (carrier, event_id)
);
create index on carrier_events (received_at);
create index on carrier_events (process_after) where process_after is not null;
