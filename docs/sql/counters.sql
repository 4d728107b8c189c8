-- The hot statements of counters, as PostgreSQL gets them. "npm run generate" writes this page from server/scripts/hot-statements.ts.
-- Tables of a month have the name that they have in July 2026. To try one in psql: paste it, then run
--   set plan_cache_mode = force_generic_plan; explain execute "name" (null, …);

-- Folds deltas of reports into totals. (server/src/reports/counters.ts)
prepare "fold-reports" as
with batch as (
  delete from report_deltas where ctid = any (array(
      select ctid from report_deltas where true order by account_id, campaign_id, hour limit $1 for update skip locked))
  returning *
), folded as (
  insert into report_totals as c (account_id, campaign_id, hour, accepted, sent, delivered, read, failed, expired, clicked, replied, opted_out, sms_sent, sms_delivered, sms_failed, sms_skipped, unsent, claimed)
  select account_id, campaign_id, hour, sum(accepted), sum(sent), sum(delivered), sum(read), sum(failed), sum(expired), sum(clicked), sum(replied), sum(opted_out), sum(sms_sent), sum(sms_delivered), sum(sms_failed), sum(sms_skipped), sum(unsent), sum(claimed)
  from batch group by 1, 2, 3 order by 1, 2, 3
  on conflict (account_id, campaign_id, hour) do update
  set accepted = c.accepted + excluded.accepted, sent = c.sent + excluded.sent, delivered = c.delivered + excluded.delivered, read = c.read + excluded.read, failed = c.failed + excluded.failed, expired = c.expired + excluded.expired, clicked = c.clicked + excluded.clicked, replied = c.replied + excluded.replied, opted_out = c.opted_out + excluded.opted_out, sms_sent = c.sms_sent + excluded.sms_sent, sms_delivered = c.sms_delivered + excluded.sms_delivered, sms_failed = c.sms_failed + excluded.sms_failed, sms_skipped = c.sms_skipped + excluded.sms_skipped, unsent = c.unsent + excluded.unsent, claimed = c.claimed + excluded.claimed
)
select count(*) as folded from batch;

-- Folds deltas of usage into totals. (server/src/accounts/usage.ts)
prepare "fold-usage" as
with batch as (
  delete from account_usage_deltas where ctid = any (array(
      select ctid from account_usage_deltas where (select pg_try_advisory_xact_lock(1752329333)) order by account_id, at limit $1 for update skip locked))
  returning *
), by_day as (
  select account_id, utc_day(at) as day, utc_day(at) = max(utc_day(at)) over (partition by account_id) as is_last,
    messages, message_bytes, content_bytes, at
  from batch
), folded as (
  insert into account_usage as u (account_id, day, messages, stored_bytes, folded_until)
  select account_id, max(day), sum(messages) filter (where is_last), sum(message_bytes + content_bytes),
    least(max(at), now() - interval '10 seconds')
  from by_day group by 1 order by 1
  on conflict (account_id) do update set
    day = greatest(u.day, excluded.day),
    messages = case when u.day > excluded.day then 0 else excluded.messages end + case when u.day < excluded.day then 0 else u.messages end,
    stored_bytes = u.stored_bytes + excluded.stored_bytes,
    folded_until = greatest(u.folded_until, excluded.folded_until)
), by_month as (
  insert into account_usage_months as m (account_id, month, message_bytes)
  select account_id, date_trunc('month', day)::date, sum(message_bytes) from by_day where message_bytes <> 0 group by 1, 2 order by 1, 2
  on conflict (account_id, month) do update set message_bytes = m.message_bytes + excluded.message_bytes
)
select count(*) as folded from batch;
