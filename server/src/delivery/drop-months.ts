import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Executor } from '../db/pool.ts'

/**
 * A month whose retention has ended. `name`: such as 2026_08. `end`: when it ended, which is when the next month began. `start`: the end of the
 * old month before it. Rows of months that an operator dropped by hand belong to the first month that is left.
 */
type OldMonth = { name: string; start: Date; end: Date }

/**
 * Finds the months whose retention has ended, oldest first. A month is kept for `keepMonths` months after its end, and for at least 30 days: a
 * message lives for at most 15 days, and its SMS waits for at most a week after that. A message with `sendAt` may live for 15 days more, and a
 * caller may name a later time for the SMS, however late: the month is kept until then. The expiry loop has a day to expire the last message.
 */
export async function findOldMonths(db: Executor, keepMonths: number): Promise<OldMonth[]> {
  const { rows } = await db.query<OldMonth>(FIND_OLD_MONTHS, [keepMonths])
  return rows
}

const FIND_OLD_MONTHS = `
  select name, start, ended as end
  from (
    select name, ended, lag(ended, 1, 'epoch') over (order by name) as start
    from (
      select right(tablename, 7) as name, to_timestamp(right(tablename, 7), 'YYYY_MM') + interval '1 month' as ended
      from pg_tables where schemaname = current_schema() and tablename ~ '^messages_\\d{4}_\\d{2}$'
    ) as months
    where ended + $1 * interval '1 month' <= now() and ended + interval '30 days' <= now()
  ) as old
  where not exists (
    select from sms_queue s
    where s.message_id >= uuid_v7_from(ended - interval '1 month') and s.message_id < uuid_v7_from(ended) and s.expires_at > now()
  ) and not exists (
    select from expiries e
    where e.message_id >= uuid_v7_from(ended - interval '1 month') and e.message_id < uuid_v7_from(ended) and e.expires_at > now() - interval '1 day'
  )
  order by 1`

const BY_MESSAGE = 'message_id >= uuid_v7_from($2) and message_id < uuid_v7_from($3)'

/** In SQL: for each table that has rows about messages, the rows from `$2` until `$3`. */
export const OF_OLD_MONTHS: Record<string, string> = {
  queue: BY_MESSAGE,
  expiries: BY_MESSAGE,
  sms_queue: BY_MESSAGE,
  sms_segments: BY_MESSAGE,
  sms_contacts: 'sent_at >= $2 and sent_at < $3',
  short_links: 'created_at >= $2 and created_at < $3',
  campaign_copies:
    'campaign_id in (select id from campaigns where coalesce(completed_at, cancelled_at) >= $2 and coalesce(completed_at, cancelled_at) < $3)',
}

/** The cursor of a fan-out is the number of a recipient. */
export const FORGET_CURSORS = `
  update campaigns set fan_out_cursor = '' where fan_out_completed_at >= $1 and fan_out_completed_at < $2 and fan_out_cursor <> ''`

const MAX_TRIES = 5
const RETRY_MS = 500

/** `gone`: another process has dropped the month. `in-use`: another process is dropping it, or an export reads it, which may finish. */
type Drop = 'dropped' | 'gone' | 'in-use'

/** Drops the tables of a month, all or none, in one process at a time. */
export async function dropMonth(db: Executor, { name }: OldMonth): Promise<Drop> {
  for (let tries = 1; ; tries += 1) {
    try {
      const { rows } = await db.query<{ drop: Drop }>('select drop_month($1) as drop', [name])
      return rows[0]?.drop as Drop
    } catch (error) {
      if (!isLocked(error)) throw error
      if (tries === MAX_TRIES) return 'in-use'
      await sleep(RETRY_MS)
    }
  }
}

function isLocked(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === '55P03' || error.code === '40P01')
}
