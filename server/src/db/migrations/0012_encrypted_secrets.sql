-- Secrets that must be readable are encrypted, and key_id names the key, which is outside of the database. Existing ones are encrypted by the
-- program (db/encrypt-plain.ts) in this transaction. The old tables are dropped, and not updated: an update would leave the plain text in
-- their files until they are vacuumed.
create temporary table plain_secrets on commit drop as select name, value from secrets;
create temporary table plain_webhook_secrets on commit drop as select endpoint_id, secret, created_at, ends_at from webhook_secrets;
drop table secrets, webhook_secrets;

create table secrets (
  name text primary key,
  key_id text not null,
  value bytea not null
);
create index secrets_key on secrets (key_id);

-- A secret that was replaced signs on for a while beside the new one.
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
