import type { Pool } from '../db/pool.ts'

const STORE_EVERY_MS = 1_000
/** A node stores the last use of a key at most this often, so the time is accurate to a minute. */
const AT_MOST_EVERY_MS = 60_000

type UseRecorder = {
  /** Takes well under a microsecond: every request calls it. */
  note: (integrationKey: string) => void
  /** Stores what is due. A timer calls it. */
  store: () => Promise<void>
  stop: () => Promise<void>
}

/**
 * Stores when keys were last used, by a timer and outside of requests. No request waits for it: the table is read only by commands. A failed
 * write is not logged, since the next one, a second later, repeats it.
 */
export function createUseRecorder(pool: Pool, clock = () => performance.now()): UseRecorder {
  /** Uses that are not stored, by the clock. */
  const unstored = new Map<string, number>()
  /** When this node last stored a use of a key, oldest first. */
  const storedAt = new Map<string, number>()
  let storing: Promise<void> | undefined

  async function storeDue(): Promise<void> {
    const now = clock()
    for (const [key, at] of storedAt) {
      if (now - at < AT_MOST_EVERY_MS) break
      storedAt.delete(key)
    }
    const due = [...unstored].filter(([key]) => !storedAt.has(key))
    if (due.length === 0) return
    await storeUses(pool, due, now)
    for (const [key, at] of due) {
      storedAt.set(key, now)
      if (unstored.get(key) === at) unstored.delete(key)
    }
  }

  function storeOnce(): Promise<void> {
    storing ??= storeDue()
      .catch(() => {})
      .finally(() => {
        storing = undefined
      })
    return storing
  }

  const timer = setInterval(storeOnce, STORE_EVERY_MS)
  timer.unref()
  return {
    note: (integrationKey) => unstored.set(integrationKey, clock()),
    store: storeOnce,
    stop: async () => {
      clearInterval(timer)
      await storing
      await storeOnce()
    },
  }
}

/** By the database's clock. Rows are written in the order of their keys, so that two nodes never deadlock; the later use counts. */
async function storeUses(pool: Pool, uses: [integrationKey: string, at: number][], now: number): Promise<void> {
  const values = [uses.map(([key]) => key), uses.map(([, at]) => now - at)]
  await pool.query({ name: 'store-key-uses', text: STORE_USES, values })
}

const STORE_USES = `
  insert into integration_key_uses as u (integration_key, last_used_at)
  select key, now() - ago_ms * interval '1 millisecond' from unnest($1::text[], $2::float8[]) as used (key, ago_ms) order by key
  on conflict (integration_key) do update set last_used_at = excluded.last_used_at where u.last_used_at < excluded.last_used_at`
