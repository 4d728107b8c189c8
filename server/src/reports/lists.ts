import type { Executor } from '../db/pool.ts'
import { type ListDefinition, type Page, type PageQuery, readPage } from '../http/paging.ts'
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

/**
 * The rows that a list is of, and their columns. Parameters: the campaign ($1), the ids between which they lie ($2, $3), the days of the
 * range ($4, $5), how many ($6), and `more` from there on.
 */
type Source = { select: string; from: string; id: string; at: string; where?: string; more?: unknown[] }

export const RECIPIENT_LIST: ListDefinition<'occurredAt' | 'recipient' | 'messageId'> = {
  fields: {
    occurredAt: { column: 'occurred_at', type: 'timestamptz' },
    recipient: { column: 'recipient', type: 'text' },
    messageId: { column: 'message_id', type: 'uuid', hidden: true },
  },
  id: 'messageId',
  defaultSort: '-occurredAt',
}

// By time they are in the order of their ids.
const ACCEPTED_LIST: typeof RECIPIENT_LIST = {
  fields: {
    occurredAt: { column: 'accepted_at', type: 'timestamptz' },
    recipient: { column: 'recipient collate "C"', type: 'text' },
    messageId: { column: 'id', type: 'uuid', hidden: true },
  },
  id: 'messageId',
  defaultSort: '-messageId',
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

const EVENTS: Source = {
  select: `message_id as "messageId", recipient, occurred_at as "occurredAt", reason`,
  from: 'message_events',
  id: 'message_id',
  at: 'occurred_at',
  where: 'kind = $7',
}
const ACCEPTED: Source = {
  select: `id as "messageId", recipient, accepted_at as "occurredAt", null as reason`,
  from: 'messages',
  id: 'id',
  at: 'accepted_at',
}
const ACTIONS: Source = {
  select: `id as "actionId", message_id as "messageId", recipient, kind as action, button_id as "buttonId", text, payload, url, occurred_at as "occurredAt"`,
  from: 'recipient_actions',
  id: 'id',
  at: 'occurred_at',
}

/** Whose message of a campaign came to a state, and when. None of what a page goes by ever changes, so that nobody is seen twice or missed. */
export async function listRecipients(db: Executor, accountId: number, campaignId: string, eventType: EventType, query: ListQuery) {
  if (eventType !== 'accepted') {
    const page = readPage(RECIPIENT_LIST, ownPage(query, campaignId, eventType), 8)
    const campaign = await requireCampaign(db, accountId, campaignId)
    return page.answer(await readRows<ReachedRecipient>(db, campaign, { ...EVENTS, more: [eventType] }, query, page))
  }
  const sort = (query.sort ?? RECIPIENT_LIST.defaultSort).replace('occurredAt', 'messageId')
  const page = readPage(ACCEPTED_LIST, ownPage({ ...query, sort }, campaignId, eventType), 7)
  const campaign = await requireCampaign(db, accountId, campaignId)
  // Their ids begin with the time that the list goes by.
  const [first, end] = idsOf(query)
  const bounds = {
    ...campaign,
    firstId: first > campaign.firstId ? first : campaign.firstId,
    endId: end < campaign.endId ? end : campaign.endId,
  }
  return page.answer(await readRows<ReachedRecipient>(db, bounds, ACCEPTED, { ...query, sort }, page))
}

/** What the recipients of a campaign did. */
export async function listActions(db: Executor, accountId: number, campaignId: string, query: ListQuery) {
  const page = readPage(ACTION_LIST, ownPage(query, campaignId, 'actions'), 7)
  const campaign = await requireCampaign(db, accountId, campaignId)
  // What people do has ids of its own, which begin with the time at which it was taken up: for as long as there is anybody to do something.
  const bounds = { ...campaign, endId: idsOf({})[1] }
  const rows = await readRows<ActionDetail & { actionId: string }>(db, bounds, ACTIONS, query, page)
  const { items, nextCursor } = page.answer(rows)
  return { items: items.map(({ actionId, ...item }): ActionDetail => item), nextCursor }
}

/** A cursor is of its campaign and list, too. One that is not right is told before the campaign is looked for. */
const ownPage = (query: ListQuery, campaignId: string, list: string): PageQuery => ({
  ...query,
  ...{ campaignId: campaignId.toLowerCase(), list },
})

async function readRows<Row>(
  db: Executor,
  { id, firstId, endId }: CampaignKey,
  source: Source,
  query: ListQuery,
  page: Page,
): Promise<Row[]> {
  const isByTime = /^-?(occurredAt|messageId)$/.test(query.sort ?? '-occurredAt')
  // Planned each time, for what there is by then.
  const { rows } = await db.query<Row & object>({
    text: (isByTime ? byTime : byDay)(source, page),
    values: [id, firstId, endId, ...daysOf(query), page.fetch, ...(source.more ?? []), ...page.values],
  })
  return rows
}

const rowsOf = ({ from, id, where = 'true' }: Source) =>
  `from ${from} where campaign_id = $1 and ${id} >= $2::uuid and ${id} < $3::uuid and ${where}`

/** A stretch of the index, wherever it begins. */
const byTime = (source: Source, { condition, orderBy }: Page) => `
  select ${source.select} ${rowsOf(source)}
    and ${source.at} >= $4::date::timestamp at time zone 'UTC' and ${source.at} < ($5::date + 1)::timestamp at time zone 'UTC' and ${condition}
  order by ${orderBy} limit $6`

/** The next few of each day of the range that has any, and of those the next few: what it costs grows with the days, and not with what there is. */
const byDay = (source: Source, { condition, orderBy }: Page) => {
  const day = `utc_day(${source.at})`
  const rows = rowsOf(source)
  return `
  with recursive days as (
    (select ${day} as day ${rows} and ${day} between $4::date and $5::date order by 1 limit 1)
    union all
    select later.day from days, lateral (select ${day} as day ${rows} and ${day} > days.day and ${day} <= $5::date order by 1 limit 1) as later
  )
  select ${source.select} from days, lateral (
    select * ${rows} and ${day} = days.day and ${condition} order by ${orderBy} limit $6
  ) as page
  order by ${orderBy} limit $6`
}
