import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../config.ts'
import { noSuch, outOfReach } from '../errors.ts'
import { hasCluster } from './embedded/cluster.ts'
import { joinEmbeddedServer } from './embedded/server.ts'
import { ensureSchema, requireSchema } from './migrate.ts'
import { ensurePartitions } from './partitions.ts'
import { checkServer, createHotPool, createOwnerPool, createPool, isLockedOut, isUnavailable, type Pool } from './pool.ts'
import { isRoleRefused } from './service-role.ts'

/** `hotPool`: for hot statements. It opens its first connection with its first statement, so a command opens none. */
export type Pools = { pool: Pool; hotPool: Pool }
export type Database = Pools & { close: () => Promise<void> }

type Options = {
  /**
   * A service waits for its database and applies missing migrations. A command does neither. A migration gets the pool of the owner. An
   * inspection changes nothing: it fails if there is no database, or not the schema of this version.
   */
  role: 'service' | 'command' | 'migration' | 'inspection'
  onProgress: (sentence: string) => void
}

// How long a service waits for a database that starts at the same time (after a power cut, in an orchestrator).
const SERVICE_TIMEOUT_MS = 30_000
const POOL_CLOSE_TIMEOUT_MS = 500

/** Opens the configured database, or starts the embedded one. Ensures that Herald supports its version and, except to migrate, its schema. */
export async function openDatabase(config: Config, options: Options): Promise<Database> {
  const embedded = config.databaseUrl === undefined ? await joinEmbedded(config.dataDir, options) : undefined
  const connection = embedded?.connection ?? { connectionString: config.databaseUrl as string }
  // An idle connection that breaks does no harm: the next query opens another one, and fails if that is impossible. While the database closes,
  // nobody needs to know: a pool can take longer than `close` waits for it, and its connections then break with the embedded database.
  let isClosing = false
  const onIdleError = () => {
    if (!isClosing) options.onProgress('An idle connection to the database broke.')
  }
  const owner = createOwnerPool(connection, onIdleError)
  const pool = options.role === 'migration' ? owner : createPool(connection, onIdleError)
  const hotPool = createHotPool(connection, onIdleError)
  const open = new Set([pool, hotPool, owner])
  const database = {
    pool,
    hotPool,
    close: async () => {
      isClosing = true
      // A hanging statement must not delay the shutdown. PostgreSQL rolls it back when its connection breaks.
      await Promise.race([Promise.all([...open].map((each) => each.end())), sleep(POOL_CLOSE_TIMEOUT_MS, undefined, { ref: false })])
      await embedded?.leave()
    },
  }
  try {
    if (embedded === undefined) await untilReachable(pool, options)
    // A command sets up an empty database, but does not upgrade one that nodes may be using: `migrate` and `serve` do that. The embedded
    // database has no other nodes.
    const mayUpgrade = options.role === 'service' || embedded !== undefined
    if (options.role === 'inspection') await requireSchema(pool)
    else if (options.role !== 'migration') await ensureSchema({ pool, owner }, mayUpgrade)
    await checkServer(pool)
    if (options.role === 'service') await ensurePartitions(pool)
    if (pool !== owner) {
      open.delete(owner)
      await owner.end()
    }
    return database
  } catch (error) {
    await database.close()
    throw error
  }
}

/** A command in a wrong directory would show nothing and exit with 0, so it says that the database is new. */
async function joinEmbedded(dataDir: string, { role, onProgress }: Options): Promise<Awaited<ReturnType<typeof joinEmbeddedServer>>> {
  const isNew = !hasCluster(dataDir)
  if (isNew && role === 'inspection') {
    throw noSuch(
      `There is no database in ${dataDir}: "herald serve" creates one. If there should be one, set HERALD_DATA_DIR or HERALD_DATABASE_URL.`,
    )
  }
  const server = await joinEmbeddedServer(dataDir, role === 'service', onProgress)
  if (isNew && role !== 'service') onProgress(`There was no database in ${dataDir}, so this command created a new, empty one.`)
  return server
}

async function untilReachable(pool: Pool, { role, onProgress }: Options): Promise<void> {
  const deadline = performance.now() + (role === 'service' ? SERVICE_TIMEOUT_MS : 0)
  for (;;) {
    try {
      await pool.query('select 1')
      return
    } catch (error) {
      // The database is new on its server, and a migration will set up the role.
      if (isRoleRefused(error)) return
      const reason = (error as Error).message || (error as NodeJS.ErrnoException).code
      const sentence = `PostgreSQL can't be reached at the address in HERALD_DATABASE_URL: ${reason}.`
      // Waiting does not fix a wrong address, user or password.
      if (!isUnavailable(error) || isLockedOut(error) || performance.now() > deadline) throw outOfReach(sentence)
      onProgress(`${sentence} Trying again.`)
      await sleep(1_000)
    }
  }
}
