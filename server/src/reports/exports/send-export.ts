import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type pg from 'pg'
import { readExportQuota } from '../../accounts/quotas.ts'
import { createExportPool, type Pool } from '../../db/pool.ts'
import { logOf } from '../../http/log.ts'
import { resetConnection } from '../../http/unread.ts'
import { createExportSlots, type TakeSlot } from './concurrency.ts'
import type { Source } from './copy.ts'

export type Times = {
  /** How long a client may stop reading. */
  idleMs: number
  /** How long an export may take: meanwhile its snapshot keeps VACUUM from removing old versions of rows. */
  longestMs: number
}

export type Exporting = {
  pool: Pool
  connections: Pool
  takeSlot: TakeSlot
  times: Times
  allowIdle: (reply: FastifyReply, idleMs: number) => void
}

// Progress is visible only when the system's send buffer, up to 4 MB, has room again: with 30 s, a client that read 20 KB a second was
// disconnected.
const TIMES: Times = { idleMs: 300_000, longestMs: 3_600_000 }
const POOL_CLOSE_TIMEOUT_MS = 500

type ExportOptions = Pick<Exporting, 'pool' | 'allowIdle'> & { times?: Times }

/** Opens the connections and slots for all exports of a node, whichever route starts them, until the app is closed. */
export function openExports(app: FastifyInstance, { pool, allowIdle, times = TIMES }: ExportOptions): Exporting {
  const exporting = { pool, connections: createExportPool(pool), takeSlot: createExportSlots(), times, allowIdle }
  // By now every response has ended and released its connection. Do not wait for a connection that is still being opened.
  app.addHook('onClose', async () => {
    await Promise.race([exporting.connections.end(), sleep(POOL_CLOSE_TIMEOUT_MS, undefined, { ref: false })])
  })
  return exporting
}

type ExportFile = Source & { contentType: string; name: string }

/**
 * Streams a file while it is read from the database. The export slot and the connection are released when the response ends, however it
 * ends; closing the connection cancels its statement. Before the first bytes are sent, a failure gets an error response; after that, it
 * closes the connection to the client.
 */
export async function sendExport(
  reply: FastifyReply,
  { pool, connections, takeSlot, times, allowIdle }: Exporting,
  accountId: number,
  open: (client: pg.ClientBase) => Promise<ExportFile>,
): Promise<FastifyReply> {
  const releaseSlot = takeSlot(accountId, await readExportQuota(pool, accountId))
  const isOver: Promise<unknown> = reply.raw.closed ? Promise.resolve() : once(reply.raw, 'close')
  void isOver.then(releaseSlot)
  allowIdle(reply, times.idleMs)
  limitDuration(reply, times.longestMs)
  try {
    const client = await connections.connect()
    // A connection that breaks between two statements emits an `error` event. The next statement fails anyway.
    client.on('error', () => {})
    const opening = open(client)
    const isRead = opening.then(
      (file) => file.isRead,
      () => isOver,
    )
    void Promise.race([isOver, isRead]).then(() => client.release(true))
    const { contentType, name, body } = await opening
    await once(body, 'readable')
    body.once('error', (error) => {
      if (!reply.raw.headersSent || reply.raw.closed) return
      logOf(reply.request).error({ err: error, accountId }, 'an export failed after its first bytes; connection closed')
      closeConnection(reply.raw)
    })
    void isOver.then(() => {
      if (!reply.raw.writableFinished)
        logOf(reply.request).warn({ accountId, ms: Math.round(reply.elapsedTime) }, 'an export did not complete')
    })
    return await reply.headers({ 'Content-Type': contentType, 'Content-Disposition': `attachment; filename="${name}"` }).send(body)
  } catch (error) {
    // A client that has disconnected needs no response, and the cancellation of its statement is not a failure.
    if (reply.raw.closed) return reply.hijack()
    throw error
  }
}

function limitDuration({ request, raw: response }: FastifyReply, longestMs: number): void {
  const deadline = setTimeout(() => {
    logOf(request).warn({ ms: longestMs }, 'an export exceeded its time limit; connection closed')
    closeConnection(response)
  }, longestMs)
  deadline.unref()
  response.once('close', () => clearTimeout(deadline))
}

/** A pipelined response that waits for an earlier one has no socket yet. */
function closeConnection(response: ServerResponse): void {
  if (response.socket === null) response.destroy()
  else resetConnection(response.socket)
}
