import { type Pool, transaction } from '../db/pool.ts'
import { type ListDefinition, type Page, type PageQuery, readPage, withinPageBytes } from '../http/paging.ts'
import type { Action } from '../replies/actions.ts'
import { type CampaignKey, requireCampaign } from './campaign.ts'
import { daysOf, idsOf, type Range } from './range.ts'

export const EVENT_TYPES = [
  'accepted',
  'sent',
  'delivered',
  'read',
  'failed',
  'expired',
  'clicked',
  'replied',
  'opted-out',
  'sms-sent',
  'sms-delivered',
  'sms-failed',
] as const
export type EventType = (typeof EVENT_TYPES)[number]

export type ReachedRecipient = { messageId: string; recipient: string; occurredAt: Date; reason: string | null }
export type ActionDetail = {
  messageId: string
  recipient: string
  action: Action['kind']
  buttonId: string | null
  text: string | null
  payload: string | null
  url: string | null
  occurredAt: Date
}

export type ListQuery = PageQuery & Range

export const RECIPIENT_LIST: ListDefinition<'occurredAt' | 'recipient' | 'messageId'> = {
  fields: {
    occurredAt: { column: 'occurred_at', type: 'timestamptz' },
    recipient: { column: 'recipient', type: 'text' },
    messageId: { column: 'message_id', type: 'uuid', hidden: true },
  },
  id: 'messageId',
  defaultSort: '-occurredAt',
}

export const ACTION_LIST: ListDefinition<'occurredAt' | 'recipient' | 'action' | 'actionId'> = {
  fields: {
    occurredAt: { column: 'occurred_at', type: 'timestamptz' },
    recipient: { column: 'recipient collate "C"', type: 'text' },
    action: { column: 'kind collate "C"', type: 'text' },
    actionId: { column: 'id', type: 'uuid', hidden: true },
  },
  id: 'actionId',
  defaultSort: '-occurredAt',
}

/** The rows that a list is of. By time, they have an index on `at`, or their ids are in its order. `size`: where rows can be large, their bytes. */
type Source = { select: string; columns: string; from: string; id: string; at: string; size?: string }

const EVENTS: Source = {
  select: `message_id as "messageId", recipient, occurred_at as "occurredAt", reason`,
  columns: 'message_id, recipient, occurred_at, reason',
  from: 'message_events',
  id: 'message_id',
  at: 'occurred_at',
}
const ACCEPTED: Source = {
  select: `id as "messageId", recipient, accepted_at as "occurredAt", null as reason`,
  columns: 'id, recipient, accepted_at',
  from: 'messages',
  id: 'id',
  at: 'accepted_at',
}
const ACTIONS: Source = {
  select: `id as "actionId", message_id as "messageId", recipient, kind as action, button_id as "buttonId", text, payload, url, occurred_at as "occurredAt"`,
  columns: '*',
  from: 'recipient_actions',
  id: 'id',
  at: 'occurred_at',
  // What people write has no length that this service sets.
  size: `coalesce(octet_length(text), 0) + coalesce(octet_length(payload), 0) + coalesce(octet_length(url), 0)`,
}

/** The ids of messages are in the order in which they were accepted. */
const ACCEPTED_LIST = {
  fields: {
    messageId: { column: 'id', type: 'uuid' },
    recipient: { column: 'recipient collate "C"', type: 'text' },
  },
  id: 'messageId',
  defaultSort: '-messageId',
} as const satisfies ListDefinition<'messageId' | 'recipient'>

/** Whose message of a campaign came to a state, and when. None of what a page goes by ever changes, so that nobody is seen twice or missed. */
export async function listRecipients(db: Pool, accountId: number, campaignId: string, eventType: EventType, query: ListQuery) {
  if (eventType === 'accepted') return await listAccepted(db, accountId, campaignId, query)
  const page = readPage(RECIPIENT_LIST, ownPage(query, campaignId, eventType), FIRST_OF_PAGE + 1)
  const campaign = await requireCampaign(db, accountId, campaignId)
  return page.answer(await readRows<ReachedRecipient>(db, { ...EVENTS, accountId, campaign, kind: eventType }, query, page))
}

async function listAccepted(db: Pool, accountId: number, campaignId: string, { sort, ...query }: ListQuery) {
  const byId = { ...query, ...(sort !== undefined && { sort: sort.replace('occurredAt', 'messageId') }) }
  const page = readPage(ACCEPTED_LIST, ownPage(byId, campaignId, 'accepted'), FIRST_OF_PAGE)
  const campaign = await requireCampaign(db, accountId, campaignId)
  const [firstId, endId] = idsOf(query)
  const within = { ...campaign, firstId: later(firstId, campaign.firstId), endId: earlier(endId, campaign.endId) }
  return page.answer(await readRows<ReachedRecipient>(db, { ...ACCEPTED, accountId, campaign: within }, byId, page))
}

