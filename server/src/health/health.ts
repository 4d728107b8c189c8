import { schemaState } from '../db/migrate.ts'
import type { Executor, Pool } from '../db/pool.ts'
import { type Backlog, readQueue, readSmsQueue, readWebhookBacklog } from './backlog.ts'
import { clockDifferenceMs } from './clock.ts'
import { type NodeStatus, readNodes } from './node-status.ts'

type DatabaseHealth = {
  version: string
  schema: Awaited<ReturnType<typeof schemaState>>
  /** The name of the last migration, and how many there are. */
  lastMigration: string
  migrations: number
  /** Null if the service role may not read it. */
  sizeBytes: number | null
  clockDifferenceMs: number
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

// Callers that ask while the figures are read, or within this time after that, share them. Otherwise readings of a slow database would pile up.
const FRESH_MS = 1_000
// PostgreSQL looks at every file of the database.
const SIZE_EVERY_MS = 60_000

/** Makes a function that reads the health of the installation. It costs the same whatever the history and the length of the queues. */
export function createHealthReader(hotPool: Pool): () => Promise<Health> {
  let latest: { reading: Promise<Health>; endedAt: number } | undefined
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
    return {
      checkedAt: new Date(),
      nodes,
      carriers: carriersOf(nodes),
      queue: await readQueue(hotPool),
      smsQueue: await readSmsQueue(hotPool),
      webhooks: await readWebhookBacklog(hotPool),
      events: { behindMs: Math.max(0, ...nodes.map(({ eventsBehindMs }) => eventsBehindMs)) },
      database: { ...(await readDatabase(hotPool)), sizeBytes: await sizeBytes() },
    }
  }

  return () => {
    if (latest === undefined || performance.now() - latest.endedAt > FRESH_MS) {
      const started = { reading: read(), endedAt: Number.POSITIVE_INFINITY }
      latest = started
      started.reading.then(
        () => {
          started.endedAt = performance.now()
        },
        () => {
          latest = undefined
        },
      )
    }
    return latest.reading
  }
}

const READ_SIZE = `
  select case when has_database_privilege(current_database(), 'connect') then pg_database_size(current_database()) end as bytes`

async function readDatabase(db: Executor): Promise<Omit<DatabaseHealth, 'sizeBytes'>> {
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
