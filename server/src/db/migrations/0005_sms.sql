-- SMS: the fallback of messages that RCS does not deliver.

-- The SMS of a message, at most one. It is WAITING until the RCS message has failed or expired. If the RCS message is delivered, the row stays
-- WAITING, and the API shows NOT_NEEDED: the many messages that arrive cost no further write.
-- Lock order: after queue, messages and expiries; sms_queue before sms_fallbacks.
create table sms_fallbacks (
  message_id uuid primary key,
  account_id integer not null,
  status text not null default 'WAITING' check (status in ('WAITING', 'SCHEDULED', 'SENT', 'DELIVERED', 'FAILED', 'NOT_NEEDED', 'SKIPPED')),
  -- Why it is sent, or why not.
  reason text,
  -- Sender, text and rules, as the caller gave them.
  plan json not null,
  -- The number of SMS that the text takes.
  segments smallint not null check (segments between 1 and 255),
  delay_seconds integer not null,
  not_before timestamptz(3),
  -- Whether it is also sent after an expiry, and when.
  after_expiry boolean not null,
  after_expiry_delay_seconds integer,
  after_expiry_not_before timestamptz(3),
  due_at timestamptz(3),
  sent_at timestamptz(3),
  delivered_at timestamptz(3),
  failed_at timestamptz(3),
  -- The carrier's own words.
  detail text,
  constraint sms_fallbacks_reason check ((reason is null) = (status = 'WAITING')),
  constraint sms_fallbacks_due check (status in ('WAITING', 'SKIPPED', 'NOT_NEEDED') or due_at is not null),
  constraint sms_fallbacks_sent check (status not in ('SENT', 'DELIVERED') or sent_at is not null),
  constraint sms_fallbacks_delivered check ((delivered_at is not null) = (status = 'DELIVERED')),
  constraint sms_fallbacks_failed check ((failed_at is not null) = (status = 'FAILED'))
) partition by range (message_id);

-- SMS to be sent: to the recipient (copy 0), and to test numbers (copies 1 to 5). An SMS is never submitted twice: once `submitted_under` is
-- set, and until a result is written, Herald does not know whether the carrier has the SMS. If no result comes, it is not sent again.
create table sms_queue (
  message_id uuid not null,
  copy smallint not null,
  account_id integer not null,
  recipient text not null,
  priority smallint not null,
  campaign_id uuid not null default '00000000-0000-0000-0000-000000000000',
  -- The time that the caller asked for. `due_at` is later while the result of a revocation is awaited; it is also the end of the lease.
  planned_at timestamptz(3) not null,
  awaits_revocation boolean not null default false,
  due_at timestamptz not null,
  expires_at timestamptz(3) not null,
  segments smallint not null,
  -- The number of segments that the carrier has.
  segments_sent smallint not null default 0,
  -- The lease under which it is being submitted.
  submitted_under uuid,
  lease uuid,
  attempts integer not null default 0,
  primary key (message_id, copy)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index sms_queue_lanes on sms_queue (account_id, priority, campaign_id, due_at);
-- Whether an SMS to a recipient is under way. Only leased rows: otherwise all SMS that wait for one number would be read for each of them.
create index on sms_queue (account_id, recipient) where lease is not null;

-- Segments that a carrier has, while their receipts matter.
create table sms_segments (
  message_id uuid not null,
  copy smallint not null,
  segment smallint not null,
  carrier text not null,
  -- Empty if the carrier gave none.
  carrier_message_id text not null,
  recipient text not null,
  state text not null default 'sent' check (state in ('sent', 'delivered', 'failed')),
  detail text,
  occurred_at timestamptz(3),
  submitted_at timestamptz(3) not null default now(),
  primary key (message_id, copy, segment)
);
create index on sms_segments (carrier_message_id) where state = 'sent';
create index on sms_segments (submitted_at);

-- Receipts that came before the response to their submit, or that match no SMS. A row for each way to read the carrier's id.
create table sms_receipts (
  carrier text not null,
  carrier_message_id text not null,
  recipient text not null,
  event_id text not null,
  -- The first reading that matches an SMS counts.
  reading smallint not null,
  state text not null check (state in ('delivered', 'failed')),
  detail text not null,
  occurred_at timestamptz(3) not null,
  received_at timestamptz(3) not null default now(),
  primary key (event_id, carrier, carrier_message_id)
);
create index on sms_receipts (carrier_message_id);
create index on sms_receipts (received_at);

-- The last SMS to a recipient from each account, agent and sender: for the quarantine, and to find the account that a reply is for.
create table sms_contacts (
  account_id integer not null,
  recipient text not null,
  sender text not null,
  agent_id text not null,
  message_id uuid not null,
  -- Sent to a test number: the recipient can reply, but no quarantine begins.
  is_copy boolean not null,
  sent_at timestamptz(3) not null,
  primary key (account_id, recipient, sender, agent_id, is_copy)
);
create index on sms_contacts (recipient, sender, sent_at);
create index on sms_contacts (sent_at);

-- Short links in the texts of SMS.
create table short_links (
  code text collate "C" primary key,
  account_id integer not null,
  message_id uuid not null,
  -- Not 0: of an SMS to a test number, whose clicks are not counted.
  copy smallint not null,
  agent_id text not null,
  recipient text not null,
  url text not null check (char_length(url) <= 2048),
  created_at timestamptz(3) not null default now(),
  -- The first click by a person.
  clicked_at timestamptz(3),
  -- Requests by robots, such as those that make previews.
  previews integer not null default 0
);
create index on short_links (created_at);
