import type { Executor } from '../db/pool.ts'
import { ApiError } from '../errors.ts'

/** An event as the log has it. Its data is the text that was stored: nothing reads it on its way out. */
export type LoggedEvent = { eventId: string; kind: string; occurredAt: Date; data: string }

/** What a statement has to select of `events e` for a LoggedEvent. */
export const LOGGED_EVENT = `e.event_id as "eventId", e.kind, e.occurred_at as "occurredAt", e.data::text as data`

/** An event as callers get it, byte for byte the same whenever and however it is told: signatures are over bytes. */
export function eventBody({ eventId, kind, occurredAt, data }: LoggedEvent): string {
  return `{"eventId":"${eventId}","type":"${kind}","occurredAt":"${occurredAt.toISOString()}","data":${data}}`
}

export type FeedPage = { items: LoggedEvent[]; nextCursor: string; hasMore: boolean }

/**
 * The account's events after a place in the log, in the order of the log: one range of its primary key, at any depth. Nothing ever appears
 * before a place that has been read, so that a reader who goes on from `nextCursor` gets every event once. It is there on an empty page
 * too: whoever polls goes on from it.
 */
export async function readFeed(db: Executor, accountId: number, { after, limit }: { after?: string; limit: number }): Promise<FeedPage> {
  const position = after === undefined ? 0 : decodeCursor(after)
  const { rows } = await db.query<LoggedEvent & { position: number }>({
    name: 'read-feed',
    text: READ_FEED,
    values: [accountId, position, limit + 1],
  })
  if (rows.length === 0) await checkReached(db, position)
  const items = rows.slice(0, limit)
  return { items, nextCursor: encodeCursor(items.at(-1)?.position ?? position), hasMore: rows.length > limit }
}

export const READ_FEED = `
  select e.position, ${LOGGED_EVENT} from events e where e.account_id = $1 and e.position > $2 order by e.position limit $3`

/**
 * A place that the log has not reached is of a log that was longer, such as before the database was set back to a backup. Whoever waited
 * there would miss all that is told until the log is as long again, and not know.
 */
async function checkReached(db: Executor, position: number): Promise<void> {
  if (position === 0) return
  const { rows } = await db.query<{ reached: boolean }>({
    name: 'check-reached',
    text: 'select $1::bigint <= last_value as reached from event_positions',
    values: [position],
  })
  if (!rows[0]?.reached) throw invalidCursor('is of a place that the events have not reached; begin again without it')
}

// The number in front is that of the form: cursors live for as long as somebody keeps one, and a later form has to know this one.
const FORM = /^1:(0|[1-9]\d{0,15})$/

function encodeCursor(position: number): string {
  return Buffer.from(`1:${position}`).toString('base64url')
}

/** Written in exactly one way, so that what was cut or altered on its way is refused rather than taken for another place. */
function decodeCursor(cursor: string): number {
  const [, digits] = FORM.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? []
  const position = Number(digits)
  if (!Number.isSafeInteger(position) || encodeCursor(position) !== cursor)
    throw invalidCursor('is not a cursor that this feed has given out')
  return position
}

function invalidCursor(reason: string): ApiError {
  return new ApiError('RCS_INVALID_REQUEST', { details: [{ path: '/after', reason }] })
}
