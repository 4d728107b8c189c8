import { schemaState } from '../db/migrate.ts'
import type { Executor, Pool } from '../db/pool.ts'
import { type Backlog, readQueue, readSmsQueue, readWebhookBacklog } from './backlog.ts'
import { clockDifferenceMs } from './clock.ts'
import { type NodeStatus, readNodes } from './node-status.ts'
import { sharedReading } from './shared-reading.ts'
import { readStandbys, type Standbys } from './standbys.ts'

type DatabaseHealth = {
  version: string
  schema: Awaited<ReturnType<typeof schemaState>>
  /** The name of the last migration, and how many there are. */
  lastMigration: string
  migrations: number
  /** Null if the service role may not read it. */
  sizeBytes: number | null
  clockDifferenceMs: number
  standbys: Standbys
}

type CarrierFigures = NodeStatus['carriers'][number]

/** A network, by all processes that deliver to it. `openCircuits`: how many of them have paused it after failures. */
type CarrierOfNodes = Pick<CarrierFigures, 'name' | 'kind' | 'sessions' | 'outcomes'> & { nodes: number; openCircuits: number }

export type Health = {
  checkedAt: Date
  nodes: NodeStatus[]
  carriers: CarrierOfNodes[]
  queue: Backlog
  smsQueue: Backlog
  webhooks: Backlog & { failing: number }
  /** The longest time that events have waited for their positions, as the routing processes report it. */
  events: { behindMs: number }
  database: DatabaseHealth
}

const FRESH_MS = 1_000
// PostgreSQL looks at every file of the database.
const SIZE_EVERY_MS = 60_000
/** Processes report every five seconds. What a lost process reported would hide a lost network: its session would still count. */
const REPORTED_MS = 10_000

/** Makes a function that reads the health of the installation. It costs the same whatever the history and the length of the queues. */
export function createHealthReader(hotPool: Pool): () => Promise<Health> {
  let size: { at: number; bytes: number | null } | undefined

  async function sizeBytes(): Promise<number | null> {
    if (size === undefined || performance.now() - size.at > SIZE_EVERY_MS) {
      const { rows } = await hotPool.query<{ bytes: number | null }>(READ_SIZE)
      size = { at: performance.now(), bytes: rows[0]?.bytes ?? null }
    }
    return size.bytes
  }

  /** One statement after the other: the figures are for people, and must not take connections from messages. */
  async function read(): Promise<Health> {
    const nodes = await readNodes(hotPool)
    const latestMs = Math.max(...nodes.map(({ seenAt }) => seenAt.getTime()))
    const recent = nodes.filter(({ seenAt }) => latestMs - seenAt.getTime() < REPORTED_MS)
    return {
      checkedAt: new Date(),
      nodes,
      carriers: carriersOf(recent),
      queue: await readQueue(hotPool),
      smsQueue: await readSmsQueue(hotPool),
      webhooks: await readWebhookBacklog(hotPool),
      events: { behindMs: Math.max(0, ...recent.map(({ eventsBehindMs }) => eventsBehindMs)) },
      database: {
        ...(await readDatabase(hotPool)),
        sizeBytes: await sizeBytes(),
        standbys: await readStandbys(hotPool, Math.max(0, ...nodes.map(({ standbysSeen }) => standbysSeen))),
      },
    }
  }

  return sharedReading(read, FRESH_MS)
}

const READ_SIZE = `
  select case when has_database_privilege(current_database(), 'connect') then pg_database_size(current_database()) end as bytes`

async function readDatabase(db: Executor): Promise<Omit<DatabaseHealth, 'sizeBytes' | 'standbys'>> {
  const schema = await schemaState(db)
  const askedAt = Date.now()
  const { rows } = await db.query<{ version: string; lastMigration: string; migrations: number; now: Date }>({
    name: 'read-database',
    text: `select current_setting('server_version') as version, max(name) as "lastMigration", count(*)::int as migrations, clock_timestamp() as now
           from schema_migrations`,
  })
  const { now, ...found } = rows[0] as { version: string; lastMigration: string; migrations: number; now: Date }
  return { schema, ...found, clockDifferenceMs: clockDifferenceMs(askedAt, now) }
}

function carriersOf(nodes: NodeStatus[]): CarrierOfNodes[] {
  const byName = Map.groupBy(
    nodes.flatMap(({ carriers }) => carriers),
    ({ name }) => name,
  )
  return [...byName.values()]
    .map((of) => ({
      name: (of[0] as CarrierFigures).name,
      kind: (of[0] as CarrierFigures).kind,
      nodes: of.length,
      sessions: of.some(({ sessions }) => sessions !== null) ? of.reduce((sum, { sessions }) => sum + (sessions ?? 0), 0) : null,
      openCircuits: of.filter(({ circuit }) => circuit === 'open').length,
      outcomes: sumOf(of.map(({ outcomes }) => outcomes)),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

function sumOf(counts: Record<string, number>[]): Record<string, number> {
  const sum: Record<string, number> = {}
  for (const each of counts) for (const [name, count] of Object.entries(each)) sum[name] = (sum[name] ?? 0) + count
  return sum
}
