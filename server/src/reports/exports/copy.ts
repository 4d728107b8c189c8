import { Readable } from 'node:stream'
import type pg from 'pg'
import { BYTE_ORDER_MARK, csvRow } from './csv.ts'

const BUFFER_BYTES = 64 * 1024

/** The data of an export. `isRead` resolves when the database is no longer needed; errors appear on `body`. */
export type Source = { body: Readable; isRead: Promise<void> }

/**
 * The output of a COPY statement as a stream. It ends when PostgreSQL reports completion, and fails if the statement or the connection
 * fails. The database is read as fast as the stream is.
 *
 * Does not use pg-copy-streams, which collects the rows of every 8 KiB in a buffer of its own: for a million messages, with everything that
 * follows, that took 4.3 s of CPU time instead of 2.9 s, and 65 MiB of memory instead of 29.
 */
export function openCopy(client: pg.ClientBase, statement: string, { bom = false } = {}): Source {
  const { promise: isRead, resolve: settle } = Promise.withResolvers<void>()
  let socket: pg.Connection['stream'] | undefined
  const body = new Readable({ read: () => void socket?.resume() })
  let buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  let written = buffer.write(bom ? BYTE_ORDER_MARK : '')
  const send = (nextBytes = 0) => {
    if (written > 0 && !body.push(buffer.subarray(0, written))) socket?.pause()
    buffer = Buffer.allocUnsafeSlow(Math.max(BUFFER_BYTES, nextBytes))
    written = 0
  }
  client.query({
    submit: (connection: pg.Connection) => {
      socket = connection.stream
      connection.query(statement)
    },
    // The driver calls these for the messages of PostgreSQL's protocol; handleCopyData once for each row.
    handleCopyData: ({ chunk }: { chunk: Buffer }) => {
      const row = csvRow(chunk.toString())
      const bytes = Buffer.byteLength(row)
      if (written + bytes > buffer.length) send(bytes)
      written += buffer.write(row, written)
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
