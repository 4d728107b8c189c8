-- Agents, which send for accounts, and the rates of carriers and agents.

create table agents (
  agent_id text primary key check (agent_id ~ '^[!-~]{1,200}$'),
  name text not null check (char_length(name) between 1 and 200),
  billing_type text not null check (billing_type in ('single', 'conversational', 'basic')),
  carrier text not null,
  -- When the next message may be sent, if a rate is set for the agent.
  next_slot_at timestamptz not null default '-infinity',
  created_at timestamptz(3) not null default now()
);

-- What an account changes about an agent is stored with the assignment, so that other accounts with the same agent do not see it.
create table agent_assignments (
  account_id integer not null references accounts,
  agent_id text not null references agents,
  display_name text check (char_length(display_name) between 1 and 31),
  active boolean not null default true,
  -- False after "agent unassign". The row stays: opt-outs refer to it, and receipts and replies of earlier messages still come.
  assigned boolean not null default true,
  -- When messages of the account were last claimed. If there are more accounts than free calls, the account that has waited longest is next.
  served_at timestamptz not null default '-infinity',
  assigned_at timestamptz(3) not null default now(),
  primary key (account_id, agent_id),
  constraint agent_assignments_active check (assigned or not active)
);

-- When the next message may be sent to a carrier, if a rate is set for it. A claim locks the carrier's row: all workers together keep the
-- rate, and no two workers go for the same entries.
create table carrier_rates (
  carrier text primary key,
  next_slot_at timestamptz not null default '-infinity'
);
