-- What callers are told: events, and the endpoints of callers that they are posted to.

-- Events, each written in the transaction of the change it reports, and not in the log yet. A sequence gives its numbers out before their
-- transactions are committed: a reader who has seen 7 can't know whether 6 is still to come. So an event gets its place in the log
-- afterwards, by one process at a time; from here on, nothing ever appears behind a place that somebody has read.
create table outbox (
  id bigint generated always as identity primary key,
  account_id integer not null,
  kind text not null,
  -- The message or campaign that it is about, whose events are told in their order.
  subject_id text,
  occurred_at timestamptz(3) not null,
  data json not null,
  -- For this endpoint alone: a test of it.
  endpoint_id integer
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

create sequence event_positions;
create table events (
  account_id integer not null,
  position bigint not null,
  event_id uuid not null,
  kind text not null,
  subject_id text,
  occurred_at timestamptz(3) not null,
  data json not null,
  -- Grows with the position, unless the clock is set back.
  recorded_at timestamptz(3) not null default now(),
  primary key (account_id, position)
);
create unique index on events (event_id);
create index on events (recorded_at, position);

-- One worker at a time serves an endpoint, which keeps its events in order and its calls within a number; the lease is for that, and for
-- nothing more: where it goes to another too early, an event comes twice.
create table webhook_endpoints (
  id integer generated always as identity primary key,
  account_id integer not null references accounts,
  url text not null check (char_length(url) <= 2048),
  -- None: all of them, also those that later versions bring.
  kinds text[] check (cardinality(kinds) > 0),
  status text not null default 'ACTIVE' check (status in ('ACTIVE', 'DISABLED')),
  disabled_at timestamptz(3),
  disabled_because text check (disabled_because in ('FAILING', 'OPERATOR')),
  -- The first failure since it last took an event, the last one, and how many there were in a row.
  failing_since timestamptz(3),
  last_failed_at timestamptz(3),
  failures integer not null default 0,
  -- It is left alone until then.
  paused_until timestamptz,
  created_at timestamptz(3) not null default now(),
  lease uuid,
  leased_until timestamptz not null default '-infinity',
  constraint webhook_endpoints_disabled check ((status = 'DISABLED') = (num_nonnulls(disabled_at, disabled_because) = 2)
    and (status = 'DISABLED' or num_nonnulls(disabled_at, disabled_because) = 0))
);
create index on webhook_endpoints (account_id);

-- Not hashed, since they sign. One that was replaced signs on for a while beside the new one.
create table webhook_secrets (
  endpoint_id integer not null references webhook_endpoints on delete cascade,
  secret text not null check (secret like 'whsec_%'),
  created_at timestamptz(3) not null default now(),
  ends_at timestamptz(3),
  primary key (endpoint_id, secret)
);

-- Which event has still to be posted where. A row goes when the endpoint has taken its event; one of which all tries have failed is not due
-- any more, and stays for a replay.
create table webhook_deliveries (
  endpoint_id integer not null,
  account_id integer not null,
  position bigint not null,
  -- Which transaction asked for it, the router's or a replay's: a result counts for what it is of, and not for a replay that came since.
  generation xid8 not null default pg_current_xact_id(),
  attempts smallint not null default 0,
  due_at timestamptz,
  primary key (endpoint_id, position)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index webhook_deliveries_due on webhook_deliveries (endpoint_id, due_at, position) where due_at is not null;
create index webhook_deliveries_failed on webhook_deliveries (endpoint_id, position) where due_at is null;

-- What came of each try, for people who ask.
create table webhook_attempts (
  endpoint_id integer not null,
  account_id integer not null,
  position bigint not null,
  attempt smallint not null,
  attempted_at timestamptz(3) not null,
  duration_ms integer not null,
  -- The answer's; none where there was no answer, and then the error says why.
  status smallint,
  error text,
  -- The first KiB.
  answer text
);
create index on webhook_attempts (endpoint_id, attempted_at);
create index on webhook_attempts (attempted_at);
