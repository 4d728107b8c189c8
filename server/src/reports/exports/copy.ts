import { Readable } from 'node:stream'
import type pg from 'pg'
import { BYTE_ORDER_MARK, csvRow } from './csv.ts'

const PIECE_BYTES = 64 * 1024

/** What an export sends. `isRead` comes when the database is no longer needed for it; how it went shows by `body`. */
export type Source = { body: Readable; isRead: Promise<void> }

/**
 * What a COPY statement writes, as a file. It ends when PostgreSQL says that all is written; where the statement fails, or its connection
 * breaks, the body does. The database is read as fast as the body is.
 *
 * Not by pg-copy-streams, which gathers the rows of every 8 KiB in a buffer of its own: for a million messages, with what follows, that took
 * 4.3 s of the processor instead of 2.9 s, and 65 MiB of memory instead of 29.
 */
export function openCopy(client: pg.ClientBase, statement: string, { bom = false } = {}): Source {
  const { promise: isRead, resolve: settle } = Promise.withResolvers<void>()
  let socket: pg.Connection['stream'] | undefined
  const body = new Readable({ read: () => void socket?.resume() })
  let piece = Buffer.allocUnsafeSlow(PIECE_BYTES)
  let written = piece.write(bom ? BYTE_ORDER_MARK : '')
  const send = (nextBytes = 0) => {
    if (written > 0 && !body.push(piece.subarray(0, written))) socket?.pause()
    piece = Buffer.allocUnsafeSlow(Math.max(PIECE_BYTES, nextBytes))
    written = 0
  }
  client.query({
    submit: (connection: pg.Connection) => {
      socket = connection.stream
      connection.query(statement)
    },
    // What the driver calls, by the messages of PostgreSQL's protocol.
    // One for each row.
    handleCopyData: ({ chunk }: { chunk: Buffer }) => {
      const row = csvRow(chunk.toString())
      const bytes = Buffer.byteLength(row)
      if (written + bytes > piece.length) send(bytes)
      written += piece.write(row, written)
    },
    handleCommandComplete: () => send(),
    handleReadyForQuery: () => {
      body.push(null)
      settle()
    },
    handleError: (error: Error) => {
      body.destroy(error)
      settle()
    },
  })
  return { body, isRead }
}
