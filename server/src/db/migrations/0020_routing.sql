-- capability: the network is asked first whether the number has RCS. Null: the message is attempted. Processes of an earlier version attempt all.
alter table messages add column routing text;
alter table campaigns add column routing text check (routing = 'capability');

-- What networks said about numbers, for 24 hours. A cache: it is not written to the log of the database, and is empty after a crash or a failover.
-- Lock order: after all other tables, the rows in the order of the key.
create unlogged table capabilities (
  phone text not null,
  agent_id text not null,
  -- The network that was asked. If the agent has moved to another one since, the row no longer counts.
  carrier text not null,
  reachable boolean not null,
  checked_at timestamptz(3) not null,
  primary key (phone, agent_id)
);
create index on capabilities (checked_at);
