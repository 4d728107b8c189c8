import type { Executor } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { PAGE_MAX_BYTES } from '../http/paging.ts'
import { BEGINNING, type Cursors, MARK_LENGTH } from './cursor.ts'
import { eventsOf, type LoggedEvent, NEXT_PAGES, PAGE, type PageRow } from './pages.ts'

export type FeedPage = { items: LoggedEvent[]; nextCursor: string; hasMore: boolean }

/** `newest`: the last position that there is to read. */
type FeedRow = PageRow & { isThere: boolean; newest: number | null; pageId: string | null }

/**
 * The account's events after a place in the log, in the order of the log: one range of an index, at any depth. Nothing ever appears before a
 * place that has been read, so a reader who goes on from `nextCursor` gets every event once. It is there on an empty page too: a reader
 * who polls goes on from it.
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
  const read = rows.flatMap((row) => (row.pageId === null ? [] : eventsOf(row)))
  const found = read.filter(({ position }) => position > place.position).slice(0, limit)
  let bytes = 0
  // A response ends with the event that takes it over the limit of bytes.
  const items = found.filter(({ data }) => {
    const isWithin = bytes < PAGE_MAX_BYTES
    bytes += Buffer.byteLength(data)
    return isWithin
  })
  const last = items.at(-1)
  const next = last === undefined ? place : { position: last.position, mark: last.eventId.slice(-MARK_LENGTH) }
  return { items, nextCursor: cursors.encode(accountId, next), hasMore: (rows[0].newest ?? 0) > next.position }
}

/**
 * A place that the log has not reached, or where it has another event, is of a log that was longer: before the database was set back to a
 * backup, or before a standby took over that had not got all. A reader who went on from there would miss what was emitted instead, and not
 * know. Where nothing is left of that place and of all before, it has been forgotten in the meantime.
 *
 * Only pages that have the events asked for are measured: to measure 201 full pages took 60 ms.
 */
export const READ_FEED = `
  select $2 = 0 or coalesce(
      (select case when last_position - event_count < $2 then right(page_id::text, ${MARK_LENGTH}) = $4 end from log_pages
       where account_id = $1 and last_position >= $2 order by last_position limit 1),
      coalesce((select last_position >= $2 from log_heads where account_id = $1), false)
        and not exists (select from log_pages where account_id = $1 and last_position < $2)
    ) as "isThere", (select max(last_position) from log_pages where account_id = $1) as newest, ${PAGE}
  from (values (1)) as always left join (
    select *, sum(octet_length(events::text)) over (order by last_position rows between unbounded preceding and 1 preceding) as bytes_before
    from ${NEXT_PAGES} as next
  ) as p on coalesce(p.bytes_before, 0) < ${PAGE_MAX_BYTES}
  order by p.last_position`

function invalidCursor(reason: string): ApiError {
  return new ApiError('RCS_INVALID_REQUEST', { details: [{ path: '/after', reason }] })
}
