import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import type pg from 'pg'
import { readExportQuota } from '../../accounts/quotas.ts'
import type { Pool } from '../../db/pool.ts'
import { logOf } from '../../http/log.ts'
import { breakOff } from '../../http/unread.ts'
import type { Source } from './copy.ts'
import type { TakePlace } from './places.ts'

export type Times = {
  /** How long a client may read nothing. */
  idleMs: number
  /** How long an export may take: its snapshot keeps the database from vacuuming what everybody else has changed. */
  longestMs: number
}

export type Exporting = {
  pool: Pool
  connections: Pool
  takePlace: TakePlace
  times: Times
  allowIdle: (reply: FastifyReply, idleMs: number) => void
}

export type ExportFile = Source & { contentType: string; name: string }

/**
 * Sends a file while it is read. The export slot and the connection are released when the response ends, however it ends; closing the
 * connection ends its statement. Before the first bytes are sent, a failure gets an error response; after that it breaks the connection
 * to the client.
 */
export async function answerExport(
  reply: FastifyReply,
  { pool, connections, takePlace, times, allowIdle }: Exporting,
  accountId: number,
  open: (client: pg.ClientBase) => Promise<ExportFile>,
): Promise<FastifyReply> {
  const leave = takePlace(accountId, await readExportQuota(pool, accountId))
  const isOver: Promise<unknown> = reply.raw.closed ? Promise.resolve() : once(reply.raw, 'close')
  void isOver.then(leave)
  allowIdle(reply, times.idleMs)
  limitDuration(reply, times.longestMs)
  try {
    const client = await connections.connect()
    // A connection that breaks between two statements says so by an event, and the next statement fails.
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
      logOf(reply.request).error({ err: error, accountId }, 'an export failed in the middle, and was broken off')
      cutOff(reply.raw)
    })
    void isOver.then(() => {
      if (!reply.raw.writableFinished)
        logOf(reply.request).warn({ accountId, ms: Math.round(reply.elapsedTime) }, 'an export did not come to its end')
    })
    return await reply.headers({ 'Content-Type': contentType, 'Content-Disposition': `attachment; filename="${name}"` }).send(body)
  } catch (error) {
    // A client that has gone needs no response, and that its statement was cancelled is no failure.
    if (reply.raw.closed) return reply.hijack()
    throw error
  }
}

function limitDuration({ log, raw: response }: FastifyReply, longestMs: number): void {
  const deadline = setTimeout(() => {
    log.warn({ reason: `it took longer than ${longestMs} ms` }, 'an export was cut off')
    cutOff(response)
  }, longestMs)
  deadline.unref()
  response.once('close', () => clearTimeout(deadline))
}

/** A response that waits for the one before it has no socket yet. */
function cutOff(response: ServerResponse): void {
  if (response.socket === null) response.destroy()
  else breakOff(response.socket)
}
