import { fold, foldStatement } from '../db/fold.ts'
import { type Executor, type Pool, transaction } from '../db/pool.ts'

// Counts the usage of quotas. A statement that stores something inserts a delta of its own in the same transaction, so that a crash keeps
// both or neither, and no caller waits for another.

/** Counted for each message in addition to its texts: its rows and index entries take 2.7 KB in the first 30 days and 1.3 KB after. */
export const ROW_BYTES = 2_048

/** SQL for the bytes that a message counts. The arguments are SQL expressions of type text. */
export function messageBytes(content: string, clientReferenceId: string, plan: string): string {
  return [content, clientReferenceId, plan].reduce((sum, text) => `${sum} + coalesce(octet_length(${text}), 0)`, String(ROW_BYTES))
}

type Added = { account: string; from: string; messages?: string; messageBytes?: string; contentBytes?: string }

/** A statement or CTE that inserts a delta for the rows of `from`. The amounts are SQL aggregates. */
export function countUsage({ account, from, messages = '0', messageBytes: ofMessages = '0', contentBytes = '0' }: Added): string {
  return `
    insert into account_usage_deltas (account_id, messages, message_bytes, content_bytes)
    select ${account}, ${messages}, ${ofMessages}, ${contentBytes} from ${from} group by 1`
}

// No transaction that counts usage takes this long, since a statement is cancelled after 3.5 s. If one did, readers would miss its delta until
// the next fold.
const SETTLED_AFTER = '10 seconds'
// An arbitrary number that no other advisory lock in this database uses: "hrlu" in ASCII.
const FOLD_LOCK = 0x68726c75

// Deltas of an account are folded in the order of their times, so that no delta remains before the last folded one.
export const FOLD_USAGE = foldStatement({
  deltas: 'account_usage_deltas',
  where: `(select pg_try_advisory_xact_lock(${FOLD_LOCK}))`,
  order: 'account_id, at',
  steps: `by_day as (
    select account_id, utc_day(at) as day, utc_day(at) = max(utc_day(at)) over (partition by account_id) as is_last,
      messages, message_bytes, content_bytes, at
    from batch
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
    select account_id, date_trunc('month', day)::date, sum(message_bytes) from by_day where message_bytes <> 0 group by 1, 2 order by 1, 2
    on conflict (account_id, month) do update set message_bytes = m.message_bytes + excluded.message_bytes
  )`,
})

/** One fold runs at a time: a second one finds nothing to do. */
export const foldUsage = (db: Executor) => fold(db, 'fold-usage', FOLD_USAGE)

/** Subtracts the bytes of messages whose month was dropped. Waits for a running fold, which writes to the same rows. */
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
