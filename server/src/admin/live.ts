import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Pool } from '../db/pool.ts'
import { type Cursors, createCursors } from '../events/cursor.ts'
import { createHealthReader, type Health } from '../health/health.ts'
import type { NodeStatus } from '../health/node-status.ts'
import type { UnreadWatch } from '../http/unread.ts'
import { createStreams, type StreamLimits, type Streams } from './stream/streams.ts'

/** What the routes of streams and of the health need. */
export type Live = {
  pool: Pool
  cursors: Cursors
  streams: Streams
  readHealth: () => Promise<Health>
  currentNode: () => NodeStatus | undefined
}

type Options = {
  hotPool: Pool
  cursorKey: Buffer
  logger: Logger
  registry: Registry
  unread: Pick<UnreadWatch, 'allowIdle'>
  currentNode?: () => NodeStatus | undefined
  streamLimits?: Partial<StreamLimits>
}

export function createLive({ hotPool: pool, cursorKey, currentNode = () => undefined, streamLimits: limits, ...options }: Options): Live {
  const cursors = createCursors(cursorKey)
  const readHealth = createHealthReader(pool)
  /** While the database is out of reach: what this process knows, as GET /health does. */
  const readHealthText = async () =>
    JSON.stringify(await readHealth().catch(() => ({ statusCode: 503, code: 'RCS_UNAVAILABLE', node: currentNode() })))
  const streams = createStreams({ ...options, pool, cursors, limits, readHealth: readHealthText })
  return { pool, cursors, streams, readHealth, currentNode }
}
