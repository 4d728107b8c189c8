-- What each running process says about itself, every five seconds. After a crash of the database the table is empty, and fills itself again.
create unlogged table node_status (
  node_id uuid primary key,
  host text not null,
  pid integer not null,
  roles text[] not null,
  version text not null,
  started_at timestamptz(3) not null,
  -- By the clock of the database.
  seen_at timestamptz(3) not null,
  -- Its figures at that time (health/node-status.ts).
  figures json not null
) with (fillfactor = 50);
