import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { TLSSocket } from 'node:tls'
import type { FastifyReply } from 'fastify'
import type pg from 'pg'
import type { Pool } from '../../db/pool.ts'
import type { Source } from './copy.ts'
import type { TakePlace } from './places.ts'

export type Times = {
  /** How long a client may take nothing. */
  idleMs: number
  /** How long an export may take in all: the snapshot that it reads keeps the database from cleaning up behind everybody else. */
  longestMs: number
}

export type Exporting = { connections: Pool; takePlace: TakePlace; times: Times }

export type ExportFile = Source & { contentType: string; name: string }

/**
 * Sends a file while it is read. Its place and its connection are given back when the answer is over, whichever way that ends; the
 * connection is closed, which ends what it is doing. Until there is something to send, a failure is answered as one; from then on it breaks
 * the connection to the client.
 */
export async function answerExport(
  reply: FastifyReply,
  { connections, takePlace, times }: Exporting,
  accountId: number,
  open: (client: pg.ClientBase) => Promise<ExportFile>,
): Promise<FastifyReply> {
  const leave = takePlace(accountId)
  const isOver = closing(reply.raw)
  void isOver.then(leave)
  limitTimes(reply, times)
  try {
    const client = await connect(connections, isOver)
    const { contentType, name, body, isRead } = await open(client)
    void isRead.then(client.close)
    await once(body, 'readable')
    body.once('error', (error) => {
      if (!reply.raw.headersSent || reply.raw.closed) return
      reply.log.error({ err: error, accountId }, 'an export failed in the middle, and was broken off')
      breakOff(reply.raw)
    })
    void isOver.then(() => {
      if (!reply.raw.writableFinished) reply.log.warn({ accountId, ms: Math.round(reply.elapsedTime) }, 'an export did not come to its end')
    })
    return await reply.headers({ 'Content-Type': contentType, 'Content-Disposition': `attachment; filename="${name}"` }).send(body)
  } catch (error) {
    // Who has gone needs no answer, and that their statement was ended is no failure.
    if (reply.raw.closed) return reply.hijack()
    throw error
  }
}

/** Also of one that is closed already. */
async function closing(response: ServerResponse): Promise<void> {
  if (!response.closed) await once(response, 'close')
}

/** One that is closed when `isOver` comes, if not before. */
async function connect(connections: Pool, isOver: Promise<void>): Promise<pg.ClientBase & { close: () => void }> {
  const client = await connections.connect()
  // A connection that breaks between two statements says so by an event, and the next statement fails.
  client.on('error', () => {})
  let isClosed = false
  const close = () => {
    if (!isClosed) client.release(true)
    isClosed = true
  }
  void isOver.then(close)
  return Object.assign(client, { close })
}

/** A client that takes its bytes one by one may take its time; one that takes none may not. */
function limitTimes(reply: FastifyReply, { idleMs, longestMs }: Times): void {
  const { raw: response } = reply
  const cutOff = (reason: string) => {
    reply.log.warn({ reason }, 'an export was cut off')
    breakOff(response)
  }
  const deadline = setTimeout(() => cutOff(`it took longer than ${longestMs} ms`), longestMs)
  deadline.unref()
  response.once('close', () => clearTimeout(deadline))
  response.setTimeout(idleMs, () => {
    // Where nothing waits to be taken, it is the database that takes its time.
    if (response.writableLength > 0) cutOff(`its client took nothing for ${idleMs} ms`)
    else response.setTimeout(idleMs)
  })
}

/** Without the end of its last chunk, and by a reset, so that it shows at once. An answer that waits for the one before it has no socket yet. */
function breakOff(response: ServerResponse): void {
  const { socket } = response
  if (socket === null || socket instanceof TLSSocket) response.destroy()
  else socket.resetAndDestroy()
}
