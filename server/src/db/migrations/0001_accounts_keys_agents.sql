-- Times are timestamptz(3): the API speaks in milliseconds, and a value that went out in a page's cursor must compare equal
-- when it comes back. Lengths are checked here too, as a second wall behind the schemas at the border.

create table accounts (
  id integer generated always as identity primary key,
  name text not null check (char_length(name) between 1 and 200),
  modules text[] not null check (modules <@ array['rcs', 'sms']),
  created_at timestamptz(3) not null default now()
);

-- A secret is 256 random bits, so a plain SHA-256 of it can't be searched; a slow hash would only cap the rate of requests.
create table integration_keys (
  integration_key text primary key,
  account_id integer not null references accounts,
  secret_hash bytea not null check (octet_length(secret_hash) = 32),
  created_at timestamptz(3) not null default now(),
  rotated_at timestamptz(3),
  revoked_at timestamptz(3)
);
create index on integration_keys (account_id);

create table agents (
  agent_id text primary key check (agent_id ~ '^[!-~]{1,200}$'),
  name text not null check (char_length(name) between 1 and 200),
  billing_type text not null check (billing_type in ('single', 'conversational', 'basic')),
  carrier text not null,
  created_at timestamptz(3) not null default now()
);

-- What an account has changed about an agent belongs to its assignment: other accounts with the same agent don't see it.
create table agent_assignments (
  account_id integer not null references accounts,
  agent_id text not null references agents,
  display_name text check (char_length(display_name) between 1 and 31),
  active boolean not null default true,
  assigned_at timestamptz(3) not null default now(),
  primary key (account_id, agent_id)
);

-- The windows of the rate limits, where several nodes count together (http/limits-database.ts). Unlogged: a crash of PostgreSQL
-- empties it, which costs a caller nothing, and every request writes here, which must cost next to nothing. One row for each
-- caller and policy; fillfactor leaves room for updates in place.
create unlogged table rate_limit_windows (
  bucket text primary key,
  quota integer not null,
  window_ms integer not null,
  hit_times timestamptz[] not null,
  hit_counts integer[] not null,
  -- The answer to the last question, written under the row's lock and returned from there.
  granted integer not null,
  held_turns timestamptz[] not null,
  held_counts integer[] not null,
  checked_at timestamptz not null
) with (fillfactor = 50);
