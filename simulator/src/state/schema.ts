// Everything that was accepted and everything that is still owed. Times are milliseconds since 1970.
// What is owed (steps, webhooks, deliver_sm) has tables of its own whose rows go when the debt is paid, so that finding due work costs the
// same after a million messages as after ten.
export const SCHEMA = `
create table if not exists settings (
  name text primary key,
  value text not null
) without rowid;

create table if not exists tokens (
  token text primary key,
  expires_at integer not null
) without rowid;

-- What phones received: a row for each RCS message, each event of an agent and each SMS part.
create table if not exists messages (
  id integer primary key,
  channel text not null,       -- 'rcs', 'rcs-event' or 'sms'
  phone text not null,
  message_id text not null,
  origin text not null,        -- the agent, or the sender of an SMS
  body text not null,          -- the agentMessage as it came, or the text of the SMS
  part text,                   -- of an SMS in several parts: {"reference", "total", "number"}
  smpp text,                   -- of an SMS: what its receipt needs
  attempts integer not null default 1,
  accepted_at integer not null,
  expires_at integer,
  delivered_at integer,
  read_at integer,
  revoked_at integer,
  expired_at integer,
  failed_at integer
);
create unique index if not exists messages_by_id on messages (message_id, origin) where channel <> 'sms';
create index if not exists messages_by_phone on messages (phone, id);

-- The next step of a message, ordered by when it is due: it is taken from the front and mostly added at the end.
create table if not exists steps (
  due_at integer not null,
  id integer not null,
  kind text not null,          -- 'deliver', 'read', 'answer' or 'expire'
  message integer not null,
  primary key (due_at, id)
) without rowid;

-- The number of a webhook goes out with it, so no number is ever used twice.
create table if not exists webhooks (
  id integer primary key autoincrement,
  due_at integer not null,
  tries integer not null default 0,
  created_at integer not null,
  origin text not null,
  phone text not null,
  message_id text not null,
  event text not null,
  data text not null
);
create index if not exists webhooks_by_due on webhooks (due_at, id);

create table if not exists deliver_sm (
  id integer primary key autoincrement,
  due_at integer not null,
  tries integer not null default 0,
  phone text not null,
  message_id text not null,
  pdu text not null
);
create index if not exists deliver_sm_by_due on deliver_sm (due_at, id);

-- How often the messages to phones that refuse twice were tried.
create table if not exists refused_tries (
  message_id text not null,
  agent text not null,
  tries integer not null,
  primary key (message_id, agent)
) without rowid;

-- The entries of one commit in a row, as a JSON list: a row for each costs twice the time, and they are only ever read in order.
create table if not exists ledger_pages (
  last_seq integer primary key,
  entries text not null
);

create table if not exists counts (
  kind text primary key,
  total integer not null
) without rowid;
`
