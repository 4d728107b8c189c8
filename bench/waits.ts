import { openClient } from './postgres.ts'

// What PostgreSQL's connections wait for, looked at every 50 ms.

const EVERY_MS = 50

/** How often a connection that was not idle was seen waiting for what, as `type: event`; `running` where it waited for nothing. */
export type Waits = { samples: number; seen: Record<string, number> }

export async function watchWaits(databaseUrl: string): Promise<() => Promise<Waits>> {
  const { client, close } = await openClient(databaseUrl)
  const waits: Waits = { samples: 0, seen: {} }
  let isOver = false
  async function look(): Promise<void> {
    const { rows } = await client.query<{ what: string; count: number }>(
      `select coalesce(wait_event_type || ': ' || wait_event, 'running') as what, count(*)::int as count
       from pg_stat_activity
       where datname = current_database() and backend_type = 'client backend' and state <> 'idle' and pid <> pg_backend_pid()
       group by 1`,
    )
    waits.samples += 1
    for (const { what, count } of rows) waits.seen[what] = (waits.seen[what] ?? 0) + count
  }
  async function keepLooking(): Promise<void> {
    while (!isOver) {
      await look()
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
    }
  }
  const looking = keepLooking()
  return async () => {
    isOver = true
    await looking
    await close()
    return waits
  }
}
