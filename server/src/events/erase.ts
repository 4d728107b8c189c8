import { accountTransaction, type Executor, type Pool } from '../db/pool.ts'
import { eventAt, type StoredEvent } from './pages.ts'
import { lockRouter } from './router.ts'

// Finds and erases the events of a person in the log. No index leads from a number to its pages, so all pages of an account are read.

const READ_PAGES = 500

type PersonInLog = { accountId: number; phone: string }
/** An event of the person, as in the feed. `position`: null if the router has not placed its page yet. */
type EventOfPerson = { position: number | null; eventId: string; type: string; occurredAt: Date; data: object }

type PageOfLog = { pageId: string; lastPosition: number | null; eventCount: number; events: StoredEvent[] }

/** The ids of pages that may have events of the person, and how many pages were read. */
type FoundPages = { pageIds: string[]; read: number }

/** Finds pages that mention the number, some hundred pages of the account at a time. */
async function* findPages(db: Executor, { accountId, phone }: PersonInLog): AsyncGenerator<FoundPages> {
  for (let after = '00000000-0000-0000-0000-000000000000'; ; ) {
    const { rows } = await db.query<{ pageId: string; isFound: boolean }>(FIND_PAGES, [accountId, after, `%${phone.slice(1)}%`, READ_PAGES])
    yield { pageIds: rows.filter(({ isFound }) => isFound).map(({ pageId }) => pageId), read: rows.length }
    const last = rows.at(-1)
    if (last === undefined || rows.length < READ_PAGES) return
    after = last.pageId
  }
}

const FIND_PAGES = `
  select page_id as "pageId", events::text like $3 as "isFound" from log_pages
  where account_id = $1 and page_id > $2 order by page_id limit $4`

const READ_PAGES_BY_ID = `
  select page_id as "pageId", last_position as "lastPosition", event_count as "eventCount", events from log_pages
  where account_id = $1 and page_id = any ($2::uuid[]) order by page_id`

/** Reads the events of the person, in the order of the log. */
export async function* findInLog(db: Executor, person: PersonInLog, onRead: (pages: number) => void): AsyncGenerator<EventOfPerson[]> {
  for await (const { pageIds, read } of findPages(db, person)) {
    onRead(read)
    if (pageIds.length === 0) continue
    const { rows } = await db.query<PageOfLog>(READ_PAGES_BY_ID, [person.accountId, pageIds])
    const events = rows.flatMap((page) =>
      page.events.flatMap((event, place) => (isAbout(event, person.phone) ? [eventOfPerson(page, place, event)] : [])),
    )
    if (events.length > 0) yield events
  }
}

function eventOfPerson(page: PageOfLog, place: number, event: StoredEvent): EventOfPerson {
  const { eventId, kind, occurredAt, data } = eventAt(page.pageId, place, event)
  return { position: positionOf(page, place), eventId, type: kind, occurredAt, data: JSON.parse(data) }
}

const positionOf = ({ lastPosition, eventCount }: PageOfLog, place: number) =>
  lastPosition === null ? null : lastPosition - eventCount + 1 + place

function isAbout([, , , , , recipient, , , more]: StoredEvent, phone: string): boolean {
  return recipient === phone || more?.recipient === phone
}

/** `withoutQuote` removes from a description what a network said. */
type Erasure = { placeholder: string; withoutQuote: (description: string) => string }

/**
 * Replaces the number in the log of an account, and removes what the person wrote. Ids, kinds, times and positions stay. Each batch of pages is a
 * transaction of its own. The router waits for it, and so does a concurrent erasure of another person in the same pages.
 */
export async function* eraseFromLog(pool: Pool, person: PersonInLog, erasure: Erasure): AsyncGenerator<ErasedEvents> {
  for await (const { pageIds } of findPages(pool, person)) if (pageIds.length > 0) yield await erasePages(pool, person, pageIds, erasure)
}

/** `positions`: of the events that the router had placed, so that a worker may have read them before. */
type ErasedEvents = { erased: number; positions: number[] }

async function erasePages(pool: Pool, { accountId, phone }: PersonInLog, pageIds: string[], erasure: Erasure): Promise<ErasedEvents> {
  return await accountTransaction(pool, accountId, async (tx) => {
    await lockRouter(tx)
    const { rows } = await tx.query<PageOfLog>(`${READ_PAGES_BY_ID} for update`, [accountId, pageIds])
    const isMine = (event: StoredEvent) => isAbout(event, phone)
    const changed = rows.filter(({ events }) => events.some(isMine))
    const written = changed.map(({ events }) =>
      JSON.stringify(events.map((event) => (isMine(event) ? erasedEvent(event, erasure) : event))),
    )
    await tx.query(
      `update log_pages p set events = c.events::json from unnest($2::uuid[], $3::text[]) as c (page_id, events)
       where p.account_id = $1 and p.page_id = c.page_id`,
      [accountId, changed.map(({ pageId }) => pageId), written],
    )
    const found = changed.flatMap((page) => page.events.flatMap((event, place) => (isMine(event) ? [positionOf(page, place)] : [])))
    return { erased: found.length, positions: found.filter((position) => position !== null) }
  })
}

/**
 * Returns the event without the number, the caller's reference, what the person wrote and what the network said. Messages and actions lose the
 * same fields. The ids of buttons stay only in a campaign, where all recipients have the same ones.
 */
function erasedEvent(event: StoredEvent, { placeholder, withoutQuote }: Erasure): StoredEvent {
  const [kind, occurredAt, subjectId, , agentId, recipient, campaignId, test, more] = event
  return [kind, occurredAt, subjectId, null, agentId, recipient === null ? null : placeholder, campaignId, test, more && erasedData(more)]

  function erasedData({ text, payload, url, latitude, longitude, buttonId, ...kept }: Record<string, unknown>): Record<string, unknown> {
    const { failure } = kept as { failure?: { reason: string; description: string } }
    return {
      ...kept,
      ...(campaignId !== null && buttonId !== undefined && { buttonId }),
      ...('recipient' in kept && { recipient: placeholder }),
      ...(failure && { failure: { ...failure, description: withoutQuote(failure.description) } }),
    }
  }
}
