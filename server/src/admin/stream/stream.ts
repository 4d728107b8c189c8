import type { Role } from '../../people/roles.ts'
import { maskJson } from '../mask.ts'
import type { Connection } from './connection.ts'

/** The last event that a stream has: its position in the log of the account, and the cursor that continues after it. */
export type StreamPlace = { position: number; cursor: string }

/** What a stream may get. `at`: undefined without an account; such a stream gets only the health. */
export type Subscription = {
  accountId: number | undefined
  at: StreamPlace | undefined
  /** The role in the account or, without an account, in the installation. It is checked every 10 s. */
  role: Role
  /** The session or token, which is checked every 10 s. */
  credentials: { sessionId: string } | { tokenId: number }
  /** The person or token, whose streams are counted. */
  owner: string
}

export type Stream = Subscription & {
  connection: Connection
  /** When its credentials were last found valid, by performance.now(). */
  checkedAt: number
  /** How many events it may get now, and when that was computed; see `allowance`. */
  allowed: number
  allowedAt: number
  /** When it last got a count instead of events. */
  busyAt: number
  /** What it has of each running campaign. */
  campaigns: Map<string, string>
}

const DATA = 'data: '

/** A server-sent event. `data` is JSON, which has no line breaks. An event without a name is one of the log. */
export function serverSent(data: string, { event, id }: { event?: string; id?: string } = {}): string {
  return `${event === undefined ? '' : `event: ${event}\n`}${id === undefined ? '' : `id: ${id}\n`}${DATA}${data}\n\n`
}

/** Cursors, which are the ids of events, have no numbers, and stay as they are. */
function masked(text: string): string {
  const lines = text.split('\n').map((line) => (line.startsWith(DATA) ? DATA + maskJson(line.slice(DATA.length)) : line))
  return lines.join('\n')
}

/** The same text for all streams that have the same rights. Masking it once is enough. */
export function forRoles(text: string): (stream: Stream) => Buffer {
  let full: Buffer | undefined
  let ofViewers: Buffer | undefined
  return ({ role }) => {
    if (role === 'viewer') {
      ofViewers ??= Buffer.from(masked(text))
      return ofViewers
    }
    full ??= Buffer.from(text)
    return full
  }
}
