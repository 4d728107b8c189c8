import type { Executor } from '../db/pool.ts'
import { type ListDefinition, type PageQuery, readPage } from '../http/paging.ts'
import { parseTimestamp, timeInIds } from '../time.ts'
import { type Condition, type MessageFilters, type Plan, planOf } from './list-plan.ts'
import { MESSAGE_JOINS, type Message, SHOWN_MESSAGE, toMessage } from './messages.ts'

/** Ids are in the order of acceptance. */
export const MESSAGE_LIST: ListDefinition<'acceptedAt'> = {
  fields: { acceptedAt: { column: 'm.id', type: 'uuid', valueIn: 'messageId' } },
  id: 'acceptedAt',
  defaultSort: '-acceptedAt',
}

/**
 * How many messages a page checks at once if a filter has no index, until the page is full or the time is over. Rows that lie far apart each
 * need a page of the table, perhaps from the disk: checking 2,000 at once took up to 140 ms among ten million messages.
 */
export const CHECKED_AT_ONCE = 250
const CHECK_FOR_MS = 8

/** The columns that SHOWN_MESSAGE and the filters need; not the content, which may be large. */
const COLUMNS = [
  ...['id', 'account_id', 'agent_id', 'recipient', 'status', 'basic', 'test', 'client_reference_id', 'campaign_id', 'triggered_by'],
  ...['accepted_at', 'scheduled_at', 'delivery_window', 'expires_at', 'sent_at', 'delivered_at', 'read_at', 'failed_at'],
  ...['failure_reason', 'failure_description', 'routing'],
].map((column) => `m.${column}`)

/**
 * Lists messages by one index, chosen by the filters, in the order of the list. The other filters are checked on what that index finds, for a
 * limited time: if few messages match, a page has fewer than `limit`, and a cursor.
 */
export async function listMessages(db: Executor, accountId: number, query: PageQuery & MessageFilters, checkForMs = CHECK_FOR_MS) {
  const page = readPage(MESSAGE_LIST, query, 2)
  const plan = await planOf(db, accountId, query)
  const endAt = performance.now() + checkForMs
  const messages: Message[] = []
  let after = page.values[0] as string | undefined
  for (;;) {
    const scan = await readScan(db, accountId, query, plan, { after, fetch: page.fetch - messages.length })
    messages.push(...scan.messages)
    const isDone = messages.length === page.fetch || scan.last === undefined
    if (isDone || performance.now() >= endAt) {
      return page.toBody<Message>(messages, messages.length, scan.last === undefined ? undefined : { messageId: scan.last })
    }
    after = scan.last
  }
}

/** `after`: the last message of the scan before. `fetch`: how many to find. */
type Range = { after: string | undefined; fetch: number }

/** `last`: the last message that was checked, if there may be more behind it. */
async function readScan(db: Executor, accountId: number, query: PageQuery & MessageFilters, plan: Plan, { after, fetch }: Range) {
  const values: unknown[] = [accountId]
  const bind = ([sql, ...bound]: Condition) =>
    sql.replaceAll('?', () => {
      values.push(bound.shift())
      return `$${values.length}`
    })
  const isAscending = query.sort === 'acceptedAt'
  const order = `order by m.id ${isAscending ? 'asc' : 'desc'}`
  const { sources, rest } = plan
  const filters = rest.map(bind)
  const read = filters.length === 0 ? fetch : CHECKED_AT_ONCE
  const behind: Condition[] = after === undefined ? [] : [[`m.id ${isAscending ? '>' : '<'} ?::uuid`, after]]
  const within = ['true', ...[...behind, ...timesOf(query)].map(bind)].join(' and ')
  const scans = scansOf(sources, bind, `${within} ${order} limit ${read}`)
  const { rows: found } = await db.query<Record<string, unknown> & { lastChecked: string | null }>(
    `with scanned as materialized (
       select * from (${scans}) as m ${order} limit ${read}
     ), page as materialized (
       select * from scanned m where ${['true', ...filters].join(' and ')} ${order} limit ${fetch}
     ), shown as (
       select ${SHOWN_MESSAGE} from page m ${MESSAGE_JOINS}
     )
     select scan."lastChecked", m.* from (
       select (select m.id from scanned m ${order} offset ${read - 1} limit 1) as "lastChecked"
     ) as scan left join shown m on true
     order by m."messageId" ${isAscending ? 'asc' : 'desc'}`,
    values,
  )
  const messages = found.flatMap(({ lastChecked: _, ...row }) => (row.messageId === null ? [] : [toMessage(row)]))
  return { messages, last: filters.length === 0 ? undefined : (found[0]?.lastChecked ?? undefined) }
}

/** In SQL: the messages that a plan's indexes have. `within`: the conditions for each index, and what follows them. */
function scansOf(sources: Plan['sources'], bind: (condition: Condition) => string, within: string): string {
  const scans = sources.map(({ of, where }) => {
    const scan = `select ${COLUMNS} from messages m where ${bind(where)} and ${within}`
    return of === undefined ? `(${scan})` : `(select m.* from ${bind(of)}, lateral (${scan}) as m)`
  })
  return scans.join(' union all ')
}

/** In SQL: all messages of the list, in no order. `bind` writes a condition with its values. */
export function allMessages({ sources, rest }: Plan, filters: MessageFilters, bind: (condition: Condition) => string): string {
  return scansOf(sources, bind, ['true', ...[...timesOf(filters), ...rest].map(bind)].join(' and '))
}

function timesOf({ acceptedFrom, acceptedTo }: MessageFilters): Condition[] {
  const idOf = (text: string) => timeInIds(parseTimestamp(text) ?? new Date(0))
  return [
    ...(acceptedFrom === undefined ? [] : [['m.id >= uuid_v7_from(?)', idOf(acceptedFrom)] as Condition]),
    ...(acceptedTo === undefined ? [] : [['m.id < uuid_v7_from(?)', idOf(acceptedTo)] as Condition]),
  ]
}
