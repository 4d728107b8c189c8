import type { OutgoingHttpHeaders } from 'node:http'
import type { FastifyReply } from 'fastify'
import { resetConnection } from '../../http/unread.ts'

/** A response that stays open. It never holds more than one write: what a slow reader has missed is read from the database when it is ready. */
export type Connection = {
  /** Whether the connection is open and the reader has taken everything. Write only then. */
  isReady: () => boolean
  /** Does nothing once the response has ended. */
  write: (text: string | Buffer) => void
  /** For how long the reader has taken nothing, although there is something; 0 if it has taken everything. */
  stalledMs: () => number
  /** How long ago something was written. */
  quietMs: () => number
  /** Ends the response. A reader that does not read is disconnected. */
  end: (lastWords?: string) => void
  reset: () => void
}

/** Begins a response of server-sent events, after which Fastify does nothing more for the request. */
export function openConnection(reply: FastifyReply, onClose: () => void): Connection {
  const { raw: response } = reply.hijack()
  response.writeHead(200, {
    ...(reply.getHeaders() as OutgoingHttpHeaders),
    'content-type': 'text/event-stream; charset=utf-8',
    // Proxies such as nginx would keep events back until they have many.
    'x-accel-buffering': 'no',
    // The end of a stream ends the connection, so that a shutdown does not wait for the next request.
    connection: 'close',
  })
  let writtenAt = performance.now()
  let progressAt = writtenAt
  let unread = 0
  response.once('close', onClose)
  // Without a listener, an error event of the response would end the process.
  response.on('error', () => {})

  function taken(): void {
    unread -= 1
    progressAt = performance.now()
  }
  const isOver = () => response.writableEnded || response.destroyed
  const isReady = () => unread === 0 && !isOver()
  const reset = () => void (response.socket === null ? response.destroy() : resetConnection(response.socket))
  return {
    isReady,
    write: (text) => {
      if (isOver()) return
      writtenAt = performance.now()
      if (unread === 0) progressAt = writtenAt
      unread += 1
      response.write(text, taken)
    },
    stalledMs: () => (unread === 0 ? 0 : performance.now() - progressAt),
    quietMs: () => performance.now() - writtenAt,
    end: (lastWords) => (isReady() ? void response.end(lastWords) : reset()),
    reset,
  }
}
