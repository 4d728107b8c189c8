import type { Executor } from '../../src/db/pool.ts'
import type { LoggedEvent } from '../../src/events/pages.ts'

// The log of events. Its pages are decoded here, by code that shares no line with the service's own.

/** An event that has its position in the log of its account. */
export type Logged = LoggedEvent & { position: number; subjectId: string | null }

/** A row of `log_pages`. `eventCount`: as the row says. `stored`: the events that it holds. */
export type Page = { accountId: number; pageId: string; eventCount: number; stored: number; lastPosition: number | null }
export type Head = { accountId: number; lastPosition: number }

type StoredPage = { pageId: string; firstPosition: number; events: unknown[][] }

/** All events of an account that have a position, in the order of the log. */
export async function readLog(db: Executor, accountId: number): Promise<Logged[]> {
  const { rows } = await db.query<StoredPage>(
    `select page_id as "pageId", last_position - event_count + 1 as "firstPosition", events
     from log_pages where account_id = $1 and last_position is not null order by last_position, page_id`,
    [accountId],
  )
  return rows.flatMap(({ pageId, firstPosition, events }) =>
    events.map((event, index) => {
      const [kind, occurredAt, subjectId] = event as [string, string, string | null]
      const eventId = idOf(pageId, index)
      return { eventId, kind, occurredAt: new Date(occurredAt), data: dataOf(event), position: firstPosition + index, subjectId }
    }),
  )
}

const COUNTER_BITS = 12n
const COUNTER_SHIFT = 64n

/** The 12 bits after the version count the events of a page, beginning with those of the page's own id, and wrap around to 0. */
function idOf(pageId: string, index: number): string {
  const number = BigInt(`0x${pageId.replaceAll('-', '')}`)
  const count = BigInt.asUintN(Number(COUNTER_BITS), (number >> COUNTER_SHIFT) + BigInt(index))
  const mask = ((1n << COUNTER_BITS) - 1n) << COUNTER_SHIFT
  const hex = ((number & ~mask) | (count << COUNTER_SHIFT)).toString(16).padStart(32, '0')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** The index of each field of an event about a message, in the order in which callers get them. */
const FIELDS = { messageId: 2, clientReferenceId: 3, agentId: 4, recipient: 5, campaignId: 6, test: 7 }
const MORE = 8

/** As JSON. An event without an agent is not about a message, and has all of its data in one field. */
function dataOf(event: unknown[]): string {
  const more = event[MORE] as object | null
  if (event[FIELDS.agentId] === null) return JSON.stringify(more)
  const data: Record<string, unknown> = {}
  for (const [field, index] of Object.entries(FIELDS)) if (event[index] !== null) data[field] = event[index]
  return JSON.stringify(Object.assign(data, more))
}

/** Of all accounts. */
export async function readPages(db: Executor): Promise<{ pages: Page[]; heads: Head[] }> {
  const { rows: pages } = await db.query<Page>(
    `select account_id as "accountId", page_id as "pageId", event_count as "eventCount", json_array_length(events) as stored,
       last_position as "lastPosition"
     from log_pages`,
  )
  const { rows: heads } = await db.query<Head>('select account_id as "accountId", last_position as "lastPosition" from log_heads')
  return { pages, heads }
}
