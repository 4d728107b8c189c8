import type { Executor } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { PAGE_MAX_BYTES } from '../http/paging.ts'
import { BEGINNING, type Cursors, MARK_LENGTH, type Place } from './cursor.ts'
import type { EventKind } from './kinds.ts'
import { eventsOf, NEXT_PAGES, PAGE, type PageRow, type PlacedEvent } from './pages.ts'
import { findEnd, findStart } from './start.ts'

/** At most one of `after` and `since`. `after`: a cursor, or NOW. */
type FeedQuery = { after?: string | undefined; since?: Date | undefined; types?: readonly EventKind[] | undefined; limit: number }
type FeedPage = { items: PlacedEvent[]; nextCursor: string; hasMore: boolean }

export const NOW = 'now'

/** `hasPlace`: the log has the place. `newest`: the last position that was given to an event. */
type FeedRow = PageRow & { hasPlace: boolean; newest: number | null; pageId: string | null }

/** What one statement read: the wanted events, and the place of the last event that was looked at. `isGone`: the next event is not there. */
type Scan = { items: PlacedEvent[]; bytes: number; next: Place; hasMore: boolean; isGone: boolean }

// With `types`, a page looks at this many events, then at four times as many with each statement, each limited to PAGE_MAX_BYTES. After the last
// one it ends, although it may have found none.
const FIRST_SCAN_EVENTS = 400
const SCAN_GROWTH = 4
const MAX_SCANS = 3

/**
 * Reads the account's events after a place in the log, in the order of the log. This is one range of an index, at any depth. No event ever
 * appears before a place that was read, so a reader that continues from `nextCursor` gets every event once. An empty page has a `nextCursor`
 * too, for a reader that polls.
 */
export async function readFeed(db: Executor, cursors: Cursors, accountId: number, query: FeedQuery): Promise<FeedPage> {
  const { after, since, types, limit } = query
  if (after === NOW) return { items: [], nextCursor: cursors.encode(accountId, await findEnd(db, accountId)), hasMore: false }
  const start = since === undefined ? placeOf(cursors, accountId, after) : await findStart(db, accountId, since)
  // A cursor must continue the log. Any other start is wherever the log begins.
  let next: Next = { place: start, isChecked: after !== undefined, types, limit, bytes: 0, scans: 0 }
  const items: PlacedEvent[] = []
  for (;;) {
    const scan = await readNext(db, accountId, next)
    if (scan.isGone && next.place === start) throw cursorError('RCS_CURSOR_GONE', GONE)
    items.push(...scan.items)
    const isFull = items.length === limit || scan.bytes >= PAGE_MAX_BYTES || types === undefined || next.scans + 1 === MAX_SCANS
    if (isFull || !scan.hasMore || scan.isGone) return { items, nextCursor: cursors.encode(accountId, scan.next), hasMore: scan.hasMore }
    next = { place: scan.next, isChecked: true, types, limit: limit - items.length, bytes: scan.bytes, scans: next.scans + 1 }
  }
}

/** The place of an event: a cursor of it continues with the next one. */
export function placeOfEvent({ position, eventId }: PlacedEvent): Place {
  return { position, mark: eventId.slice(-MARK_LENGTH) }
}

function placeOf(cursors: Cursors, accountId: number, after: string | undefined): Place {
  const place = after === undefined ? BEGINNING : cursors.decode(accountId, after)
  if (place === undefined) throw cursorError('RCS_INVALID_CURSOR', 'is not a cursor that this feed has given out')
  return place
}

type Next = { place: Place; isChecked: boolean; types: readonly EventKind[] | undefined; limit: number; bytes: number; scans: number }

async function readNext(db: Executor, accountId: number, { place, isChecked, types, limit, bytes, scans }: Next): Promise<Scan> {
  const events = types === undefined ? limit + 1 : FIRST_SCAN_EVENTS * SCAN_GROWTH ** scans
  const { rows } = await db.query<FeedRow>({
    name: 'read-feed',
    text: READ_FEED,
    values: [accountId, place.position, events, place.mark, isChecked],
  })
  const { hasPlace, newest } = rows[0] as FeedRow
  const scan: Scan = { items: [], bytes, next: place, hasMore: true, isGone: true }
  if (!hasPlace) return scan
  const pages = rows.filter(({ pageId }) => pageId !== null)
  // Retention has deleted the whole log.
  if (pages.length === 0 && !isChecked && (newest ?? 0) > place.position) scan.next = { position: newest ?? 0, mark: BEGINNING.mark }
  for (const page of pages) {
    // Retention deletes pages by their time, so a later position can be gone before an earlier one. The response ends there, and the next
    // request gets RCS_CURSOR_GONE.
    const isGap = page.lastPosition - page.eventCount > scan.next.position
    if (isGap && (isChecked || scan.next !== place)) break
    if (!addEvents(scan, page, types, limit)) break
    scan.next = { position: page.lastPosition, mark: page.pageId.slice(-MARK_LENGTH) }
  }
  scan.hasMore = (newest ?? 0) > scan.next.position
  scan.isGone = scan.hasMore && scan.next === place
  return scan
}

/** Adds the wanted events of a page. Returns false if the response is full before the end of the page. */
function addEvents(scan: Scan, page: PageRow, types: readonly EventKind[] | undefined, limit: number): boolean {
  for (const event of eventsOf(page, types)) {
    if (event.position <= scan.next.position) continue
    // The response ends with the event that exceeds the limit of bytes.
    if (scan.items.length === limit || scan.bytes >= PAGE_MAX_BYTES) return false
    scan.items.push(event)
    scan.bytes += Buffer.byteLength(event.data)
    scan.next = placeOfEvent(event)
  }
  return true
}

/**
 * A cursor continues the log if the log has its place with the same event, or retention has deleted that and begins with the next event.
 *
 * A place that the log has not reached, or where it has another event, is from a longer log: the database was restored from a backup, or
 * failed over to a standby that lagged. A reader that continued there would miss events without notice, as would a reader whose next events
 * were deleted by retention.
 *
 * The statement measures only the pages that have the requested events: measuring 201 full pages took 60 ms.
 */
export const READ_FEED = `
  select not $5::bool or coalesce(
      (select case when last_position - event_count < $2 then right(page_id::text, ${MARK_LENGTH}) = $4 else last_position - event_count = $2 end
       from log_pages where account_id = $1 and last_position >= $2 order by last_position limit 1),
      coalesce((select last_position from log_heads where account_id = $1), 0) = $2
    ) as "hasPlace", (select last_position from log_heads where account_id = $1) as newest, ${PAGE}
  from (values (1)) as always left join (
    select *, sum(octet_length(events::text)) over (order by last_position rows between unbounded preceding and 1 preceding) as bytes_before
    from ${NEXT_PAGES} as next
  ) as p on coalesce(p.bytes_before, 0) < ${PAGE_MAX_BYTES}
  order by p.last_position`

const GONE = 'points to a place whose next events the log does not have; start again without it'

function cursorError(code: 'RCS_INVALID_CURSOR' | 'RCS_CURSOR_GONE', reason: string): ApiError {
  return new ApiError(code, { details: [{ path: '/after', reason }] })
}
