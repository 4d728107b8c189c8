import type pg from 'pg'
import type { Pool } from '../../src/db/pool.ts'

// Who took up entries of the queues, and who ended that: kept by the database itself, in the transaction of each change, beside what the
// service keeps. It sees who asks by the name of the connection, which each node has in its address (`namedAddress`).

const TABLE = 'proof_lease_changes'

/** A database's address for one node, whose connections have its name. */
export function namedAddress(databaseUrl: string, node: string): string {
  return `${databaseUrl}${databaseUrl.includes('?') ? '&' : '?'}application_name=herald-${node}`
}

export type LeaseChange = {
  queue: 'queue' | 'sms_queue'
  /** The message, and of an SMS the copy. */
  entry: string
  /** The node that did it. */
  by: string
  at: number
  /** What it did to the entry: it came to have another lease or none, or is gone. */
  lease: string | null
  leaseBefore: string | null
  /** The one before had not run out. */
  wasRunning: boolean
  /** It has become another task: the message is to be taken back. */
  isTurned: boolean
}

/** When the tables are there, and before there is anything in them. */
export async function watchLeases(pool: Pool): Promise<void> {
  await pool.query(`
    create table ${TABLE} (
      n bigint generated always as identity primary key, queue text not null, entry text not null, by text not null,
      at timestamptz not null default clock_timestamp(),
      lease uuid, lease_before uuid, was_running boolean not null, is_turned boolean not null
    );
    create function note_lease_change() returns trigger language plpgsql as $$
    declare
      before jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) end;
      after jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
      entry jsonb := coalesce(before, after);
    begin
      insert into ${TABLE} (queue, entry, by, lease, lease_before, was_running, is_turned) values (
        tg_table_name, concat_ws(' ', entry ->> 'message_id', entry ->> 'copy'), current_setting('application_name'), (after ->> 'lease')::uuid,
        (before ->> 'lease')::uuid, coalesce((before ->> tg_argv[0])::timestamptz > now(), false),
        coalesce(before ->> 'task' <> after ->> 'task', false));
      return null;
    end $$`)
  // What has no lease and was never tried goes with its message: nobody holds it. An SMS that waits may be put off and hurried.
  for (const [queue, leaseEnd] of [
    ['queue', 'leased_until'],
    ['sms_queue', 'due_at'],
  ]) {
    const isPutOff = queue === 'queue' ? 'or new.lease is null' : ''
    await pool.query(`
      create trigger lease_inserted after insert on ${queue} for each row
        when (new.lease is not null) execute function note_lease_change('${leaseEnd}');
      create trigger lease_changed after update on ${queue} for each row
        when (old.lease is distinct from new.lease ${isPutOff}) execute function note_lease_change('${leaseEnd}');
      create trigger lease_ended after delete on ${queue} for each row
        when (old.lease is not null or old.attempts > 0) execute function note_lease_change('${leaseEnd}')`)
  }
}

export async function readLeaseChanges(pool: Pick<pg.ClientBase, 'query'>): Promise<LeaseChange[]> {
  const { rows } = await pool.query<LeaseChange>(
    `select queue, entry, replace(by, 'herald-', '') as by,
       round(extract(epoch from at) * 1000)::bigint as at, lease, lease_before as "leaseBefore", was_running as "wasRunning",
       is_turned as "isTurned"
     from ${TABLE} order by n`,
  )
  return rows
}
