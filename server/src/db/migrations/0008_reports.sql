-- Reports: how many messages came to which state in which hour, and the lists of them by campaign. What is here already is counted, too.

-- In the order in which those who work take them, so that neither waits for the other for ever; and planned for all rows, unlike what the
-- service asks for.
lock table recipient_actions, messages, message_events in access exclusive mode;
set local enable_seqscan = on; set local enable_hashjoin = on; set local enable_mergejoin = on; set local enable_bitmapscan = on;

-- To the nearest millisecond, as the columns round: the order of ids is the order of `accepted_at`, and a day's messages are a range of ids.
create or replace function uuid_v7() returns uuid language sql volatile parallel safe as $$
  select encode(
    set_bit(set_bit(
      overlay(uuid_send(gen_random_uuid()) placing substring(int8send(round(extract(epoch from now()) * 1000)::bigint) from 3) from 1 for 6),
      52, 1), 53, 1),
    'hex')::uuid
$$;
create or replace function uuid_v7_from(at timestamptz) returns uuid language sql immutable parallel safe as $$
  select (lpad(to_hex(round(extract(epoch from at) * 1000)::bigint), 12, '0') || '70008000000000000000')::uuid
$$;

-- Days are those of UTC, wherever the server stands.
create function utc_day(at timestamptz) returns date language sql immutable parallel safe as $$
  select (at at time zone 'UTC')::date
$$;

-- A list in the order of the numbers that is cut to some days reads the next few of each of these days: it never looks through a whole
-- campaign for a day of it. All that it shows is in the index: of ten days with 200 rows each, 450 pages are read instead of 2,240. None of these
-- columns ever changes, so that a message's moves touch no index.
create index messages_by_recipient on messages (campaign_id, utc_day(accepted_at), (recipient collate "C"), id)
  include (account_id, accepted_at, recipient) where campaign_id is not null;
-- For the export: what an account sends by itself, without going through what others do.
create index messages_transactional on messages (account_id, id) where campaign_id is null and not test;

-- Of a campaign, events that a report lists have what it lists beside them; others, such as attempts, have neither.
alter table message_events add column campaign_id uuid, add column recipient text collate "C";
alter table recipient_actions add column campaign_id uuid;

update message_events e set campaign_id = m.campaign_id, recipient = m.recipient
from messages m
where m.id = e.message_id and m.campaign_id is not null and e.kind in ('sent', 'delivered', 'read', 'failed', 'expired', 'sms-sent', 'sms-delivered', 'sms-failed');
update recipient_actions a set campaign_id = m.campaign_id, occurred_at = greatest(a.occurred_at, m.accepted_at)
from messages m where m.id = a.message_id and (m.campaign_id is not null or a.occurred_at < m.accepted_at);

create index message_events_by_time on message_events (campaign_id, kind, occurred_at, message_id) where campaign_id is not null;
create index message_events_by_recipient on message_events (campaign_id, kind, utc_day(occurred_at), recipient, message_id)
  include (account_id, occurred_at, reason) where campaign_id is not null;
-- However often somebody clicks, the message was clicked once: the first time is an event of it.
create unique index message_events_firsts on message_events (message_id, kind) where kind in ('clicked', 'replied', 'opted-out');
create index recipient_actions_by_time on recipient_actions (campaign_id, occurred_at, id) where campaign_id is not null;
create index recipient_actions_by_recipient on recipient_actions (campaign_id, utc_day(occurred_at), (recipient collate "C"), id) where campaign_id is not null;
create index recipient_actions_by_kind on recipient_actions (campaign_id, utc_day(occurred_at), (kind collate "C"), id) where campaign_id is not null;

insert into message_events (message_id, account_id, kind, occurred_at, campaign_id, recipient)
select distinct on (m.id, done.kind) m.id, m.account_id, done.kind, a.occurred_at, m.campaign_id,
  case when m.campaign_id is not null then m.recipient end
from recipient_actions a join messages m on m.id = a.message_id,
  lateral (select case when a.kind in ('clicked', 'opted-out') then a.kind else 'replied' end as kind) as done
where a.kind <> 'opted-in' and not m.test
order by m.id, done.kind, a.id;

-- How many messages came to a state in an hour: of a campaign, or of none (all zeros), which are those that the account sends by itself. Test
-- messages are never counted. Who moves messages adds what changes by it, in the same statement; the changes are folded together from time
-- to time. One row that all write to would have them wait for each other.
create table report_counts (
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
  primary key (account_id, campaign_id, hour)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
create table report_changes (
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
  sms_skipped integer not null default 0
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index on report_changes (account_id, campaign_id, hour);

insert into report_counts
select account_id, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), date_trunc('hour', at, 'UTC'),
  count(*) filter (where kind = 'accepted'), count(*) filter (where kind = 'sent'), count(*) filter (where kind = 'delivered'),
  count(*) filter (where kind = 'read'), count(*) filter (where kind = 'failed'), count(*) filter (where kind = 'expired'),
  count(*) filter (where kind = 'clicked'), count(*) filter (where kind = 'replied'), count(*) filter (where kind = 'opted-out'),
  count(*) filter (where kind = 'sms-sent'), count(*) filter (where kind = 'sms-delivered'), count(*) filter (where kind = 'sms-failed'),
  count(*) filter (where kind = 'sms-skipped')
from (
  select m.account_id, m.campaign_id, step.kind, step.at
  from messages m, lateral (
    values ('accepted', m.accepted_at), ('sent', m.sent_at), ('delivered', m.delivered_at), ('read', m.read_at), ('failed', m.failed_at),
      ('expired', case when m.status = 'EXPIRED' then m.expires_at end)
  ) as step (kind, at)
  where not m.test and step.at is not null
  union all
  select m.account_id, m.campaign_id, e.kind, e.occurred_at
  from messages m join message_events e on e.message_id = m.id
  where not m.test and e.kind in ('clicked', 'replied', 'opted-out', 'sms-sent', 'sms-delivered', 'sms-failed', 'sms-skipped')
) as reached
group by 1, 2, 3;
