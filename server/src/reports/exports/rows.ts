import pg from 'pg'
import type { Executor } from '../../db/pool.ts'
import type { CampaignKey } from '../campaign.ts'
import { idsOf, type Range, timesOf } from '../range.ts'
import { ACTION_COLUMNS, type Column, MESSAGE_COLUMNS, RECIPIENT_COLUMNS } from './columns.ts'

// The statements that write the files. COPY takes no parameters: what stands in them is a number, or escaped.

const literal = pg.escapeLiteral

/** Texts are always quoted: csv.ts counts on it. */
function copy(columns: readonly Column[], from: string): string {
  const selected = columns.map(({ name, sql }) => `${sql} as "${name}"`)
  const texts = columns.filter(({ isText }) => isText).map(({ name }) => `"${name}"`)
  return `copy (select ${selected.join(', ')} ${from}) to stdout (format csv, header, force_quote (${texts.join(', ')}))`
}

/**
 * How the SMS of messages are found: each by its key, or all that there are of the time, in one go with the messages. They have no index by
 * account, since those who send would pay for it.
 */
export type SmsRead = 'each' | 'all'

/** What an account sent by itself, in the order of acceptance. */
export function copyMessages(accountId: number, range: Range, sms: SmsRead): string {
  const own = `account_id = ${Number(accountId)}`
  const [since, before] = timesOf(range).map(literal)
  // The ids say almost all of it, but not to the millisecond.
  const accepted = `m.accepted_at >= ${since} and m.accepted_at < ${before}`
  return copy(MESSAGE_COLUMNS, messages(`m.${own} and m.campaign_id is null and not m.test and ${accepted}`, own, boundsOf(range), sms))
}

/** The messages of a campaign, in the order in which they were made. */
export function copyRecipients(accountId: number, campaign: CampaignKey, sms: SmsRead): string {
  const own = `campaign_id = ${literal(campaign.id)}`
  return copy(RECIPIENT_COLUMNS, messages(`m.account_id = ${Number(accountId)} and m.${own}`, own, campaign, sms))
}

/** What the recipients of a campaign did, by time. It has ids of its own, which are never from before the campaign. */
export function copyActions({ id, firstId }: CampaignKey): string {
  const from = `from recipient_actions a where a.campaign_id = ${literal(id)} and a.id >= ${literal(firstId)} order by a.occurred_at, a.id`
  return copy(ACTION_COLUMNS, from)
}

/** Between which ids messages lie. */
export type Bounds = Pick<CampaignKey, 'firstId' | 'endId'>

export function boundsOf(range: Range): Bounds {
  const [firstId, endId] = idsOf(range)
  return { firstId, endId }
}

/**
 * A merge of messages with what their recipients did first, both by an index that has them in the order of the ids, and nobody else's: `own`
 * and `ownFirsts` are the conditions.
 */
function messages(own: string, ownFirsts: string, { firstId, endId }: Bounds, sms: SmsRead): string {
  const within = (id: string) => `${id} >= ${literal(firstId)} and ${id} < ${literal(endId)}`
  return `
    from messages m
    left join (
      select message_id, max(occurred_at) filter (where kind = 'clicked') as clicked_at, max(occurred_at) filter (where kind = 'replied') as replied_at,
        max(occurred_at) filter (where kind = 'opted-out') as opted_out_at
      from message_events
      where ${ownFirsts} and kind in ('clicked', 'replied', 'opted-out') and ${within('message_id')}
      group by message_id
    ) as did on did.message_id = m.id
    left join ${
      // "offset 0" keeps it from being merged all the same.
      sms === 'each'
        ? 'lateral (select * from sms_fallbacks s where s.message_id = m.id offset 0) as f on true'
        : `sms_fallbacks f on f.message_id = m.id and ${within('f.message_id')}`
    }
    where ${own} and ${within('m.id')}
    order by m.id`
}

// For a million messages, to look for the SMS of each took 2.7 s of the database's processor; to go through all took 1.3 s a gigabyte.
const LOOK_IN_BYTES = 2_000

/**
 * Whoever sent most of what there is is better off to go through all of it; others would pay for what is not theirs. How large the tables of
 * the months are is always known, unlike how many rows they have.
 */
export async function chooseSmsRead(db: Executor, messages: number, { firstId, endId }: Bounds): Promise<SmsRead> {
  const { rows } = await db.query<{ bytes: number }>(
    `select coalesce(sum(pg_relation_size(c.oid)), 0)::bigint as bytes
     from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'sms_fallbacks'::regclass and c.relname between 'sms_fallbacks_' || $1::text and 'sms_fallbacks_' || $2::text`,
    [monthOf(firstId), monthOf(endId)],
  )
  return (rows[0]?.bytes ?? 0) < messages * LOOK_IN_BYTES ? 'all' : 'each'
}

const LAST_MS = Date.UTC(9999, 11, 31)

/** Of the time that an id begins with, as in the names of tables. */
function monthOf(id: string): string {
  const at = Number.parseInt(id.replace('-', '').slice(0, 12), 16)
  return new Date(Math.min(at, LAST_MS)).toISOString().slice(0, 7).replace('-', '_')
}
