import type { Logger } from 'pino'
import { freeDroppedMonths } from '../accounts/usage.ts'
import { ensurePartitions } from '../db/partitions.ts'
import type { Executor, Pool } from '../db/pool.ts'
import { purgeRemoved } from '../webhooks/remove-endpoint.ts'
import { dropMonth, FORGET_CURSORS, findOldMonths, OF_OLD_MONTHS } from './drop-months.ts'

const BATCH_SIZE = 5_000
const KEYS_KEPT_DAYS = 7
const EVENTS_KEPT_DAYS = 30

/** The retention of each table, and the column with the time of a row. */
const RETENTION = [
  // Receipts of unknown messages, and processed events. A carrier repeats an event for seven days.
  ['carrier_events', 'received_at', '30 days'],
  // A row counts for 24 hours (delivery/capabilities.ts).
  ['capabilities', 'checked_at', '24 hours'],
  ['sms_receipts', 'received_at', '1 hour'],
  ['sms_segments', 'submitted_at', '14 days'],
  ['sms_contacts', 'sent_at', '400 days'],
  ['auto_reply_turns', 'replied_at', '1 day'],
  ['short_links', 'created_at', '180 days'],
  ['webhook_attempts', 'attempted_at', `${EVENTS_KEPT_DAYS} days`],
] as const

/** Deletes rows whose retention has ended, and creates the partitions of the coming months. */
export async function applyRetention(pool: Pool): Promise<void> {
  await ensurePartitions(pool)
  await freeDroppedMonths(pool)
  await deleteOldKeys(pool)
  for (const [table, column, age] of RETENTION) await sweep(pool, table, olderRows(table, column, age))
  await purgeRemoved(pool)
  // Deliveries go before their events: a delivery without its event would block every delivery that is due after it.
  await sweep(pool, 'webhook_deliveries', OLD_DELIVERIES)
  await sweep(pool, 'log_pages', OLD_PAGES)
  await sweep(pool, 'removed_members', UNNEEDED_MEMBERS)
}

/**
 * Drops the months whose retention has ended, oldest first, with all rows that belong to them. Sums in reports stay. The tables are dropped last:
 * if the process is killed before, the next run finds the month again and finishes it. Returns whether all of these months are dropped.
 */
export async function dropOldMonths(pool: Pool, keepMonths: number, logger: Logger): Promise<boolean> {
  const months = await findOldMonths(pool, keepMonths)
  for (const { start, end } of months) {
    for (const [table, isOld] of Object.entries(OF_OLD_MONTHS))
      await sweep(pool, table, `select ctid from ${table} where ${isOld} limit $1 for update skip locked`, [start, end])
    await pool.query(FORGET_CURSORS, [start, end])
  }
  for (const month of months) {
    const drop = await dropMonth(pool, month)
    if (drop === 'dropped') logger.info({ month: month.name }, 'dropped the tables of a month')
    if (drop === 'in-use') return false
  }
  await freeDroppedMonths(pool)
  return true
}

/** Deletes the rows that `old` selects, in one transaction for each batch: a statement that needs the same rows waits for one batch at most. */
async function sweep(db: Executor, table: string, old: string, values: unknown[] = []): Promise<void> {
  for (;;) {
    const { rowCount } = await db.query(`delete from ${table} where ctid = any (array(${old}))`, [BATCH_SIZE, ...values])
    if ((rowCount ?? 0) < BATCH_SIZE) return
  }
}

const olderRows = (table: string, column: string, age: string) =>
  `select ctid from ${table} where ${column} < now() - interval '${age}' order by ${column} limit $1 for update skip locked`

/** In SQL: the retention of pages with a smaller id has ended. */
const OLDEST_PAGE = `uuid_v7_from(now() - interval '${EVENTS_KEPT_DAYS} days')`

// Deliveries that failed permanently, or that wait for a disabled endpoint.
const OLD_DELIVERIES = `
  select d.ctid from webhook_endpoints e, lateral (
    select coalesce(
      (select last_position - event_count from log_pages p
       where p.account_id = e.account_id and p.page_id >= ${OLDEST_PAGE} and last_position is not null order by p.page_id limit 1),
      (select last_position from log_heads h where h.account_id = e.account_id)) as position
  ) as forgotten, lateral (
    select ctid from webhook_deliveries d where d.endpoint_id = e.id and d.position <= forgotten.position limit $1 for update skip locked
  ) as d
  limit $1`

const OLD_PAGES = `
  select p.ctid from log_heads h, lateral (
    select ctid from log_pages p where p.account_id = h.account_id and p.page_id < ${OLDEST_PAGE} and p.last_position is not null
    limit $1 for update skip locked
  ) as p
  limit $1`

// Removed members that no campaign in fan-out needs. An hour is longer than any statement that starts a campaign.
const UNNEEDED_MEMBERS = `
  with needed as materialized (
    select account_id, unnest(group_numbers) as number from campaigns where status in ('RUNNING', 'PAUSED') and fan_out_completed_at is null
  )
  select r.ctid from removed_members r
  where r.removed_at < now() - interval '1 hour'
    and not exists (select from needed n where n.account_id = r.account_id and n.number = r.group_number)
  order by r.removed_at limit $1 for update of r skip locked`

const BLOCK_BATCH_SIZE = 1_000
const SLICES = 24

/**
 * Deletes old idempotency keys. It scans the table by block, one of 24 slices in each hour, so it reads each key once a day. An index on the
 * time would cost an index entry for every message.
 */
export async function deleteOldKeys(db: Executor, slices = SLICES): Promise<void> {
  const { rows } = await db.query<{ blocks: number; slice: number }>(
    `select (pg_relation_size('idempotency_keys') / current_setting('block_size')::int)::int as blocks,
       extract(hour from now() at time zone 'UTC')::int % $1 as slice`,
    [slices],
  )
  const { blocks, slice } = rows[0] as { blocks: number; slice: number }
  const [from, to] = [Math.floor((blocks * slice) / slices), Math.ceil((blocks * (slice + 1)) / slices)]
  for (let block = from; block < to; block += BLOCK_BATCH_SIZE) {
    await db.query(
      `delete from idempotency_keys
       where ctid >= $1::text::tid and ctid < $2::text::tid and created_at < now() - interval '${KEYS_KEPT_DAYS} days'`,
      [`(${block},0)`, `(${Math.min(block + BLOCK_BATCH_SIZE, to)},0)`],
    )
  }
}
