-- What happens when RCS does not reach someone (SMS), and when someone answers.

-- `traffic`: what the network is told that it is for. `triggered_by`: the message whose recipient asked for this one, by tapping or writing.
alter table messages
  add column traffic text not null default 'TRANSACTION' check (traffic in ('TRANSACTION', 'PROMOTION', 'SERVICEREQUEST')),
  add column triggered_by uuid;
-- Which message somebody answers: the last one that this agent sent to them.
create index on messages (recipient, id);

-- The SMS that a message falls back to: at most one for each. WAITING until the RCS message has failed or expired; where that was
-- delivered, it stays WAITING for ever, and is shown as NOT_NEEDED: nothing is written for the many that get through.
-- Locks: after those of queue, messages and expiries; sms_queue before sms_fallbacks.
create table sms_fallbacks (
  message_id uuid primary key,
  account_id integer not null,
  status text not null default 'WAITING' check (status in ('WAITING', 'SCHEDULED', 'SENT', 'DELIVERED', 'FAILED', 'NOT_NEEDED', 'SKIPPED')),
  -- Why it is sent, or is not.
  reason text,
  -- Sender, text and rules, as the caller gave them.
  plan json not null,
  -- How many SMS the text takes.
  segments smallint not null check (segments between 1 and 255),
  delay_seconds integer not null,
  not_before timestamptz(3),
  -- Whether it is sent after an expiry, too; and when.
  after_expiry boolean not null,
  after_expiry_delay_seconds integer,
  after_expiry_not_before timestamptz(3),
  due_at timestamptz(3),
  sent_at timestamptz(3),
  delivered_at timestamptz(3),
  failed_at timestamptz(3),
  -- The network's own words.
  detail text,
  constraint sms_fallbacks_reason check ((reason is null) = (status = 'WAITING')),
  constraint sms_fallbacks_due check (status in ('WAITING', 'SKIPPED', 'NOT_NEEDED') or due_at is not null),
  constraint sms_fallbacks_sent check (status not in ('SENT', 'DELIVERED') or sent_at is not null),
  constraint sms_fallbacks_delivered check ((delivered_at is not null) = (status = 'DELIVERED')),
  constraint sms_fallbacks_failed check ((failed_at is not null) = (status = 'FAILED'))
) partition by range (message_id);

