import pg from 'pg'
import type { Logger } from 'pino'
import { repeat } from '../background/repeat.ts'
import { BEFORE_EVERY_REQUEST, type Pool } from '../db/pool.ts'
import { QUEUE_CHANNEL, type Work } from '../messages/announce.ts'

// How often the LISTEN connection is checked. Until a dead connection is noticed, workers poll once a second.
const CHECK_EVERY_MS = 5_000

/**
 * Calls `onWake` with the kind of work that a node announces by NOTIFY. After each new connection it calls `onWake` without a kind, since
 * announcements may have been lost before.
 */
export function listenForWork(pool: Pool, onWake: (work?: Work) => void, logger: Logger): { stop: () => Promise<void> } {
  let client: pg.Client | undefined

  /** Does not wait for the connection to close: a connection that hangs never closes. */
  function drop(): void {
    void client?.end().catch(() => {})
    client = undefined
  }

  async function connect(): Promise<pg.Client> {
    const fresh = new pg.Client(pool.options)
    client = fresh
    for (const event of ['error', 'end'] as const) {
      fresh.on(event, () => {
        if (fresh !== client) return
        client = undefined
        loop.wake()
      })
    }
    fresh.on('notification', ({ payload }) => onWake(payload as Work))
    await fresh.connect()
    await pool.options.onConnect?.(fresh)
    await fresh.query({ text: `listen ${QUEUE_CHANNEL}`, ...BEFORE_EVERY_REQUEST })
    onWake()
    return fresh
  }

  async function check(): Promise<number> {
    const connected = client ?? (await connect())
    await connected.query({ text: 'select 1', ...BEFORE_EVERY_REQUEST })
    return CHECK_EVERY_MS
  }

  const loop = repeat('listen for work', logger, check, { onFailure: drop })
  return {
    stop: async () => {
      await loop.stop()
      drop()
    },
  }
}
