import type { Executor } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { PAGE_MAX_BYTES } from '../http/paging.ts'
import { BEGINNING, type Cursors, MARK_LENGTH } from './cursor.ts'
import { eventsOf, type LoggedEvent, NEXT_PAGES, PAGE, type PageRow } from './pages.ts'

type FeedPage = { items: LoggedEvent[]; nextCursor: string; hasMore: boolean }

/** `hasPlace`: the log has the place to continue from. `newest`: the last position that can be read. */
type FeedRow = PageRow & { hasPlace: boolean; newest: number | null; pageId: string | null }

/**
 * Reads the account's events after a place in the log, in the order of the log. This is one range of an index, at any depth. No event ever
 * appears before a place that was read, so a reader that continues from `nextCursor` gets every event once. An empty page has a `nextCursor`
 * too, for a reader that polls.
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
  if (!rows[0]?.hasPlace) throw invalidCursor('points to a place that this log does not have; start again without it')
  const read = rows.flatMap((row) => (row.pageId === null ? [] : eventsOf(row)))
  const found = read.filter(({ position }) => position > place.position).slice(0, limit)
  let bytes = 0
  // The response ends with the event that exceeds the limit of bytes.
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
 * If the log has not reached a place, or has another event there, the place is from a longer log: the database was restored from a backup, or
 * failed over to a standby that lagged. A reader that continued there would miss events without notice. If the log has neither that place nor
 * an earlier one, the retention of the place has ended, and the reader may continue.
 *
 * The statement measures only the pages that have the requested events: measuring 201 full pages took 60 ms.
 */
export const READ_FEED = `
  select $2 = 0 or coalesce(
      (select case when last_position - event_count < $2 then right(page_id::text, ${MARK_LENGTH}) = $4 end from log_pages
       where account_id = $1 and last_position >= $2 order by last_position limit 1),
      coalesce((select last_position >= $2 from log_heads where account_id = $1), false)
        and not exists (select from log_pages where account_id = $1 and last_position < $2)
    ) as "hasPlace", (select max(last_position) from log_pages where account_id = $1) as newest, ${PAGE}
  from (values (1)) as always left join (
    select *, sum(octet_length(events::text)) over (order by last_position rows between unbounded preceding and 1 preceding) as bytes_before
    from ${NEXT_PAGES} as next
  ) as p on coalesce(p.bytes_before, 0) < ${PAGE_MAX_BYTES}
  order by p.last_position`

function invalidCursor(reason: string): ApiError {
  return new ApiError('RCS_INVALID_REQUEST', { details: [{ path: '/after', reason }] })
}
