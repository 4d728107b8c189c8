import { type Executor, type Pool, transaction } from '../db/pool.ts'

// Counts what accounts use of their quotas. A statement that stores something adds a row of its own in the same transaction, so that a
// crash keeps both or neither and no caller waits for another.

/** Counted for each message beside its texts: its rows and index entries take 2.7 KB in the first 30 days and 1.3 KB after. */
export const ROW_BYTES = 2_048

/** In SQL: the bytes that a message counts with. Arguments are expressions of type text. */
export function messageBytes(content: string, clientReferenceId: string, plan: string): string {
  return [content, clientReferenceId, plan].reduce((sum, text) => `${sum} + coalesce(octet_length(${text}), 0)`, String(ROW_BYTES))
}

type Added = { account: string; from: string; messages?: string; messageBytes?: string; contentBytes?: string }

/** A statement, or a step of one, that counts what `from` has. The amounts are aggregates in SQL. */
export function countUsage({ account, from, messages = '0', messageBytes: ofMessages = '0', contentBytes = '0' }: Added): string {
  return `
    insert into account_usage_changes (account_id, messages, message_bytes, content_bytes)
    select ${account}, ${messages}, ${ofMessages}, ${contentBytes} from ${from} group by 1`
}

const BATCH_SIZE = 10_000
// Longer than any transaction that counts usage: a statement ends after 3.5 s. A change that is committed even later is missing from what
// readers see until the next fold.
const SETTLED_AFTER = '10 seconds'
// Any number that nothing else in this database locks: "hrlu" in ASCII.
const FOLD_LOCK = 0x68726c75

/** Adds changes up. One fold at a time: a second one finds nothing to do. Returns whether there may be more. */
export async function foldUsage(db: Executor): Promise<{ mayBeMore: boolean }> {
  const { rows } = await db.query<{ folded: number }>({ name: 'fold-usage', text: FOLD, values: [BATCH_SIZE] })
  return { mayBeMore: rows[0]?.folded === BATCH_SIZE }
}

// The changes of an account are taken in the order of their times, so that none before the last one taken is left.
const FOLD = `
  with taken as (
    delete from account_usage_changes where ctid = any (array(
      select ctid from account_usage_changes where (select pg_try_advisory_xact_lock(${FOLD_LOCK}))
      order by account_id, at limit $1 for update skip locked))
    returning *
  ), by_day as (
    select account_id, utc_day(at) as day, utc_day(at) = max(utc_day(at)) over (partition by account_id) as is_last,
      messages, message_bytes, content_bytes, at
    from taken
  ), folded as (
    insert into account_usage as u (account_id, day, messages, stored_bytes, folded_until)
    select account_id, max(day), sum(messages) filter (where is_last), sum(message_bytes + content_bytes),
      least(max(at), now() - interval '${SETTLED_AFTER}')
    from by_day group by 1 order by 1
    on conflict (account_id) do update set
      day = greatest(u.day, excluded.day),
      messages = case when u.day > excluded.day then 0 else excluded.messages end + case when u.day < excluded.day then 0 else u.messages end,
      stored_bytes = u.stored_bytes + excluded.stored_bytes,
      folded_until = greatest(u.folded_until, excluded.folded_until)
  ), by_month as (
    insert into account_usage_months as m (account_id, month, message_bytes)
    select account_id, date_trunc('month', day)::date, sum(message_bytes) from by_day where message_bytes > 0 group by 1, 2 order by 1, 2
    on conflict (account_id, month) do update set message_bytes = m.message_bytes + excluded.message_bytes
  )
  select count(*) as folded from taken`

/** Subtracts the bytes of messages whose month was dropped. Waits for a fold under way, which writes to the same rows. */
export async function freeDroppedMonths(pool: Pool): Promise<void> {
  await transaction(pool, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [FOLD_LOCK])
    await tx.query(FREE)
  })
}

const FREE = `
  with freed as (
    delete from account_usage_months m where not exists (
      select from pg_tables where schemaname = current_schema() and tablename = to_char(m.month, '"messages_"YYYY_MM'))
    returning account_id, message_bytes
  )
  update account_usage u set stored_bytes = u.stored_bytes - f.bytes
  from (select account_id, sum(message_bytes) as bytes from freed group by 1) as f
  where u.account_id = f.account_id`
