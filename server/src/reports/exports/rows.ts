import pg from 'pg'
import { timeOf } from '../../db/partitions.ts'
import type { Executor } from '../../db/pool.ts'
import { allMessages } from '../../messages/list.ts'
import { type Condition, type MessageFilters, planOf } from '../../messages/list-plan.ts'
import type { CampaignKey } from '../campaign.ts'
import { type Bounds, boundsOf, type Range, timesOf } from '../range.ts'
import { ACTION_COLUMNS, FOUND_COLUMNS, MESSAGE_COLUMNS, RECIPIENT_COLUMNS } from './columns.ts'
import { copyRows } from './copy.ts'

// The COPY statements of the files. COPY takes no parameters, so each value is a number or escaped.

const literal = pg.escapeLiteral

/**
 * How to find the rows that belong to messages. These rows have no index by account, since it would slow down every send. `each` looks up the rows
 * of each message by key; `all` reads all rows of the time range, of all accounts, in one pass with the messages.
 */
export type Reading = 'each' | 'all'

/** The messages that an account sent one by one, in the order of acceptance. */
export function copyMessages(accountId: number, range: Range, reading: Reading): string {
  const own = `account_id = ${Number(accountId)}`
  const bounds = boundsOf(range)
  const [since, before] = timesOf(range).map(literal)
  // The ids limit the range, but not to the millisecond.
  const accepted = `m.accepted_at >= ${since} and m.accepted_at < ${before}`
  return copyRows(
    MESSAGE_COLUMNS,
    `from messages m ${joinFirsts(own, bounds, reading)} ${joinSms(bounds, reading)}
     where m.${own} and m.campaign_id is null and not m.test and ${accepted} and ${within('m.id', bounds)} order by m.id`,
  )
}

/**
 * The messages of a list with these filters, in the order of acceptance. It reads the same indexes as the list. How many messages it finds is
 * unknown, so it looks up the rows of each by key.
 */
export async function copyFound(db: Executor, accountId: number, filters: MessageFilters): Promise<string> {
  const bind = ([sql, ...values]: Condition) =>
    sql.replaceAll(/\$1|\?/g, (place) => (place === '$1' ? `${Number(accountId)}` : written(values.shift())))
  const found = allMessages(await planOf(db, accountId, filters), filters, bind)
  return copyRows(
    FOUND_COLUMNS,
    `from (${found}) as m left join campaigns campaign on campaign.id = m.campaign_id
     ${joinFirsts(`account_id = ${Number(accountId)}`, ALWAYS, 'each')} ${joinSms(ALWAYS, 'each')} order by m.id`,
  )
}

const ALWAYS = boundsOf({})

/** A value of a filter, in SQL. */
function written(value: unknown): string {
  if (Array.isArray(value)) return `array[${value.map(written).join(', ')}]`
  return literal(value instanceof Date ? value.toISOString() : String(value))
}

/** The messages of a campaign, in the order of creation. Their recipients' actions have an index by campaign. */
export function copyRecipients(accountId: number, campaign: CampaignKey, reading: Reading): string {
  const own = `campaign_id = ${literal(campaign.id)}`
  return copyRows(
    RECIPIENT_COLUMNS,
    `from messages m ${joinFirsts(own, campaign, 'all')} ${joinSms(campaign, reading)}
     where m.account_id = ${Number(accountId)} and m.${own} and ${within('m.id', campaign)} order by m.id`,
  )
}

/** The actions of a campaign's recipients, by time. Their ids are never from before the campaign. */
export function copyActions({ id, firstId }: CampaignKey): string {
  const from = `from recipient_actions a where a.campaign_id = ${literal(id)} and a.id >= ${literal(firstId)} order by a.occurred_at, a.id`
  return copyRows(ACTION_COLUMNS, from)
}

const within = (id: string, { firstId, endId }: Bounds) => `${id} >= ${literal(firstId)} and ${id} < ${literal(endId)}`

const FIRSTS = ['clicked', 'replied', 'opted-out'].map(
  (kind) => `max(occurred_at) filter (where kind = '${kind}') as ${kind.replace('-', '_')}_at`,
)

/** Joins the first action of each kind. `own`: the condition for the account or campaign. */
function joinFirsts(own: string, bounds: Bounds, reading: Reading): string {
  const firsts = `from message_events where ${own} and kind in ('clicked', 'replied', 'opted-out')`
  return reading === 'each'
    ? `left join lateral (select ${FIRSTS} ${firsts} and message_id = m.id) as did on true`
    : `left join (select message_id, ${FIRSTS} ${firsts} and ${within('message_id', bounds)} group by message_id) as did
       on did.message_id = m.id`
}

/** "offset 0" keeps PostgreSQL from turning the look-ups into a merge. */
function joinSms(bounds: Bounds, reading: Reading): string {
  return reading === 'each'
    ? `left join lateral (select * from sms_fallbacks s where s.message_id = m.id offset 0) as f on true`
    : `left join sms_fallbacks f on f.message_id = m.id and ${within('f.message_id', bounds)}`
}

// Measured: looking up the rows of a message took 5.5 µs of the database's CPU time; reading the rows of all accounts, at most 0.7 µs a
// message. A message takes at least 250 bytes.
const LOOK_IN_BYTES = 2_000

/**
 * Returns `all` if the account sent at least an eighth of all messages of the time range; for a smaller account, look-ups cost less. It compares
 * with the sizes of the monthly tables, since PostgreSQL always knows these, unlike the numbers of rows.
 */
export async function chooseReading(db: Executor, messages: number, { firstId, endId }: Bounds): Promise<Reading> {
  const { rows } = await db.query<{ bytes: number }>(
    `select coalesce(sum(pg_relation_size(c.oid)), 0)::bigint as bytes
     from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'messages'::regclass and c.relname between 'messages_' || $1::text and 'messages_' || $2::text`,
    [monthOf(firstId), monthOf(endId)],
  )
  return (rows[0]?.bytes ?? 0) < messages * LOOK_IN_BYTES ? 'all' : 'each'
}

const LAST_MS = Date.UTC(9999, 11, 31)

/** The month of an id's time, as in the names of tables. */
function monthOf(id: string): string {
  return new Date(Math.min(timeOf(id).getTime(), LAST_MS)).toISOString().slice(0, 7).replace('-', '_')
}
