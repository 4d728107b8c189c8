import { freeDroppedMonths } from '../accounts/usage.ts'
import { ensurePartitions } from '../db/partitions.ts'
import type { Executor, Pool } from '../db/pool.ts'

const MOST_AT_ONCE = 5_000
const KEYS_KEPT_DAYS = 7
const CARRIER_EVENTS_KEPT_DAYS = 30
const SMS_RECEIPTS_KEPT_HOURS = 1
const SMS_PARTS_KEPT_DAYS = 14
const SMS_CONTACTS_KEPT_DAYS = 400
const LINKS_KEPT_DAYS = 180
const CALLERS_EVENTS_KEPT_DAYS = 30

/** Removes what nobody can ask for any more, and makes the partitions of the months to come. */
export async function keepHouse(pool: Pool): Promise<void> {
  await ensurePartitions(pool)
  await freeDroppedMonths(pool)
  await sweep(pool, forget('idempotency_keys', 'created_at', `${KEYS_KEPT_DAYS} days`))
  // Receipts of messages that were never here, and what has been taken up: carriers repeat theirs for seven days.
  await sweep(pool, forget('carrier_events', 'received_at', `${CARRIER_EVENTS_KEPT_DAYS} days`))
  await sweep(pool, forget('sms_receipts', 'received_at', `${SMS_RECEIPTS_KEPT_HOURS} hours`))
  await sweep(pool, forget('sms_parts', 'submitted_at', `${SMS_PARTS_KEPT_DAYS} days`))
  await sweep(pool, forget('sms_contacts', 'sent_at', `${SMS_CONTACTS_KEPT_DAYS} days`))
  await sweep(pool, forget('auto_reply_turns', 'replied_at', '1 day'))
  await sweep(pool, forget('short_links', 'created_at', `${LINKS_KEPT_DAYS} days`))
  // Before their events: one without would be in the way of all that are due after it.
  await sweep(pool, FORGET_DELIVERIES)
  await sweep(pool, forget('events', 'recorded_at', `${CALLERS_EVENTS_KEPT_DAYS} days`))
  await sweep(pool, forget('webhook_attempts', 'attempted_at', `${CALLERS_EVENTS_KEPT_DAYS} days`))
}

/** In portions, each a transaction: whoever needs the same rows waits for one portion at the most. */
async function sweep(db: Executor, statement: string): Promise<void> {
  for (;;) {
    const { rowCount } = await db.query(statement, [MOST_AT_ONCE])
    if ((rowCount ?? 0) < MOST_AT_ONCE) return
  }
}

const forget = (table: string, column: string, age: string) => `
  delete from ${table} where ctid = any (array(
    select ctid from ${table} where ${column} < now() - interval '${age}' order by ${column} limit $1
    for update skip locked))`

// Those that failed for good, or that a disabled endpoint has left. Found by the place of the oldest event that is kept, which costs no index
// of their own.
const FORGET_DELIVERIES = `
  delete from webhook_deliveries where ctid = any (array(
    select d.ctid from webhook_endpoints e, lateral (
      select ctid from webhook_deliveries d
      where d.endpoint_id = e.id and d.position < coalesce(
        (select position from events where recorded_at >= now() - interval '${CALLERS_EVENTS_KEPT_DAYS} days' order by recorded_at, position limit 1),
        (select last_value + 1 from event_positions))
      limit $1 for update skip locked
    ) as d
    limit $1))`
