-- Keys that an installation makes for itself, once, the same for all its nodes.
create table secrets (
  name text primary key,
  value bytea not null check (octet_length(value) >= 32)
);

-- What carriers reported and nothing has taken up yet: a receipt can be quicker than the answer to the message it is for. A carrier
-- repeats what it has not seen acknowledged, under the same id.
create table carrier_events (
  carrier text not null,
  event_id text not null,
  kind text not null,
  phone text not null,
  occurred_at timestamptz(3) not null,
  received_at timestamptz(3) not null default now(),
  event json not null,
  primary key (carrier, event_id)
);
