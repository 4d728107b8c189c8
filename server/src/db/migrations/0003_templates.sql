-- Templates, and automatic replies.

-- The content of a template or campaign. A row is never changed: a template points to its current content, and a message to the content that the
-- template had when the message was accepted. A content therefore outlives its template.
create table contents (
  id bigint generated always as identity primary key,
  account_id integer not null references accounts,
  basic boolean not null,
  -- Not jsonb, which would not keep the order of the fields.
  message json not null,
  created_at timestamptz(3) not null default now(),
  unique (account_id, id)
);

-- A template id reveals nothing about the templates of other accounts: it is the milliseconds since 2020 and 12 random bits. Ids are in the
-- order of creation to the millisecond, and below 2^53 until 2089. Two ids of one millisecond are equal once in 4,096 times; createTemplate()
-- then inserts again.
create function new_template_id() returns bigint language sql volatile parallel safe as $$
  select (floor(extract(epoch from clock_timestamp()) * 1000)::bigint - 1577836800000) * 4096
    + ('x' || left(gen_random_uuid()::text, 3))::bit(12)::integer
$$;

create table templates (
  id bigint primary key default new_template_id(),
  account_id integer not null references accounts,
  name text not null check (char_length(name) between 1 and 200),
  description text check (char_length(description) <= 1000),
  status text not null check (status in ('DRAFT', 'APPROVED')),
  -- A copy from the content, whose message may be large: lists are filtered by type without reading it.
  type text not null,
  content_id bigint not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  -- A reference to a template names the account too, so it cannot point into another account.
  unique (account_id, id),
  foreign key (account_id, content_id) references contents (account_id, id)
);
create index on templates (account_id, content_id);
create index on templates (account_id, created_at, id);
create index on templates (account_id, (name collate "C"), id);

-- The templates that the trigger_template buttons of a template send. Both deleting a target and referring to it lock the target's row, so
-- the later of two concurrent statements fails. "No action" is checked after the cascade: a template whose button sends the template itself
-- can be deleted.
create table template_references (
  account_id integer not null,
  template_id bigint not null,
  target_id bigint not null,
  primary key (template_id, target_id),
  constraint template_references_source foreign key (account_id, template_id) references templates (account_id, id) on delete cascade,
  constraint template_references_target foreign key (account_id, target_id) references templates (account_id, id) on delete no action
);
create index on template_references (account_id, target_id);

-- The contents and statuses that a template has had. They outlive the template: if it was deleted, a tap on a message sends the version that was
-- current when the message was accepted. So accepting a message need not store anything about the templates that its buttons send.
create table template_versions (
  id bigint generated always as identity primary key,
  account_id integer not null,
  template_id bigint not null,
  status text not null,
  content_id bigint not null,
  since timestamptz(3) not null
);
create index on template_versions (account_id, template_id, id);

-- The template that Herald sends when a recipient writes a keyword. Keywords are stored as they are compared: in lower case, without accents.
create table auto_replies (
  id bigint generated always as identity primary key,
  account_id integer not null,
  agent_id text not null,
  keyword text not null check (char_length(keyword) between 1 and 100),
  template_id bigint not null,
  created_at timestamptz(3) not null default now(),
  foreign key (account_id, agent_id) references agent_assignments,
  constraint auto_replies_template foreign key (account_id, template_id) references templates (account_id, id)
);
create index on auto_replies (account_id, template_id);
create index on auto_replies (account_id, agent_id);
create unique index auto_replies_keyword on auto_replies (account_id, agent_id, keyword);

-- When a number last got an automatic reply. It gets at most one a minute, so that two robots do not reply to each other endlessly.
create table auto_reply_turns (
  account_id integer not null,
  phone text not null,
  replied_at timestamptz not null,
  primary key (account_id, phone)
);
create index on auto_reply_turns (replied_at);
