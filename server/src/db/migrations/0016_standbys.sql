-- The standbys that are connected: all, and those that commits wait for. Null if the owner of the tables may not see them: that takes
-- pg_read_all_stats. A backup reads the log by a temporary slot, and a logical subscriber by a logical one: neither is a standby.
create function count_standbys(out connected integer, out synchronous integer) language sql security definer set search_path from current as $$
  select case when is_visible then found.connected end, case when is_visible then found.synchronous end
  from (select pg_has_role('pg_read_all_stats', 'usage') as is_visible) as rights, lateral (
    select count(*)::integer as connected, (count(*) filter (where r.sync_state in ('sync', 'quorum')))::integer as synchronous
    from pg_stat_replication r
    where r.state in ('catchup', 'streaming') and not exists (
      select from pg_replication_slots s where s.active_pid = r.pid and (s.temporary or s.slot_type = 'logical')
    )
  ) as found
$$;