type SizedAction = ActionDetail & { actionId: string; found: number; bytesBefore: number | null }

/** What the recipients of a campaign did. */
export async function listActions(db: Pool, accountId: number, campaignId: string, query: ListQuery) {
  const page = readPage(ACTION_LIST, ownPage(query, campaignId, 'actions'), FIRST_OF_PAGE)
  const campaign = await requireCampaign(db, accountId, campaignId)
  // They have ids of their own, of the time at which they were taken up: that is never before it was done, and goes on long after the campaign.
  const within = { ...campaign, firstId: later(idsOf(query)[0], campaign.firstId), endId: campaign.nowId }
  const rows = await readRows<SizedAction>(db, { ...ACTIONS, accountId, campaign: within }, query, page)
  const { items, nextCursor } = page.answer(rows, rows[0]?.found)
  return { items: items.map(({ actionId, found, bytesBefore, ...item }): ActionDetail => item), nextCursor }
}

/** A cursor is of its campaign and list, too. One that is not right is told before the campaign is looked for. */
const ownPage = (query: ListQuery, campaignId: string, list: string): PageQuery => ({
  ...query,
  ...{ campaignId: campaignId.toLowerCase(), list },
})

const later = (one: string, other: string) => (one > other ? one : other)
const earlier = (one: string, other: string) => (one < other ? one : other)

type Wanted = Source & { accountId: number; campaign: CampaignKey; kind?: EventType }

/** Parameters: the campaign ($1), the account ($2), the ids between which the rows lie ($3, $4), the days of the range ($5, $6), how many ($7), */
const FIRST_OF_PAGE = 8
/** and the kind, where the rows have several. */
const rowsOf = ({ from, id, kind }: Wanted) =>
  `from ${from} where campaign_id = $1 and account_id = $2 and ${id} >= $3::uuid and ${id} < $4::uuid ${kind === undefined ? '' : 'and kind = $8'}`

/** Planned each time, for what there is by then. */
async function readRows<Row extends object>(db: Pool, wanted: Wanted, query: ListQuery, page: Page): Promise<Row[]> {
  const { accountId, campaign, kind } = wanted
  const ofList = [campaign.id, accountId, campaign.firstId, campaign.endId, ...daysOf(query), page.fetch]
  const values = [...ofList, ...(kind === undefined ? [] : [kind]), ...page.values]
  const isByTime = !/^-?(recipient|action)$/.test(query.sort ?? '')
  const rows = isByTime ? byTime(wanted, page) : byDay(wanted, page)
  const statement = wanted.size === undefined ? rows : withinPageBytes(rows, wanted.size)
  return isByTime ? (await db.query<Row>(statement, values)).rows : await readByDay(db, statement, values)
}

/**
 * A stretch of the index, wherever it begins. Where a cursor says that, the end of the range on its side is only looked at: of two such
 * conditions PostgreSQL 18 begins at the wrong one, and walks to the other, half a second in a list of a million.
 */
const byTime = (wanted: Wanted, { condition, orderBy, values }: Page) => {
  const { at } = wanted
  const isDescending = / desc\b/.test(orderBy)
  const since = values.length > 0 && !isDescending ? `utc_day(${at}) >= $5::date` : `${at} >= $5::date::timestamp at time zone 'UTC'`
  const before = values.length > 0 && isDescending ? `utc_day(${at}) <= $6::date` : `${at} < ($6::date + 1)::timestamp at time zone 'UTC'`
  return `
  select ${wanted.select} ${rowsOf(wanted)} and ${since} and ${before} and ${condition}
  order by ${orderBy} limit $7`
}

/** The next few of each day of the range that has any, and of those the next few: what it costs grows with the days, and not with what there is. */
const byDay = (wanted: Wanted, { condition, orderBy }: Page) => {
  const day = `utc_day(${wanted.at})`
  const rows = rowsOf(wanted)
  return `
  with recursive days as (
    (select ${day} as day ${rows} and ${day} between $5::date and $6::date order by 1 limit 1)
    union all
    select later.day from days, lateral (select ${day} as day ${rows} and ${day} > days.day and ${day} <= $6::date order by 1 limit 1) as later
  )
  select ${wanted.select} from days, lateral (
    select ${wanted.columns} ${rows} and ${day} = days.day and ${condition} order by ${orderBy} limit $7
  ) as page
  order by ${orderBy} limit $7`
}

/**
 * The next few of a day are there in the order of an index. Where PostgreSQL expects fewer than a page in a day, it would read the whole day by
 * another index and sort it: 350 ms instead of 21 for 35,000 actions.
 */
async function readByDay<Row extends object>(pool: Pool, statement: string, values: unknown[]): Promise<Row[]> {
  return await transaction(pool, async (tx) => {
    await tx.query('set local enable_sort = off')
    return (await tx.query<Row>(statement, values)).rows
  })
}
