import { ensurePartitions } from '../db/partitions.ts'
import type { Executor, Pool } from '../db/pool.ts'

const MOST_AT_ONCE = 5_000
const KEYS_KEPT_DAYS = 7
const EVENTS_KEPT_DAYS = 30

/** Removes what nobody can ask for any more, and makes the partitions of the months to come. */
export async function keepHouse(pool: Pool): Promise<void> {
  await ensurePartitions(pool)
  await sweep(pool, FORGET_KEYS)
  await sweep(pool, FORGET_EVENTS)
}

/** In portions, each a transaction: whoever needs the same rows waits for one portion at the most. */
async function sweep(db: Executor, statement: string): Promise<void> {
  for (;;) {
    const { rowCount } = await db.query(statement, [MOST_AT_ONCE])
    if ((rowCount ?? 0) < MOST_AT_ONCE) return
  }
}

const FORGET_KEYS = `
  delete from idempotency_keys where ctid = any (array(
    select ctid from idempotency_keys where created_at < now() - interval '${KEYS_KEPT_DAYS} days' order by created_at limit $1
    for update skip locked))`

/** Receipts of messages that were never here, and what nothing has taken up: carriers repeat theirs for seven days. */
const FORGET_EVENTS = `
  delete from carrier_events where ctid = any (array(
    select ctid from carrier_events where received_at < now() - interval '${EVENTS_KEPT_DAYS} days' order by received_at limit $1
    for update skip locked))`
