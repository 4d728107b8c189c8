import { timeOf } from '../db/partitions.ts'
import { columns, type Executor, lists } from '../db/pool.ts'
import { UUID } from '../ids.ts'
import { present } from '../present.ts'

// Reads the log. A page is a row of `log_pages`, with a list for each of its events, in the form that events/changes.ts writes.

/** Pages are small, since reading one event reads its whole page. */
export const EVENTS_PER_PAGE = 100

/** An event as callers get it. `data` is JSON. */
export type LoggedEvent = { eventId: string; kind: string; occurredAt: Date; data: string }

/** An event with its position in the log of its account, and its subject: the events of one message or campaign are posted in order. */
export type PlacedEvent = LoggedEvent & { position: number; subjectId: string | null }

/** A page as the driver returns it, with `events` parsed. */
export type PageRow = { pageId: string; lastPosition: number; eventCount: number; events: StoredEvent[] }

/** The columns of `log_pages p` for a PageRow. */
export const PAGE = 'p.page_id as "pageId", p.last_position as "lastPosition", p.event_count as "eventCount", p.events'

export type StoredEvent = [
  kind: string,
  occurredAt: string,
  subjectId: string | null,
  clientReferenceId: string | null,
  /** Null if the event is not about a message; `more` is then all of its data. */
  agentId: string | null,
  recipient: string | null,
  campaignId: string | null,
  test: boolean | null,
  more: Record<string, unknown> | null,
]

/** `kinds`: only events of these kinds. */
export function eventsOf({ pageId, lastPosition, eventCount, events }: PageRow, kinds?: readonly string[]): PlacedEvent[] {
  return events.flatMap((event, place) => {
    const [kind, , subjectId] = event
    if (kinds !== undefined && !kinds.includes(kind)) return []
    const position = lastPosition - eventCount + 1 + place
    return { ...eventAt(pageId, place, event), position, subjectId }
  })
}

/** The event of a page at this place. */
export function eventAt(pageId: string, place: number, event: StoredEvent): LoggedEvent {
  const [kind, occurredAt] = event
  return { eventId: eventIdOf(pageId, place), kind, occurredAt: new Date(occurredAt), data: dataOf(event) }
}

function dataOf([, , messageId, clientReferenceId, agentId, recipient, campaignId, test, more]: StoredEvent): string {
  if (agentId === null) return JSON.stringify(more)
  return JSON.stringify({ ...present({ messageId, clientReferenceId, agentId, recipient, campaignId, test }), ...more })
}

/** The JSON of an event. It has the same bytes in the feed and in every post, since signatures cover bytes. */
export function eventBody({ eventId, kind, occurredAt, data }: LoggedEvent): string {
  return `{"eventId":"${eventId}","type":"${kind}","occurredAt":"${occurredAt.toISOString()}","data":${data}}`
}

// A UUID of version 7 has 48 bits of time, the version, 12 bits that may be a counter, the variant, and 62 random bits. The ids of a page's
// events differ only in the 12 bits, which count up from the page's id.
const COUNTS = 4_096
const countOf = (id: string) => Number.parseInt(id.slice(15, 18), 16)
const withCount = (id: string, count: number) => id.slice(0, 15) + (count % COUNTS).toString(16).padStart(3, '0') + id.slice(18)

export function eventIdOf(pageId: string, place: number): string {
  return withCount(pageId, countOf(pageId) + place)
}

/** Finds an event of this account by its id; undefined if the log does not have the event, or the event has no position yet. */
export async function findEvent(
  db: Executor,
  accountId: number,
  eventId: string,
): Promise<{ position: number; recordedAt: Date } | undefined> {
  if (!UUID.test(eventId)) return undefined
  const id = eventId.toLowerCase()
  const least = withCount(id, 0)
  const { rows } = await db.query<Omit<PageRow, 'events'>>(
    `select page_id as "pageId", last_position as "lastPosition", event_count as "eventCount" from log_pages
     where account_id = $1 and page_id between $2 and $3 and last_position is not null`,
    [accountId, least, withCount(id, COUNTS - 1)],
  )
  for (const { pageId, lastPosition, eventCount } of rows) {
    const place = (countOf(id) - countOf(pageId) + COUNTS) % COUNTS
    if (withCount(pageId, 0) === least && place < eventCount)
      return { position: lastPosition - eventCount + 1 + place, recordedAt: timeOf(id) }
  }
  return undefined
}

/** Reads events by account and position. It reads each page once, however many of its events are requested. */
export async function readEventsAt(db: Executor, places: { accountId: number; position: number }[]): Promise<Map<string, PlacedEvent>> {
  const { rows } = await db.query<PageRow & { accountId: number }>({
    name: 'read-events-at',
    text: READ_EVENTS_AT,
    values: columns(places, 'accountId', 'position'),
  })
  return new Map(rows.flatMap((row) => eventsOf(row).map((event) => [placeKey(row.accountId, event.position), event])))
}

export const READ_EVENTS_AT = `
  select distinct on (p.account_id, p.last_position) p.account_id as "accountId", ${PAGE}
  from unnest(${lists('int', 'bigint')}) as wanted (account_id, position), lateral (
    select * from log_pages p where p.account_id = wanted.account_id and p.last_position >= wanted.position
    order by p.last_position limit 1
  ) as p`

export function placeKey(accountId: number, position: number): string {
  return `${accountId} ${position}`
}

/** In SQL: the pages of the account `$1` after the position `$2`, as many as have `$3` events. Each page has at least one event. */
export const NEXT_PAGES = `(
    select * from (
      select *, sum(wanted) over (order by last_position) - wanted as events_before from (
        select *, least(event_count, last_position - $2) as wanted from log_pages where account_id = $1 and last_position > $2
        order by last_position limit $3
      ) as next
    ) as counted
    where events_before < $3
  )`

type PagesRange = { after: number; last: number; limit: number }

/** Reads the pages of an account after one position up to another, in order. `limit` counts events: the page that reaches it is the last one. */
export async function readPages(db: Executor, accountId: number, { after, last, limit }: PagesRange): Promise<PageRow[]> {
  const { rows } = await db.query<PageRow>({
    name: 'read-pages',
    text: `select ${PAGE} from ${NEXT_PAGES} as p where p.last_position - p.event_count < $4 order by p.last_position`,
    values: [accountId, after, limit, last],
  })
  return rows
}

/** The last position in the account's log; 0 if it has none. */
export async function readHead(db: Executor, accountId: number): Promise<number> {
  const { rows } = await db.query<{ position: number }>('select last_position as position from log_heads where account_id = $1', [
    accountId,
  ])
  return rows[0]?.position ?? 0
}
