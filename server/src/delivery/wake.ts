import pg from 'pg'
import type { Logger } from 'pino'
import { repeat } from '../background/repeat.ts'
import { BEFORE_EVERY_REQUEST, type Pool } from '../db/pool.ts'
import { QUEUE_CHANNEL, type Work } from '../messages/announce.ts'

// A connection that has died in silence is noticed within this time. Until then the workers look for themselves, once a second.
const CHECK_EVERY_MS = 5_000

/** Calls `onWake` when a node announces work, with its kind; and with none after any gap, since anything may have happened in it. */
export function listenForWork(pool: Pool, onWake: (work?: Work) => void, logger: Logger): { stop: () => Promise<void> } {
  let client: pg.Client | undefined

  /** Without waiting: a connection that hangs would not say goodbye either. */
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
