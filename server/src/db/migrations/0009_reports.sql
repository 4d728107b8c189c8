-- Reports: how many messages reached each state in each hour, by campaign (all zeros: messages without one). Test messages are not counted.
-- Every statement that changes messages inserts its deltas, and a fold adds them to the totals: if all statements updated one row, they would
-- wait for each other.

create table report_totals (
  account_id integer not null,
  campaign_id uuid not null,
  hour timestamptz not null,
  accepted bigint not null,
  sent bigint not null,
  delivered bigint not null,
  read bigint not null,
  failed bigint not null,
  expired bigint not null,
  clicked bigint not null,
  replied bigint not null,
  opted_out bigint not null,
  sms_sent bigint not null,
  sms_delivered bigint not null,
  sms_failed bigint not null,
  sms_skipped bigint not null,
  -- Messages that failed or expired before they were sent. The counts of a campaign by status follow from it.
  unsent bigint not null default 0,
  -- Messages of campaigns that a worker has claimed, or that failed or expired before that. All other accepted messages are waiting.
  claimed bigint not null default 0,
  primary key (account_id, campaign_id, hour)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

create table report_deltas (
  account_id integer not null,
  campaign_id uuid not null,
  hour timestamptz not null,
  accepted integer not null default 0,
  sent integer not null default 0,
  delivered integer not null default 0,
  read integer not null default 0,
  failed integer not null default 0,
  expired integer not null default 0,
  clicked integer not null default 0,
  replied integer not null default 0,
  opted_out integer not null default 0,
  sms_sent integer not null default 0,
  sms_delivered integer not null default 0,
  sms_failed integer not null default 0,
  sms_skipped integer not null default 0,
  unsent integer not null default 0,
  claimed integer not null default 0
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index on report_deltas (account_id, campaign_id, hour);
