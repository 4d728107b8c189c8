-- What was changed by whom. Rows are only ever added (see the privileges of the service's role).
create table audit_log (
  id bigint generated always as identity primary key,
  at timestamptz(3) not null default clock_timestamp(),
  -- A person, a token, or the command line, where the name is that of the user of the operating system.
  actor_kind text not null check (actor_kind in ('person', 'token', 'command')),
  actor_id integer,
  actor_name text not null,
  address text,
  request_id text,
  account_id integer,
  -- The operation of the admin API, such as suspendAccount.
  action text not null,
  -- What was changed: an id, a number, a name.
  subject text,
  before json,
  after json
);
create index on audit_log (account_id, id);
create index on audit_log (at);
