import type { Executor } from '../src/db/pool.ts'
import type { LoggedEvent } from '../src/events/pages.ts'
import { MESSAGE_KINDS } from '../test/support/emitted.ts'
import { countBy } from './storm/line.ts'

// The log as the proofs read it: pages are taken apart here, by code that shares no line with the service's own.

/** An event that has its place in the log of its account. */
export type Logged = LoggedEvent & { position: number; subjectId: string | null }

/** A row of `log_pages`. `number`: in the order in which pages were written. `stored`: how many events it holds, whatever it says. */
export type Page = {
  accountId: number
  pageId: string
  number: number
  eventCount: number
  stored: number
  lastPosition: number | null
}
export type Head = { accountId: number; lastPosition: number }

type Stored = { pageId: string; firstPosition: number; events: unknown[][] }

/** All events of an account that have a place, in the order of the log. */
export async function readLog(db: Executor, accountId: number): Promise<Logged[]> {
  const { rows } = await db.query<Stored>(
    `select page_id as "pageId", last_position - event_count + 1 as "firstPosition", events
     from log_pages where account_id = $1 and last_position is not null order by last_position, page_id`,
    [accountId],
  )
  return rows.flatMap(({ pageId, firstPosition, events }) =>
    events.map((event, place) => {
      const [kind, occurredAt, subjectId] = event as [string, string, string | null]
      const eventId = idOf(pageId, place)
      return { eventId, kind, occurredAt: new Date(occurredAt), data: dataOf(event), position: firstPosition + place, subjectId }
    }),
  )
}

const COUNTING_BITS = 12n
const COUNTING_SHIFT = 64n

/** The 12 bits after the version count the events of a page, from those of the page's own id on, and start again at 0. */
function idOf(pageId: string, place: number): string {
  const number = BigInt(`0x${pageId.replaceAll('-', '')}`)
  const count = BigInt.asUintN(Number(COUNTING_BITS), (number >> COUNTING_SHIFT) + BigInt(place))
  const mask = ((1n << COUNTING_BITS) - 1n) << COUNTING_SHIFT
  const hex = ((number & ~mask) | (count << COUNTING_SHIFT)).toString(16).padStart(32, '0')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** Where the fields of an event about a message stand in its list, in the order in which callers get them. */
const FIELDS = { messageId: 2, clientReferenceId: 3, agentId: 4, recipient: 5, campaignId: 6, test: 7 }
const MORE = 8

/** As JSON. An event without an agent is not about a message, and has all of its data in one place. */
function dataOf(event: unknown[]): string {
  const more = event[MORE] as object | null
  if (event[FIELDS.agentId] === null) return JSON.stringify(more)
  const data: Record<string, unknown> = {}
  for (const [field, place] of Object.entries(FIELDS)) if (event[place] !== null) data[field] = event[place]
  return JSON.stringify(Object.assign(data, more))
}

/** Of all accounts. */
export async function readPlaces(db: Executor): Promise<{ pages: Page[]; heads: Head[] }> {
  const { rows: pages } = await db.query<Page>(
    `select account_id as "accountId", page_id as "pageId", id as number, event_count as "eventCount", json_array_length(events) as stored,
       last_position as "lastPosition"
     from log_pages`,
  )
  const { rows: heads } = await db.query<Head>('select account_id as "accountId", last_position as "lastPosition" from log_heads')
  return { pages, heads }
}

/**
 * What is wrong with the places of pages: one without a place, one with another number of events than it says, positions that two pages have or
 * none does, and a head that is not the last position.
 */
export function findMisplaced(pages: readonly Page[], heads: readonly Head[]): string[] {
  const wrong = pages
    .filter(({ eventCount, stored }) => eventCount !== stored || stored === 0)
    .map(({ pageId, eventCount, stored }) => `page ${pageId} says that it has ${eventCount} events, and has ${stored}`)
  const twice = [...countBy(pages, ({ accountId, pageId }) => `page ${pageId} of account ${accountId}`)].filter(([, count]) => count > 1)
  wrong.push(...twice.map(([page, count]) => `${page} is there ${count} times`))
  const headOf = new Map(heads.map(({ accountId, lastPosition }) => [accountId, lastPosition]))
  const byAccount = Map.groupBy(pages, ({ accountId }) => accountId)
  for (const accountId of new Set([...headOf.keys(), ...byAccount.keys()])) {
    let reached = 0
    for (const { pageId, eventCount, lastPosition } of inTheirPlaces(byAccount.get(accountId) ?? [])) {
      if (lastPosition === null) wrong.push(`page ${pageId} of account ${accountId} has no place`)
      else {
        const first = lastPosition - eventCount + 1
        if (first !== reached + 1)
          wrong.push(`page ${pageId} of account ${accountId} begins at ${first}, and the one before ends at ${reached}`)
        reached = lastPosition
      }
    }
    const head = headOf.get(accountId) ?? 0
    if (head !== reached) wrong.push(`the log of account ${accountId} ends at ${reached}, and its head is ${head}`)
  }
  return wrong
}

function inTheirPlaces(pages: readonly Page[]): Page[] {
  const placeOf = ({ lastPosition }: Page) => lastPosition ?? Number.POSITIVE_INFINITY
  return pages.toSorted((one, other) => (placeOf(one) < placeOf(other) ? -1 : 1))
}

/** Messages whose steps stand in the log in another order than they can happen in, and ids that two events have. */
export function findDisordered(log: readonly Logged[]): string[] {
  const inOrder = log.toSorted((one, other) => one.position - other.position)
  const ofMessages = Map.groupBy(
    inOrder.filter(({ kind }) => MESSAGE_KINDS.includes(kind)),
    ({ subjectId }) => subjectId,
  )
  const disordered = [...ofMessages].filter(([, steps]) =>
    steps.some(({ kind }, n) => n > 0 && MESSAGE_KINDS.indexOf(kind) <= MESSAGE_KINDS.indexOf((steps[n - 1] as Logged).kind)),
  )
  const twice = [...countBy(log, ({ eventId }) => eventId)].filter(([, count]) => count > 1)
  return [
    ...disordered.map(([id, steps]) => `the log has of ${id}, in this order: ${steps.map(({ kind }) => kind).join(', ')}`),
    ...twice.map(([eventId, count]) => `${count} events have the id ${eventId}`),
  ]
}
