import type { Executor } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { withinPageBytes } from '../http/paging.ts'
import { BEGINNING, type Cursors, MARK_LENGTH } from './cursor.ts'

/** An event as the log has it. Its data is the text that was stored: nothing reads it on its way out. */
export type LoggedEvent = { eventId: string; kind: string; occurredAt: Date; data: string }

/** What a statement has to select of `events e` for a LoggedEvent. */
export const LOGGED_EVENT = `e.event_id as "eventId", e.kind, e.occurred_at as "occurredAt", e.data::text as data`

/** An event as callers get it, byte for byte the same whenever and however it is told: signatures are over bytes. */
export function eventBody({ eventId, kind, occurredAt, data }: LoggedEvent): string {
  return `{"eventId":"${eventId}","type":"${kind}","occurredAt":"${occurredAt.toISOString()}","data":${data}}`
}

type FeedRow = LoggedEvent & { isThere: boolean; position: number | null; found: number; bytesBefore: number | null }

export type FeedPage = { items: LoggedEvent[]; nextCursor: string; hasMore: boolean }

/**
 * The account's events after a place in the log, in the order of the log: one range of its primary key, at any depth. Nothing ever appears
 * before a place that has been read, so that a reader who goes on from `nextCursor` gets every event once. It is there on an empty page
 * too: whoever polls goes on from it.
 */
export async function readFeed(
  db: Executor,
  cursors: Cursors,
  accountId: number,
  { after, limit }: { after?: string; limit: number },
): Promise<FeedPage> {
  const place = after === undefined ? BEGINNING : cursors.decode(accountId, after)
  if (place === undefined) throw invalidCursor('is not a cursor that this feed has given out')
  const { rows } = await db.query<FeedRow>({
    name: 'read-feed',
    text: READ_FEED,
    values: [accountId, place.position, limit + 1, place.mark],
  })
  if (!rows[0]?.isThere) throw invalidCursor('is of a place that the events do not have; begin again without it')
  const read = rows.flatMap(({ isThere, position, found, bytesBefore, ...event }) => (position === null ? [] : [{ position, event }]))
  const items = read.slice(0, limit)
  const last = items.at(-1)
  const next = last === undefined ? place : { position: last.position, mark: last.event.eventId.slice(-MARK_LENGTH) }
  return {
    items: items.map(({ event }) => event),
    nextCursor: cursors.encode(accountId, next),
    hasMore: (rows[0]?.found ?? 0) > items.length,
  }
}

/**
 * A place that the log has not reached, or where it has another event, is of a log that was longer: before the database was set back to a
 * backup, or before a standby took over that had not got all. Whoever went on from there would miss what was told instead, and not know.
 * Where nothing is left of that place and of all before, it has been forgotten in the meantime.
 */
export const READ_FEED = `
  select $2 = 0 or coalesce(
      (select right(event_id::text, ${MARK_LENGTH}) = $4 from events where account_id = $1 and position = $2),
      (select last_value >= $2 from event_positions) and not exists (select from events where account_id = $1 and position < $2)
    ) as "isThere", page.*
  from (values (1)) as always left join lateral (
    ${withinPageBytes(
      `select e.position, ${LOGGED_EVENT} from events e where e.account_id = $1 and e.position > $2 order by e.position limit $3`,
      'octet_length(data)',
    )}
  ) as page on true
  order by page.position`

function invalidCursor(reason: string): ApiError {
  return new ApiError('RCS_INVALID_REQUEST', { details: [{ path: '/after', reason }] })
}
