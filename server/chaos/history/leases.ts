import type pg from 'pg'
import { createOwnerPool } from '../../src/db/pool.ts'

// Which node claimed entries of the queues, and which node ended the claims. Triggers record it in the transaction of each change, apart
// from what the service stores. They know the node by the application_name of its connection (`namedAddress`).

export const LEASE_CHANGES = 'chaos_lease_changes'

/** The address of the database for one node, whose connections have its name. */
export function namedAddress(databaseUrl: string, node: string): string {
  return `${databaseUrl}${databaseUrl.includes('?') ? '&' : '?'}application_name=herald-${node}`
}

export type LeaseChange = {
  queue: 'queue' | 'sms_queue'
  /** The id of the message; of an SMS also the copy. */
  entry: string
  /** The node that made the change. */
  by: string
  at: number
  /** After the change; null if the entry has none, or is gone. */
  lease: string | null
  leaseBefore: string | null
  /** The lease before had not expired. */
  wasRunning: boolean
  /** The entry has become another task: to revoke the message. */
  isTurned: boolean
}

/** Call it when the tables exist, and are empty. The function runs as the owner: the service role has no privilege for the table. */
export async function watchLeases(databaseUrl: string): Promise<void> {
  const owner = createOwnerPool({ connectionString: databaseUrl }, () => {})
  await owner.query(`
    create table ${LEASE_CHANGES} (
      n bigint generated always as identity primary key, queue text not null, entry text not null, by text not null,
      at timestamptz not null default clock_timestamp(),
      lease uuid, lease_before uuid, was_running boolean not null, is_turned boolean not null
    );
    create function note_lease_change() returns trigger language plpgsql security definer as $$
    declare
      before jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) end;
      after jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
      entry jsonb := coalesce(before, after);
    begin
      insert into ${LEASE_CHANGES} (queue, entry, by, lease, lease_before, was_running, is_turned) values (
        tg_table_name, concat_ws(' ', entry ->> 'message_id', entry ->> 'copy'), current_setting('application_name'), (after ->> 'lease')::uuid,
        (before ->> 'lease')::uuid, coalesce((before ->> tg_argv[0])::timestamptz > now(), false),
        coalesce(before ->> 'task' <> after ->> 'task', false));
      return null;
    end $$`)
  // An entry without a lease or an attempt goes with its message: no node holds it. An SMS that waits may be postponed and hastened.
  for (const [queue, leaseEnd, condition] of [
    ['queue', 'leased_until', 'or new.lease is null'],
    ['sms_queue', 'due_at', ''],
  ]) {
    await owner.query(`
      create trigger lease_inserted after insert on ${queue} for each row
        when (new.lease is not null) execute function note_lease_change('${leaseEnd}');
      create trigger lease_changed after update on ${queue} for each row
        when (old.lease is distinct from new.lease ${condition}) execute function note_lease_change('${leaseEnd}');
      create trigger lease_ended after delete on ${queue} for each row
        when (old.lease is not null or old.attempts > 0) execute function note_lease_change('${leaseEnd}')`)
  }
  await owner.end()
}

export async function readLeaseChanges(pool: Pick<pg.ClientBase, 'query'>): Promise<LeaseChange[]> {
  const { rows } = await pool.query<LeaseChange>(
    `select queue, entry, replace(by, 'herald-', '') as by,
       round(extract(epoch from at) * 1000)::bigint as at, lease, lease_before as "leaseBefore", was_running as "wasRunning",
       is_turned as "isTurned"
     from ${LEASE_CHANGES} order by n`,
  )
  return rows
}
