import { setTimeout as sleep } from 'node:timers/promises'
import { EXPORTS_NAME, type Executor } from './pool.ts'

// Every transaction that writes about messages is shorter: PostgreSQL ends a statement, and a pause between two statements, after 3.5 s.
// Longer transactions, such as backups and imports, record nothing about messages.
const TIMEOUT_MS = 10_000
const POLL_MS = 20

/**
 * Waits for the transactions that run now, for ten seconds at most. Transactions that begin later see everything that was committed before this
 * call. Exports only read, and may run for an hour.
 */
export async function awaitTransactions(db: Executor): Promise<void> {
  let running = await readRunning(db)
  for (const deadline = performance.now() + TIMEOUT_MS; running.size > 0 && performance.now() < deadline; ) {
    await sleep(POLL_MS)
    running = running.intersection(await readRunning(db))
  }
}

async function readRunning(db: Executor): Promise<Set<string>> {
  const { rows } = await db.query<{ id: string }>(RUNNING)
  return new Set(rows.map(({ id }) => id))
}

// Each transaction holds a lock on its own virtual id. A role that may not read the activity of other roles sees no `backend_type`.
const RUNNING = `
  select l.virtualxid as id from pg_locks l join pg_stat_activity a on a.pid = l.pid
  where l.locktype = 'virtualxid' and l.mode = 'ExclusiveLock' and l.pid <> pg_backend_pid() and a.datname = current_database()
    and a.application_name <> '${EXPORTS_NAME}' and coalesce(a.backend_type, 'client backend') = 'client backend'`
