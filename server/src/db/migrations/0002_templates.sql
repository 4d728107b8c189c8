-- What was said, never changed: a template points to its present content, and a message to that of the moment it was accepted.
-- So a content outlives the template that it was written for.
create table contents (
  id bigint generated always as identity primary key,
  account_id integer not null references accounts,
  basic boolean not null,
  -- Not jsonb, which would not keep the order of the fields.
  message json not null,
  created_at timestamptz(3) not null default now(),
  unique (account_id, id)
);

create table templates (
  id bigint generated always as identity primary key,
  account_id integer not null references accounts,
  name text not null check (char_length(name) between 1 and 200),
  description text check (char_length(description) <= 1000),
  status text not null check (status in ('DRAFT', 'APPROVED')),
  -- Of the content, whose message may be large: lists are filtered without reading it.
  type text not null,
  content_id bigint not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  -- What points to a template names the account too, so that none can point into another account.
  unique (account_id, id),
  foreign key (account_id, content_id) references contents (account_id, id)
);
create index on templates (account_id, content_id);
create index on templates (account_id, created_at, id);
create index on templates (account_id, (name collate "C"), id);

-- Which templates the trigger_template buttons of a template send. Deleting a target takes its row's lock, and so does making a
-- reference to it: of the two at once, the later one fails. "No action" is judged after the cascade, so that a button that sends
-- its own template does not keep that from being deleted.
create table template_references (
  account_id integer not null,
  template_id bigint not null,
  target_id bigint not null,
  primary key (template_id, target_id),
  constraint template_references_source foreign key (account_id, template_id) references templates (account_id, id) on delete cascade,
  constraint template_references_target foreign key (account_id, target_id) references templates (account_id, id) on delete no action
);
create index on template_references (account_id, target_id);

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
