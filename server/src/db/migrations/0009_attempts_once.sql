-- A try to post an event stands in the history once, also where the answer to its commit was lost and it is written a second time, perhaps
-- while the first still goes on.
lock table webhook_attempts in share row exclusive mode;
delete from webhook_attempts where ctid = any (array(
  select ctid from (
    select ctid, row_number() over (partition by endpoint_id, attempted_at, position, attempt, duration_ms, coalesce(status, 0)) as time_written
    from webhook_attempts
  ) as tries
  where time_written > 1));
create unique index webhook_attempts_once on webhook_attempts (endpoint_id, attempted_at, position, attempt, duration_ms, coalesce(status, 0));
drop index webhook_attempts_endpoint_id_attempted_at_idx;
