import type { Executor } from '../db/pool.ts'
import { type ListDefinition, type PageQuery, readPage } from '../http/paging.ts'
import { normalisePhoneNumber } from '../phone-numbers.ts'
import { parseTimestamp } from '../time.ts'
import { MESSAGE_JOINS, type Message, SHOWN_MESSAGE, SHOWN_STATUS, toMessage } from './messages.ts'

type MessageFilters = {
  recipient?: string
  clientReferenceId?: string
  campaignId?: string
  agentId?: string
  /** Separated by commas. */
  status?: string
  test?: boolean
  acceptedFrom?: string
  acceptedTo?: string
}

/** Ids are in the order of acceptance. */
export const MESSAGE_LIST: ListDefinition<'acceptedAt'> = {
  fields: { acceptedAt: { column: 'm.id', type: 'uuid', valueIn: 'messageId' } },
  id: 'acceptedAt',
  defaultSort: '-acceptedAt',
}

/**
 * How many messages a page reads at most if it has a filter without an index. An index on the status would double the cost of every change of
 * a message, so a page of a rare status may have few messages, or none, and a cursor. 5,000 messages take 20 ms.
 */
export const SCANNED = 5_000

/** The columns that SHOWN_MESSAGE and the filters need; not the content, which may be large. */
const COLUMNS = [
  ...['id', 'account_id', 'agent_id', 'recipient', 'status', 'basic', 'test', 'client_reference_id', 'campaign_id', 'triggered_by'],
  ...['accepted_at', 'expires_at', 'sent_at', 'delivered_at', 'read_at', 'failed_at', 'failure_reason', 'failure_description'],
].map((column) => `m.${column}`)

/** A condition, and the values of its parameters in order: each `?` is one. */
type Condition = [sql: string, ...values: unknown[]]

/**
 * Lists messages by one index, chosen by the filters, in the order of the list. The other filters are checked on what that index finds.
 */
export async function listMessages(db: Executor, accountId: number, query: PageQuery & MessageFilters) {
  const page = readPage(MESSAGE_LIST, query, 2)
  const values: unknown[] = [accountId, ...page.values]
  const bind = ([sql, ...bound]: Condition) =>
    sql.replaceAll('?', () => {
      values.push(bound.shift())
      return `$${values.length}`
    })
  const { sources, rest } = planOf(query)
  const filters = rest.map(bind)
  const within = [page.condition, ...timesOf(query).map(bind)].join(' and ')
  const read = filters.length === 0 ? page.fetch : SCANNED
  const ordered = (where: string) => `select ${COLUMNS} from messages m where ${where} and ${within} order by ${page.orderBy} limit ${read}`
  const scans = sources.map(({ of, where }) => {
    const scan = ordered(`m.account_id = $1 and ${bind(where)}`)
    return of === undefined ? `(${scan})` : `(select m.* from ${bind(of)}, lateral (${scan}) as m)`
  })
  const { rows } = await db.query<Record<string, unknown> & Scan>(
    `with scanned as materialized (
       select * from (${scans.join(' union all ')}) as m order by ${page.orderBy} limit ${read}
     ), page as materialized (
       select * from scanned m where ${['true', ...filters].join(' and ')} order by ${page.orderBy} limit ${page.fetch}
     ), shown as (
       select ${SHOWN_MESSAGE} from page m ${MESSAGE_JOINS}
     )
     select scan.*, m.* from (
       select (select count(*)::int from scanned) as scanned,
         (select m.id from scanned m order by ${page.orderBy} offset ${SCANNED - 1} limit 1) as "lastScanned"
     ) as scan left join shown m on true
     order by m."messageId" ${page.orderBy.split(' ')[1]}`,
    values,
  )
  const { scanned, lastScanned } = rows[0] as Scan
  const messages = rows.flatMap(({ scanned: _, lastScanned: __, ...row }) => (row.messageId === null ? [] : [toMessage(row)]))
  const isCut = scanned === SCANNED && filters.length > 0
  return page.toBody<Message>(messages, messages.length, isCut ? { messageId: lastScanned } : undefined)
}

type Scan = { scanned: number; lastScanned: string | null }

/** `of`: rows to repeat the scan for. */
type Source = { where: Condition; of?: Condition }

/** The indexes to read, and the filters that they do not cover. The most selective filter comes first. */
function planOf(query: MessageFilters): { sources: Source[]; rest: Condition[] } {
  const { recipient, clientReferenceId, campaignId, agentId, status, test = false } = query
  const rest: Condition[] = []
  if (agentId !== undefined) rest.push(['m.agent_id = ?', agentId])
  if (status !== undefined) rest.push([`(${SHOWN_STATUS}) = any (?::text[])`, status.split(',')])
  if (recipient === undefined && clientReferenceId === undefined && campaignId === undefined) {
    return { sources: test ? [{ where: ['m.test'] }] : OF_ACCOUNT, rest }
  }
  if (test) rest.push(['m.test'])
  const unlessTest = test ? '' : ' and not m.test'
  if (recipient === undefined && clientReferenceId === undefined) {
    const own: Condition = ['(select id from campaigns where account_id = $1 and id = ?) as c', campaignId]
    return { sources: [{ of: own, where: ['m.campaign_id = c.id'] }], rest }
  }
  if (campaignId !== undefined) rest.push(['m.campaign_id = ?', campaignId])
  if (recipient === undefined) {
    const named: Condition = ['(select id from campaigns where account_id = $1 and client_reference_id = ?) as c', clientReferenceId]
    return {
      sources: [
        { where: [`m.client_reference_id = ?${unlessTest}`, clientReferenceId] },
        { of: named, where: ['m.campaign_id = c.id and m.client_reference_id is null'] },
      ],
      rest,
    }
  }
  if (clientReferenceId !== undefined) rest.push([`coalesce(m.client_reference_id, ${REFERENCE_OF_CAMPAIGN}) = ?`, clientReferenceId])
  return { sources: [{ where: [`m.recipient = ?${unlessTest}`, phoneOf(recipient)] }], rest }
}

const OF_ACCOUNT: Source[] = [{ where: ['m.campaign_id is null and not m.test'] }, { where: ['m.campaign_id is not null'] }]

const REFERENCE_OF_CAMPAIGN = '(select c.client_reference_id from campaigns c where c.id = m.campaign_id)'

/** No id is from before 1970. */
function timesOf({ acceptedFrom, acceptedTo }: MessageFilters): Condition[] {
  const idOf = (text: string) => new Date(Math.max(parseTimestamp(text)?.getTime() ?? 0, 0))
  return [
    ...(acceptedFrom === undefined ? [] : [['m.id >= uuid_v7_from(?)', idOf(acceptedFrom)] as Condition]),
    ...(acceptedTo === undefined ? [] : [['m.id < uuid_v7_from(?)', idOf(acceptedTo)] as Condition]),
  ]
}

/** In a query, "+" means a space: a number that was not encoded begins with one. */
export function phoneOf(text: string): string | undefined {
  return normalisePhoneNumber(text.replace(/^ /, '+'))
}
