import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../config.ts'
import { loadKeyring } from '../encryption/keyring.ts'
import { OperatorError } from '../errors.ts'
import { joinEmbeddedServer } from './embedded/server.ts'
import { ensureSchema } from './migrate.ts'
import { ensurePartitions } from './partitions.ts'
import { checkServer, createPool, isLockedOut, isUnavailable, type Pool } from './pool.ts'

export type Database = { pool: Pool; close: () => Promise<void> }

type Options = {
  /** A service waits for its database for a while and brings the schema up to date; a command does neither; a migration does the latter itself. */
  role: 'service' | 'command' | 'migration'
  onProgress: (sentence: string) => void
}

// A database that comes up beside the service (after a power cut, in an orchestrator) gets this long.
const SERVICE_PATIENCE_MS = 30_000
const POOL_CLOSE_PATIENCE_MS = 500

/** Opens the configured database, or starts the embedded one. It is then of a version and a schema that this program can work with. */
export async function openDatabase(config: Config, options: Options): Promise<Database> {
  const embedded =
    config.databaseUrl === undefined ? await joinEmbeddedServer(config.dataDir, options.role === 'service', options.onProgress) : undefined
  const connection = embedded?.connection ?? { connectionString: config.databaseUrl as string }
  // One that breaks while nobody uses it harms nobody: the next query opens another, and says so if that fails.
  const pool = createPool(connection, () => options.onProgress('An idle connection to the database broke.'))
  const database = {
    pool,
    close: async () => {
      // A statement that hangs must not hold up the stop: what it would do is undone when its connection breaks.
      await Promise.race([pool.end(), sleep(POOL_CLOSE_PATIENCE_MS, undefined, { ref: false })])
      await embedded?.leave()
    },
  }
  try {
    if (embedded === undefined) await untilReachable(pool, options)
    await checkServer(pool)
    // A command sets up an empty database, but leaves the upgrade of one that nodes may be working on to `migrate` and `serve`; the
    // embedded one has no other nodes.
    const mayUpgrade = options.role === 'service' || embedded !== undefined
    if (options.role !== 'migration') await ensureSchema(pool, mayUpgrade, () => loadKeyring(config))
    if (options.role === 'service') await ensurePartitions(pool)
    return database
  } catch (error) {
    await database.close()
    throw error
  }
}

async function untilReachable(pool: Pool, { role, onProgress }: Options): Promise<void> {
  const giveUpAt = performance.now() + (role === 'service' ? SERVICE_PATIENCE_MS : 0)
  for (;;) {
    try {
      await pool.query('select 1')
      return
    } catch (error) {
      const reason = (error as Error).message || (error as NodeJS.ErrnoException).code
      const sentence = `PostgreSQL can't be reached at the address in HERALD_DATABASE_URL: ${reason}.`
      // An address that is wrong does not become right by waiting.
      if (!isUnavailable(error) || isLockedOut(error) || performance.now() > giveUpAt) throw new OperatorError(sentence)
      onProgress(`${sentence} Trying again.`)
      await sleep(1_000)
    }
  }
}
