-- Accounts, their keys, quotas and rate limits, and the secrets of the installation.
--
-- Conventions of all files: times are timestamptz(3), because the API has milliseconds and a time in a page's cursor must compare equal when
-- it comes back. Lengths are checked here as well as in the schemas of the API, except on the tables that every message writes to.

-- The day of a time in UTC, whatever the time zone of the server.
create function utc_day(at timestamptz) returns date language sql immutable parallel safe as $$
  select (at at time zone 'UTC')::date
$$;

create table accounts (
  id integer generated always as identity primary key,
  name text not null check (char_length(name) between 1 and 200),
  modules text[] not null check (modules <@ array['rcs', 'sms']),
  -- Minimum hours between two SMS to the same recipient.
  quarantine_hours integer not null default 24 check (quarantine_hours between 0 and 8760),
  -- Null: the default of this version (accounts/quotas.ts).
  quota_messages_per_day bigint check (quota_messages_per_day >= 0),
  quota_templates bigint check (quota_templates >= 0),
  quota_stored_bytes bigint check (quota_stored_bytes >= 0),
  quota_exports bigint check (quota_exports >= 0),
  -- While it is set, requests of the account get 403, and nothing of the account is sent.
  suspended_at timestamptz(3),
  created_at timestamptz(3) not null default now()
);
-- Nearly always empty. Every claim reads it.
create index accounts_suspended on accounts (id) where suspended_at is not null;

-- A secret is 256 random bits, so nobody can find it by trying: a plain SHA-256 is safe, and a slow hash would only limit the request rate.
create table integration_keys (
  integration_key text primary key,
  account_id integer not null references accounts,
  secret_hash bytea not null check (octet_length(secret_hash) = 32),
  -- Null: all scopes, no expiry, every address.
  scopes text[] check (scopes <@ array['send', 'read', 'export', 'manage'] and cardinality(scopes) > 0),
  expires_at timestamptz(3),
  addresses cidr[] check (cardinality(addresses) between 1 and 100),
  created_at timestamptz(3) not null default now(),
  rotated_at timestamptz(3),
  revoked_at timestamptz(3)
);
create index on integration_keys (account_id);

-- When a key was last used. A table of its own, since every change of a row of `integration_keys` makes nodes look the key up again.
create table integration_key_uses (
  integration_key text primary key,
  last_used_at timestamptz(3) not null
) with (fillfactor = 50);

-- What accounts have used of their quotas. Every statement that stores something for an account inserts a delta, so that no two statements
-- wait for each other. A fold adds the deltas to `account_usage` and deletes them.
create table account_usage_deltas (
  account_id integer not null,
  at timestamptz not null default now(),
  -- Messages that count towards the quota of the day.
  messages integer not null,
  -- Bytes that are freed when the month's partitions are dropped, and bytes that stay.
  message_bytes bigint not null,
  content_bytes bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index on account_usage_deltas (account_id, at);

create table account_usage (
  account_id integer primary key,
  -- The last day (UTC) with messages, and their number.
  day date not null,
  messages bigint not null,
  stored_bytes bigint not null,
  -- All deltas before this time are folded. A reader starts here, so it never scans the dead rows of a whole day while a long transaction
  -- keeps vacuum from removing them.
  folded_until timestamptz not null
) with (fillfactor = 50);

create table account_usage_months (
  account_id integer not null,
  month date not null,
  message_bytes bigint not null,
  primary key (account_id, month)
) with (fillfactor = 50);

-- The windows of the rate limits if several nodes share them (http/limits-database.ts): a row for each caller and policy. Every request writes
-- here. The table is unlogged to keep that cheap: after a crash of PostgreSQL it is empty, which costs callers nothing. The fill factor
-- leaves room for updates in place.
create unlogged table rate_limit_windows (
  bucket text primary key,
  quota integer not null,
  window_ms integer not null,
  hit_times timestamptz[] not null,
  hit_counts integer[] not null,
  -- The result of the last check. It is written under the row's lock and returned from here.
  granted integer not null,
  held_turns timestamptz[] not null,
  held_counts integer[] not null,
  checked_at timestamptz not null
) with (fillfactor = 50);

-- Keys that an installation makes for itself, once for all its nodes. They are encrypted; `key_id` names the encryption key, which is outside
-- of the database.
create table secrets (
  name text primary key,
  key_id text not null,
  value bytea not null
);
create index secrets_key on secrets (key_id);
