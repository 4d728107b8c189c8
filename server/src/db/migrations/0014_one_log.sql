-- One log of what changed, in pages: the events of one account from one statement are one row. It replaces `outbox` and `events`.

lock table webhook_deliveries, outbox, events, expiries, queue, messages, campaign_changes in access exclusive mode;
set local enable_seqscan = on; set local enable_hashjoin = on; set local enable_mergejoin = on; set local enable_bitmapscan = on;

create table log_pages (
  -- Grows with the changes of one message, since each waits for the commit of the one before.
  id bigint generated always as identity,
  account_id integer not null,
  -- The ids of its events are made from this one (events/pages.ts).
  page_id uuid not null default uuid_v7(),
  event_count smallint not null,
  -- Where its last event stands in the log of the account. Null until the router has given it a place: a sequence gives its numbers out before
  -- their transactions are committed, so a reader of 7 could not know whether 6 is still to come.
  last_position bigint,
  -- Each event is a list of its own (events/pages.ts).
  events json not null,
  primary key (account_id, page_id)
);
create unique index log_pages_in_order on log_pages (account_id, last_position) where last_position is not null;
create index log_pages_unplaced on log_pages (id) where last_position is null;

-- The last position of each account.
create table log_heads (
  account_id integer primary key,
  last_position bigint not null
) with (fillfactor = 50);

-- Events keep their ids and positions, so that cursors and deliveries stay valid: each is a page of its own.
insert into log_pages (account_id, page_id, event_count, last_position, events)
select account_id, event_id, 1, position, json_build_array(json_build_array(kind, occurred_at, subject_id, null, null, null, null, null, data))
from events order by account_id, position;
insert into log_pages (account_id, event_count, events)
select account_id, 1, json_build_array(json_build_array(kind, occurred_at, subject_id, null, null, null, null, null, data)) from outbox order by id;
insert into log_heads (account_id, last_position)
select a.id, coalesce((select max(position) from events e where e.account_id = a.id), p.last_value) from accounts a, event_positions p;

-- What a delivery is about, so that the order of a message's events can be kept without a look into the log.
alter table webhook_deliveries add column subject_id text;
update webhook_deliveries d set subject_id = e.subject_id from events e where e.account_id = d.account_id and e.position = d.position;
drop table outbox, events;
drop sequence event_positions;

-- The head of the account's log when the endpoint was disabled: what it missed lies behind. The time of disabling does not tell that, since a page
-- has the time of the transaction that wrote it, and may be placed much later. Null where it was disabled before this version.
alter table webhook_endpoints add column disabled_position bigint;

-- `expiries` has the messages with an expiry of their own. The others expire in the order of their ids, and this is how far that has got.
create table expiry_walk (
  reached uuid not null
);
insert into expiry_walk select uuid_v7_from(now() - interval '48 hours');

-- A claim changes nothing that an index has, and so touches no index: `due_at` stays as it is, and the lease has a time of its own.
alter table queue add column leased_until timestamptz not null default '-infinity';
update queue set leased_until = due_at where lease is not null;
alter table queue set (fillfactor = 50);

-- How many messages of a campaign have which status follows from the counters of reports, and from this one: messages that failed or expired
-- before they were sent.
alter table report_counts add column unsent bigint not null default 0;
alter table report_changes add column unsent integer not null default 0;
insert into report_counts as c (account_id, campaign_id, hour, accepted, sent, delivered, read, failed, expired, clicked, replied, opted_out,
  sms_sent, sms_delivered, sms_failed, sms_skipped, unsent)
select account_id, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'), date_trunc('hour', case status when 'EXPIRED' then expires_at else failed_at end, 'UTC'),
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, count(*)
from messages where status in ('EXPIRED', 'FAILED') and sent_at is null and not test
group by 1, 2, 3
on conflict (account_id, campaign_id, hour) do update set unsent = excluded.unsent;
drop table campaign_counts, campaign_changes;

-- PostgreSQL parses the conditions of a table for every statement that writes to it: 22 % of a statement for one message. What they say is
-- checked by the audit of the tests (test/support/audit.ts).
alter table messages
  drop constraint messages_recipient_check, drop constraint messages_status_check, drop constraint messages_client_reference_id_check,
  drop constraint messages_content, drop constraint messages_sent, drop constraint messages_delivered, drop constraint messages_read,
  drop constraint messages_failed, drop constraint messages_in_order, drop constraint messages_traffic_check;
alter table queue drop constraint queue_task_check;
alter table idempotency_keys
  drop constraint idempotency_keys_endpoint_check, drop constraint idempotency_keys_key_check, drop constraint idempotency_keys_request_hash_check;

-- Keys are forgotten by a walk through the table (delivery/retention.ts), which needs no index.
drop index idempotency_keys_created_at_idx;

-- In one statement all messages of a page may change: with room for each of them on the page, no index is touched.
do $$ declare name text; begin
  for name in select inhrelid::regclass::text from pg_inherits where inhparent = 'messages'::regclass loop
    execute format('alter table %s set (fillfactor = 45)', name);
  end loop;
end $$;
