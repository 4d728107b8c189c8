import { timeOf } from '../db/partitions.ts'
import { type Executor, listed } from '../db/pool.ts'
import { present, UUID } from '../messages/messages.ts'

// How the log is read. A page is a row of `log_pages`, with a list for each of its events, as events/changes.ts writes them.

/** A reader of one event reads its page, so pages are small. */
export const EVENTS_A_PAGE = 100

/** An event as callers get it. `data` is JSON. */
export type LoggedEvent = { eventId: string; kind: string; occurredAt: Date; data: string }

/** Where it stands in the log of its account, and what it is about: the events of one message or campaign are posted in their order. */
export type PlacedEvent = LoggedEvent & { position: number; subjectId: string | null }

/** `events` has been parsed by the driver. */
export type PageRow = { pageId: string; lastPosition: number; eventCount: number; events: StoredEvent[] }

/** What a statement has to select of `log_pages p` for a PageRow. */
export const PAGE = 'p.page_id as "pageId", p.last_position as "lastPosition", p.event_count as "eventCount", p.events'

type StoredEvent = [
  kind: string,
  occurredAt: string,
  subjectId: string | null,
  clientReferenceId: string | null,
  /** Null where the event is not about a message: then `more` is all of its data. */
  agentId: string | null,
  recipient: string | null,
  campaignId: string | null,
  test: boolean | null,
  more: Record<string, unknown> | null,
]

export function eventsOf({ pageId, lastPosition, eventCount, events }: PageRow): PlacedEvent[] {
  return events.map((event, place) => {
    const [kind, occurredAt, subjectId] = event
    const position = lastPosition - eventCount + 1 + place
    return { eventId: eventIdOf(pageId, place), kind, occurredAt: new Date(occurredAt), data: dataOf(event), position, subjectId }
  })
}

function dataOf([, , messageId, clientReferenceId, agentId, recipient, campaignId, test, more]: StoredEvent): string {
  if (agentId === null) return JSON.stringify(more)
  return JSON.stringify({ ...present({ messageId, clientReferenceId, agentId, recipient, campaignId, test }), ...more })
}

/** An event as callers get it, byte for byte the same in the feed and in every post: signatures are over bytes. */
export function eventBody({ eventId, kind, occurredAt, data }: LoggedEvent): string {
  return `{"eventId":"${eventId}","type":"${kind}","occurredAt":"${occurredAt.toISOString()}","data":${data}}`
}

// An id of version 7 has 48 bits of time, the version, 12 bits that may count, the variant, and 62 random bits. The ids of a page's events
// differ in the 12 bits alone, which count from those of the page.
const COUNTING = { from: 15, to: 18, values: 4_096 }

export function eventIdOf(pageId: string, place: number): string {
  const { from, to, values } = COUNTING
  const count = (Number.parseInt(pageId.slice(from, to), 16) + place) % values
  return pageId.slice(0, from) + count.toString(16).padStart(3, '0') + pageId.slice(to)
}

/** At which place of a page an event would stand that has this id; it is of the page where there are more events than that. */
function placeOf(pageId: string, eventId: string): number {
  const { from, to, values } = COUNTING
  const [first, count] = [pageId, eventId].map((id) => Number.parseInt(id.slice(from, to), 16)) as [number, number]
  return (count - first + values) % values
}

/** An event of this account, by the id that callers know; undefined where the log does not have it, or has not given it a place yet. */
export async function findEvent(
  db: Executor,
  accountId: number,
  eventId: string,
): Promise<{ position: number; recordedAt: Date } | undefined> {
  if (!UUID.test(eventId)) return undefined
  const id = eventId.toLowerCase()
  const { from, to } = COUNTING
  const [least, greatest] = ['000', 'fff'].map((digits) => id.slice(0, from) + digits + id.slice(to))
  const { rows } = await db.query<{ pageId: string; lastPosition: number; eventCount: number }>(
    `select page_id as "pageId", last_position as "lastPosition", event_count as "eventCount" from log_pages
     where account_id = $1 and page_id between $2 and $3 and last_position is not null`,
    [accountId, least, greatest],
  )
  const page = rows.find(({ pageId, eventCount }) => pageId.slice(to) === id.slice(to) && placeOf(pageId, id) < eventCount)
  if (page === undefined) return undefined
  return { position: page.lastPosition - page.eventCount + 1 + placeOf(page.pageId, id), recordedAt: timeOf(id) }
}

/** Events by account and position. Each page is read once, however many of its events are asked for. */
export async function readEventsAt(db: Executor, places: { accountId: number; position: number }[]): Promise<Map<string, PlacedEvent>> {
  const { rows } = await db.query<PageRow & { accountId: number }>({
    name: 'read-events-at',
    text: `select distinct on (p.account_id, p.last_position) p.account_id as "accountId", ${PAGE}
           from unnest(${listed('$1::int[]')}, ${listed('$2::bigint[]')}) as wanted (account_id, position), lateral (
             select * from log_pages p where p.account_id = wanted.account_id and p.last_position >= wanted.position
             order by p.last_position limit 1
           ) as p`,
    values: [places.map(({ accountId }) => accountId), places.map(({ position }) => position)],
  })
  return new Map(rows.flatMap((row) => eventsOf(row).map((event) => [placeKey(row.accountId, event.position), event])))
}

export function placeKey(accountId: number, position: number): string {
  return `${accountId} ${position}`
}

type PagesRange = { after: number; last: number; limit: number }

/** The pages of an account after a position, up to another one, in order. `limit` counts events: the page that reaches it is the last one. */
export async function readPages(db: Executor, accountId: number, { after, last, limit }: PagesRange): Promise<PageRow[]> {
  const { rows } = await db.query<PageRow>({
    name: 'read-pages',
    text: `select ${PAGE} from (
             select *, sum(event_count) over (order by last_position) - event_count as events_before from (
               select * from log_pages where account_id = $1 and last_position > $2 and last_position - event_count < $3
               order by last_position limit $4
             ) as next
           ) as p
           where p.events_before < $4 order by p.last_position`,
    values: [accountId, after, last, limit],
  })
  return rows
}

/** The last position that the account's log has given out. */
export async function readHead(db: Executor, accountId: number): Promise<number> {
  const { rows } = await db.query<{ position: number }>('select last_position as position from log_heads where account_id = $1', [
    accountId,
  ])
  return rows[0]?.position ?? 0
}