-- SMS that are to be sent: to the recipient (copy 0), and to test numbers (1 to 5). An SMS is never submitted twice: from
-- `submitted_under` on, until a result is written, nobody knows whether the network has it, and if none comes, nobody tries again.
create table sms_queue (
  message_id uuid not null,
  copy smallint not null,
  account_id integer not null,
  recipient text not null,
  priority smallint not null,
  -- What the caller asked for. `due_at` is later where the outcome of the revocation is awaited; and it is the lease.
  planned_at timestamptz(3) not null,
  awaits_revocation boolean not null default false,
  due_at timestamptz not null,
  expires_at timestamptz(3) not null,
  segments smallint not null,
  -- How many of them the network has.
  segments_sent smallint not null default 0,
  -- The lease under which it is being submitted.
  submitted_under uuid,
  lease uuid,
  attempts integer not null default 0,
  primary key (message_id, copy)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index sms_queue_lanes on sms_queue (account_id, priority, due_at);
-- Whether somebody has an SMS under way: only of those, or all that wait for one number would be looked through for each.
create index on sms_queue (account_id, recipient) where lease is not null;

-- Parts that the network has, for as long as receipts of them matter.
create table sms_parts (
  message_id uuid not null,
  copy smallint not null,
  part smallint not null,
  carrier text not null,
  -- Empty where the network gave none.
  carrier_message_id text not null,
  recipient text not null,
  state text not null default 'sent' check (state in ('sent', 'delivered', 'failed')),
  detail text,
  occurred_at timestamptz(3),
  submitted_at timestamptz(3) not null default now(),
  primary key (message_id, copy, part)
);
create index on sms_parts (carrier_message_id) where state = 'sent';
create index on sms_parts (submitted_at);

-- Receipts that were quicker than the answer to their submit, or are of nothing that we know. One row for each reading of the id.
create table sms_receipts (
  carrier text not null,
  carrier_message_id text not null,
  recipient text not null,
  event_id text not null,
  -- The first reading that fits counts.
  reading smallint not null,
  state text not null check (state in ('delivered', 'failed')),
  detail text not null,
  occurred_at timestamptz(3) not null,
  received_at timestamptz(3) not null default now(),
  primary key (event_id, carrier, carrier_message_id)
);
create index on sms_receipts (carrier_message_id);
create index on sms_receipts (received_at);

-- Who had an SMS of which account and agent, by which sender, and when the last one was: for the quarantine, and to know whom a reply is for.
create table sms_contacts (
  account_id integer not null,
  recipient text not null,
  sender text not null,
  agent_id text not null,
  message_id uuid not null,
  -- To a test number: it can be answered, and counts for no quarantine.
  is_copy boolean not null,
  sent_at timestamptz(3) not null,
  primary key (account_id, recipient, sender, agent_id, is_copy)
);
create index on sms_contacts (recipient, sender, sent_at);
create index on sms_contacts (sent_at);
alter table accounts add column quarantine_hours integer not null default 24 check (quarantine_hours between 0 and 8760);

-- The people an account writes to, in groups by their numbers. What is known of a person stands with each of their groups: somebody is
-- inactive, or in the control group, where one of the account's groups says so, and holds the consents that any of them has.
create table groups (
  account_id integer not null references accounts,
  number integer not null check (number > 0),
  name text check (char_length(name) between 1 and 200),
  -- As its last import left it: counting a million takes half a second.
  members integer not null default 0,
  -- Grows with each import, and is seen with all of it: whoever has looked at it knows which members were there.
  generation integer not null default 0,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (account_id, number)
);
-- Without foreign keys, which would double the time of an import: groups are never deleted.
create table group_members (
  account_id integer not null,
  group_number integer not null,
  phone text collate "C" not null check (length(phone) between 6 and 16 and phone ~ '^\+[0-9]*$'),
  consents integer[] not null default '{}',
  control_group boolean not null default false,
  active boolean not null default true,
  -- Further columns of the file, as an object of texts.
  attributes json,
  -- That of the import that added them.
  generation integer not null default 0,
  primary key (account_id, group_number, phone)
);

-- Who wants no more of what an agent sends for an account, by RCS and by SMS. One who is back in keeps the row: of a STOP and a START that
-- arrive in the wrong order, the later one counts.
create table opt_outs (
  account_id integer not null,
  agent_id text not null,
  phone text not null,
  opted_out boolean not null,
  source text not null check (source in ('word', 'unsubscribe', 'operator')),
  changed_at timestamptz(3) not null,
  primary key (account_id, agent_id, phone),
  foreign key (account_id, agent_id) references agent_assignments
);

-- What recipients did.
create table recipient_actions (
  id uuid primary key default uuid_v7(),
  account_id integer not null,
  agent_id text not null,
  recipient text not null,
  -- Unknown where somebody writes to an agent that has not sent them anything lately.
  message_id uuid,
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

-- What people did is taken up from here, once; until then it has a time to be taken up at.
alter table carrier_events add column take_up_at timestamptz;
create index on carrier_events (take_up_at) where take_up_at is not null;

-- Keywords are kept as they are compared: in lower case, without accents.
create unique index auto_replies_keyword on auto_replies (account_id, agent_id, keyword);
-- When a number was last answered by itself: at most once a minute, so that two robots never talk for ever.
create table auto_reply_turns (
  account_id integer not null,
  phone text not null,
  replied_at timestamptz not null,
  primary key (account_id, phone)
);
create index on auto_reply_turns (replied_at);

create table short_links (
  code text collate "C" primary key,
  account_id integer not null,
  message_id uuid not null,
  -- Of an SMS to a test number, whose clicks nobody counts, not 0.
  copy smallint not null,
  agent_id text not null,
  recipient text not null,
  url text not null check (char_length(url) <= 2048),
  created_at timestamptz(3) not null default now(),
  -- By a person, first.
  clicked_at timestamptz(3),
  -- By robots, such as those that make previews.
  previews integer not null default 0
);
create index on short_links (created_at);
