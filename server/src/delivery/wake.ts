import pg from 'pg'
import type { Logger } from 'pino'
import { repeat } from '../background/repeat.ts'
import { BEFORE_EVERY_REQUEST, type Pool } from '../db/pool.ts'
import { QUEUE_CHANNEL, type Work } from '../messages/announce.ts'

// A connection that has died in silence is noticed within this time. Until then the workers look for themselves, once a second.
const CHECK_EVERY_MS = 5_000

/**
 * Calls `onWake` when a node announces work, with its kind; and with none after any gap, since anything may have happened in it.
 */
export function listenForWork(pool: Pool, onWake: (work?: Work) => void, logger: Logger): { stop: () => Promise<void> } {
  let client: pg.Client | undefined
  async function check(): Promise<number> {
    client ??= await connect(pool, onWake, (lost) => {
      if (lost !== client) return
      client = undefined
      loop.wake()
    })
    await client.query({ text: 'select 1', ...BEFORE_EVERY_REQUEST })
    return CHECK_EVERY_MS
  }
  function onFailure(): void {
    drop(client)
    client = undefined
  }
  const loop = repeat('listen for work', logger, check, { onFailure })
  return {
    stop: async () => {
      await loop.stop()
      drop(client)
    },
  }
}

async function connect(pool: Pool, onWake: (work?: Work) => void, onLost: (client: pg.Client) => void): Promise<pg.Client> {
  const client = new pg.Client(pool.options)
  for (const event of ['error', 'end'] as const) client.on(event, () => onLost(client))
  client.on('notification', ({ payload }) => onWake(payload as Work))
  try {
    await client.connect()
    await client.query({ text: `listen ${QUEUE_CHANNEL}`, ...BEFORE_EVERY_REQUEST })
    onWake()
    return client
  } catch (error) {
    drop(client)
    throw error
  }
}

/** Without waiting: a connection that hangs would not say goodbye either. */
function drop(client: pg.Client | undefined): void {
  void client?.end().catch(() => {})
}
