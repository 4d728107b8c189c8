-- The log of events, and the endpoints of callers that get them by webhook.

-- The log, in pages: the events of one account from one statement are one row.
create table log_pages (
  -- Grows with the changes of a message, because each change waits for the commit of the one before.
  id bigint generated always as identity,
  account_id integer not null,
  -- The ids of the events are made from this id (events/pages.ts).
  page_id uuid not null default uuid_v7(),
  event_count smallint not null,
  -- The position of its last event in the log of the account. Null until the router sets it: a sequence assigns numbers before their
  -- transactions commit, so a reader of 7 could not know whether 6 is still to come. Nothing ever appears behind a position that was read.
  last_position bigint,
  -- When the router set the position. Within an account it never decreases with the position, even if the clock is set back. It is not before
  -- the time in the page's id, so a search by time that starts here misses no event.
  placed_at timestamptz(3),
  -- Each event is a list (events/pages.ts).
  events json not null,
  primary key (account_id, page_id)
);
create unique index log_pages_in_order on log_pages (account_id, last_position) where last_position is not null;
create index log_pages_unplaced on log_pages (id) where last_position is null;

-- The last position of each account, and when it was set.
create table log_heads (
  account_id integer primary key,
  last_position bigint not null,
  placed_at timestamptz(3) not null default '-infinity'
) with (fillfactor = 50);

-- One worker at a time serves an endpoint, which keeps its events in order and limits its concurrent calls. If a lease is lost too early, an
-- event is posted twice, which at-least-once delivery allows.
create table webhook_endpoints (
  id integer generated always as identity primary key,
  account_id integer not null references accounts,
  url text not null check (char_length(url) <= 2048),
  -- Null: all kinds of events, also those of later versions.
  kinds text[] check (cardinality(kinds) > 0),
  status text not null default 'ACTIVE' check (status in ('ACTIVE', 'DISABLED')),
  disabled_at timestamptz(3),
  disabled_because text check (disabled_because in ('FAILING', 'OPERATOR', 'CALLER')),
  -- The last position of the account's log when the endpoint was disabled: a replay starts after it. The time is not exact enough, because a page
  -- has the time of its transaction and may get its position much later.
  disabled_position bigint,
  -- The first failure since the last success, the last failure, and how many there were in a row.
  failing_since timestamptz(3),
  last_failed_at timestamptz(3),
  failures integer not null default 0,
  -- No event is posted before this time.
  paused_until timestamptz,
  created_at timestamptz(3) not null default now(),
  -- Set when it is removed: it no longer exists for anyone, and its deliveries and attempts are deleted, which may take long.
  removed_at timestamptz,
  lease uuid,
  leased_until timestamptz not null default '-infinity',
  -- A replay is running until then; it renews this while it runs.
  replaying_until timestamptz not null default '-infinity',
  constraint webhook_endpoints_disabled check ((status = 'DISABLED') = (num_nonnulls(disabled_at, disabled_because) = 2)
    and (status = 'DISABLED' or num_nonnulls(disabled_at, disabled_because) = 0))
);
create index on webhook_endpoints (account_id);

-- The secrets that sign the events, encrypted. A replaced secret signs beside the new one until it ends.
create table webhook_secrets (
  id integer generated always as identity primary key,
  endpoint_id integer not null references webhook_endpoints on delete cascade,
  key_id text not null,
  value bytea not null,
  created_at timestamptz(3) not null default now(),
  ends_at timestamptz(3)
);
create index webhook_secrets_endpoint on webhook_secrets (endpoint_id);
create index webhook_secrets_key on webhook_secrets (key_id);

-- Events that are still to be posted to an endpoint. A row is deleted when the endpoint has accepted the event. If all attempts have failed, the
-- row stays for a replay, without `due_at`.
create table webhook_deliveries (
  endpoint_id integer not null,
  account_id integer not null,
  position bigint not null,
  -- The message or campaign that the event is about: its events are posted in order.
  subject_id text,
  -- The transaction of the router or the replay that made the delivery due: a late result does not count for a later replay.
  generation xid8 not null default pg_current_xact_id(),
  attempts smallint not null default 0,
  due_at timestamptz,
  primary key (endpoint_id, position)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index webhook_deliveries_due on webhook_deliveries (endpoint_id, due_at, position) where due_at is not null;
create index webhook_deliveries_failed on webhook_deliveries (endpoint_id, position) where due_at is null;

-- The result of each attempt, for "herald webhook attempts".
create table webhook_attempts (
  endpoint_id integer not null,
  account_id integer not null,
  position bigint not null,
  -- The message or campaign that the event is about.
  subject_id text,
  attempt smallint not null,
  attempted_at timestamptz(3) not null,
  duration_ms integer not null,
  -- The status of the response. Null if there was none; `error` then says why.
  status smallint,
  error text,
  -- The first KiB of the response.
  response text
);
-- An attempt is stored once, also if the response to its commit was lost and it is written a second time.
create unique index webhook_attempts_once on webhook_attempts (endpoint_id, attempted_at, position, attempt, duration_ms, coalesce(status, 0));
create index on webhook_attempts (attempted_at);
-- The timeline of a message.
create index on webhook_attempts (subject_id) where subject_id is not null;
