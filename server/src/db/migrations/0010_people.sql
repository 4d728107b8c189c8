-- People who administer Herald, with their sessions, tokens and one-time links.

create table people (
  id integer generated always as identity primary key,
  -- In lower case, so that nobody has two accounts by accident.
  email text not null unique check (char_length(email) between 3 and 1000 and email = lower(email)),
  name text not null check (char_length(name) between 1 and 200),
  -- Null until the person has set one (people/passwords.ts).
  password_hash text,
  -- If an admin made the link with which the password was set: the accounts that the person had then. The admin may know the password.
  password_account_ids integer[],
  -- An operator may do everything, in all accounts.
  is_operator boolean not null default false,
  -- Who the person is at the OpenID provider; null if the person has only signed in with a password.
  oidc_issuer text,
  oidc_subject text,
  disabled_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  unique (oidc_issuer, oidc_subject),
  check ((oidc_issuer is null) = (oidc_subject is null))
);

-- What people may do in single accounts.
create table people_roles (
  person_id integer not null references people,
  account_id integer not null references accounts,
  role text not null check (role in ('admin', 'viewer')),
  primary key (person_id, account_id)
);
create index on people_roles (account_id);

-- The cookie has 256 random bits; only its hash is stored. A session ends when its row is deleted, on every node at once.
create table sessions (
  id uuid primary key default gen_random_uuid(),
  secret_hash bytea not null unique check (octet_length(secret_hash) = 32),
  person_id integer not null references people,
  created_at timestamptz(3) not null default now(),
  -- Accurate to a minute.
  last_used_at timestamptz(3) not null default now(),
  -- When the person last gave the password, to Herald or to the OpenID provider.
  confirmed_at timestamptz(3) not null default now(),
  address text not null,
  user_agent text not null check (char_length(user_agent) <= 200)
);
create index on sessions (person_id);
create index on sessions (last_used_at);

-- Tokens of programs.
create table admin_tokens (
  id integer generated always as identity primary key,
  name text not null check (char_length(name) between 1 and 200),
  secret_hash bytea not null unique check (octet_length(secret_hash) = 32),
  role text not null check (role in ('operator', 'admin', 'viewer')),
  -- The accounts of an admin or a viewer. An operator has all.
  account_ids integer[] not null check ((role = 'operator') = (cardinality(account_ids) = 0)),
  expires_at timestamptz(3) not null,
  created_at timestamptz(3) not null default now(),
  last_used_at timestamptz(3),
  revoked_at timestamptz(3)
);

-- One-time links, with which a person sets a password. A link without a person makes the first operator.
create table people_links (
  secret_hash bytea primary key check (octet_length(secret_hash) = 32),
  person_id integer references people,
  -- If an admin made the link: the accounts that the person had then.
  account_ids integer[],
  expires_at timestamptz(3) not null
);

-- Failed and running tries to sign in, of the last 15 minutes. The name is hashed: people type passwords into the wrong field.
create table sign_in_tries (
  id bigint generated always as identity primary key,
  address text not null,
  name_hash bytea not null,
  tried_at timestamptz(3) not null default now(),
  has_failed boolean not null default false
);
create index on sign_in_tries (address, tried_at);
create index on sign_in_tries (name_hash, tried_at);
create index on sign_in_tries (tried_at);
