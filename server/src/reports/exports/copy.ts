import { Readable } from 'node:stream'
import type pg from 'pg'
import type { Column } from './columns.ts'
import { BYTE_ORDER_MARK, csvRow } from './csv.ts'

const CHUNK_LENGTH = 16 * 1024

/** A COPY statement for the rows of a query without its `select`. COPY takes no parameters. Texts are always quoted: csv.ts relies on it. */
export function copyRows(columns: readonly Column[], from: string): string {
  const selected = columns.map(({ name, sql }) => `${sql} as "${name}"`)
  const texts = columns.filter(({ isText }) => isText).map(({ name }) => `"${name}"`)
  return `copy (select ${selected.join(', ')} ${from}) to stdout (format csv, header, force_quote (${texts.join(', ')}))`
}

/** The data of an export. `isRead` resolves when the database is no longer needed; errors appear on `body`. */
export type Source = { body: Readable; isRead: Promise<void> }

/**
 * The output of a COPY statement as a stream. It ends when PostgreSQL reports completion, and fails if the statement or the connection
 * fails. The database is read as fast as the stream is.
 *
 * Does not use pg-copy-streams, which loses the ends of the rows, and ends before PostgreSQL reports completion (docs/decisions/0010-exports.md).
 */
export function openCopy(client: pg.ClientBase, statement: string, { bom = false } = {}): Source {
  const { promise: isRead, resolve: settle } = Promise.withResolvers<void>()
  let socket: pg.Connection['stream'] | undefined
  const body = new Readable({ read: () => void socket?.resume() })
  let rows = bom ? BYTE_ORDER_MARK : ''
  const send = () => {
    if (rows !== '' && !body.push(rows)) socket?.pause()
    rows = ''
  }
  client.query({
    submit: (connection: pg.Connection) => {
      socket = connection.stream
      connection.query(statement)
    },
    // The driver calls these for the messages of PostgreSQL's protocol; handleCopyData once for each row.
    handleCopyData: ({ chunk }: { chunk: Buffer }) => {
      rows += csvRow(chunk.toString())
      if (rows.length >= CHUNK_LENGTH) send()
    },
    handleCommandComplete: send,
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
