import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Logger } from 'pino'
import { repeat } from '../background/repeat.ts'
import type { CarrierHealth } from '../carriers/carrier.ts'
import type { Executor, Pool } from '../db/pool.ts'
import { clockDifferenceMs } from './clock.ts'
import { createHighest } from './standbys.ts'

/** How busy the connections of a pool are. `waiting`: callers that wait for one. */
type PoolUse = { name: string; busy: number; max: number; waiting: number }

/** What a process says about itself. */
type Figures = {
  /** How long the event loop was delayed in the last five seconds, at the 99th percentile. */
  loopDelayMs: number
  pools: PoolUse[]
  /** The networks that the process delivers to; none if it does not deliver. */
  carriers: (CarrierHealth & { name: string; kind: 'rcs' | 'sms'; outcomes: Record<string, number> })[]
  /** Streams of /admin/v1/stream. */
  streams: number
  /** How far the log is behind: the time since the process last found that no event waited for its position. */
  eventsBehindMs: number
  /** How far the database's clock is ahead of the clock of the process's machine. Null until it was compared. */
  clockDifferenceMs: number | null
  /** The most standbys of the database that were connected at once within the last hour. */
  standbysSeen: number
}

type Identity = { nodeId: string; host: string; pid: number; roles: string[]; version: string; startedAt: Date }
export type NodeStatus = Identity & Figures & { seenAt: Date }

/** The figures that only the process as a whole knows. */
export type KnownFigures = Omit<Figures, 'loopDelayMs' | 'pools' | 'clockDifferenceMs' | 'standbysSeen'>

export type NodeStatusWriter = {
  /** What this process would write now. Needs no database. */
  current: () => NodeStatus
  /** Stops writing, and removes the row. */
  stop: () => Promise<void>
}

const WRITE_EVERY_MS = 5_000
/** A row that is older is of a process that has long ended or lost the database. Until then, an operator sees that it is lost. */
const GONE_AFTER = `interval '15 minutes'`
const LOOP_RESOLUTION_MS = 20
// How long a process that ends waits for the removal of its row.
const REMOVE_TIMEOUT_MS = 500

type Options = {
  pools: { pool: Pool; hotPool: Pool }
  logger: Logger
  roles: readonly string[]
  version: string
  /** Called for every write. */
  known: () => KnownFigures
  everyMs?: number | undefined
}

/** Writes the status of this process to the database, every five seconds. A write takes 0.5 ms of CPU, 0.2 of them PostgreSQL's. */
export function startNodeStatus({
  pools: { pool, hotPool },
  logger,
  roles,
  version,
  known,
  everyMs = WRITE_EVERY_MS,
}: Options): NodeStatusWriter {
  const startedAt = new Date(Date.now() - process.uptime() * 1_000)
  const identity: Identity = { nodeId: randomUUID(), host: hostname(), pid: process.pid, roles: [...roles], version, startedAt }
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS })
  loop.enable()
  let clockMs: number | null = null
  const standbys = createHighest()

  const figures = (): Figures => ({
    // The histogram has the time between two ticks of its timer.
    loopDelayMs: Math.max(0, Math.round(loop.percentile(99) / 1e6) - LOOP_RESOLUTION_MS),
    pools: [useOf('general', pool), useOf('hot', hotPool)],
    clockDifferenceMs: clockMs,
    standbysSeen: standbys.value(),
    ...known(),
  })

  const writing = repeat('write node status', logger, async () => {
    const askedAt = Date.now()
    const { now, standbys: connected } = await writeNodeStatus(hotPool, identity, figures())
    clockMs = clockDifferenceMs(askedAt, now)
    standbys.note(connected ?? 0)
    loop.reset()
    return everyMs
  })

  return {
    current: () => ({ ...identity, ...figures(), seenAt: new Date() }),
    stop: async () => {
      loop.disable()
      await writing.stop()
      const removal = { text: 'delete from node_status where node_id = $1', values: [identity.nodeId], query_timeout: REMOVE_TIMEOUT_MS }
      await hotPool.query(removal).catch(() => {})
    },
  }
}

function useOf(name: string, { totalCount, idleCount, waitingCount, options }: Pool): PoolUse {
  return { name, busy: totalCount - idleCount, max: options.max, waiting: waitingCount }
}

/** Also deletes the rows of processes that are gone. Skips a row that another process deletes: two that wait for each other would deadlock. */
export const WRITE_NODE_STATUS = `
  with gone as (
    select node_id from node_status where seen_at < now() - ${GONE_AFTER} and node_id <> $1 for update skip locked
  ), deleted as (
    delete from node_status where node_id = any (array(select node_id from gone))
  )
  insert into node_status (node_id, host, pid, roles, version, started_at, seen_at, figures)
  values ($1, $2, $3, $4, $5, $6, clock_timestamp(), $7)
  on conflict (node_id) do update set seen_at = excluded.seen_at, figures = excluded.figures
  returning clock_timestamp() as now, (select connected from count_standbys()) as standbys`

type Written = { now: Date; standbys: number | null }

/** Returns the time by the clock of the database, and how many standbys it has. */
async function writeNodeStatus(db: Executor, identity: Identity, figures: Figures): Promise<Written> {
  const { nodeId, host, pid, roles, version, startedAt } = identity
  const { rows } = await db.query<Written>({
    name: 'write-node-status',
    text: WRITE_NODE_STATUS,
    values: [nodeId, host, pid, roles, version, startedAt, JSON.stringify(figures)],
  })
  return rows[0] as Written
}

export const READ_NODES = `
  select node_id as "nodeId", host, pid, roles, version, started_at as "startedAt", seen_at as "seenAt", figures
  from node_status where seen_at >= now() - ${GONE_AFTER} order by host, started_at, node_id`

/** An earlier version saw no standbys. */
type Row = Identity & { seenAt: Date; figures: Omit<Figures, 'standbysSeen'> & Partial<Figures> }

/** The processes that have written their status within the last 15 minutes, and have not shut down normally. */
export async function readNodes(db: Executor): Promise<NodeStatus[]> {
  const { rows } = await db.query<Row>({ name: 'read-nodes', text: READ_NODES })
  return rows.map(({ figures, ...node }) => ({ ...node, standbysSeen: 0, ...figures }))
}
