import { type Executor, type Pool, transaction } from '../../src/db/pool.ts'
import { ownerOf } from '../support/database.ts'
import { until } from '../support/until.ts'

/** Starts `work` while another transaction has made `change`, and commits that once `work` waits for its locks. */
export async function whileOthersCommit<T>(pool: Pool, change: (tx: Executor) => Promise<unknown>, work: () => Promise<T>): Promise<T> {
  let working: Promise<T> | undefined
  await transaction(pool, async (tx) => {
    await tx.query('set local idle_in_transaction_session_timeout = 0')
    await change(tx)
    working = work()
    await untilBlocked(pool, 1)
  })
  return await (working as Promise<T>)
}

/** Waits until this many connections wait for a lock. */
export async function untilBlocked(pool: Pool, count: number): Promise<void> {
  const blocked = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  await until(`${count} connections wait for locks`, async () => ((await ownerOf(pool).query(blocked)).rowCount as number) >= count)
}
