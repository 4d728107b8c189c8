import type pg from 'pg'
import { ensurePartitions } from '../../server/src/db/partitions.ts'
import { TABLE_PRIVILEGES } from '../../server/src/db/privileges.ts'
import { SERVICE_ROLE } from '../../server/src/db/service-role.ts'
import { COUNTERS, type Counter } from '../../server/src/events/changes.ts'
import { NO_CAMPAIGN } from '../../server/src/ids.ts'
import { type Account, AGENT } from '../setup/accounts.ts'
import type { Database } from '../setup/postgres.ts'
import { inChunks } from './messages.ts'

// Messages with a final status, written by SQL in the order of their acceptance, evenly over ten days with a month's border in the middle. The
// fate of a message depends on its number alone, so that every run has the same rows.

const DAYS = 10

const daysLater = (at: Date, days: number) => new Date(at.getTime() + days * 86_400_000)
export const dayOf = (at: Date, days: number) => daysLater(at, days).toISOString().slice(0, 10)

/** The first day of last month, so that no message is from the future. Half of the days are before it. */
export async function monthBorder(client: pg.Client): Promise<Date> {
  const { rows } = await client.query<{ border: Date }>(`select date_trunc('month', now() - interval '1 month', 'UTC') as border`)
  return (rows[0] as { border: Date }).border
}

/** The partitions of `messages` for the data. The service creates those of all other tables for each month that has messages. */
export async function createMonths({ client, pool }: Database, border: Date): Promise<void> {
  for (const month of [daysLater(border, -1), border]) {
    const first = `${month.toISOString().slice(0, 7)}-01`
    const name = `messages_${first.slice(0, 7).replace('-', '_')}`
    await client.query(`create table ${name} (like messages including all) with (fillfactor = 45)`)
    await client.query(`grant ${TABLE_PRIVILEGES.messages} on ${name} to ${SERVICE_ROLE}`)
    await client.query(
      `do $$ begin execute format('alter table messages attach partition ${name} for values from (%L) to (%L)',
         uuid_v7_from('${first} 00:00Z'), uuid_v7_from(('${first}'::timestamp + interval '1 month') at time zone 'UTC')); end $$`,
    )
  }
  await ensurePartitions(pool)
}

export type Campaign = { campaignId: string; contentId: number }

/** A completed campaign, whose fan-out took all of the days. */
export async function createCampaign(client: pg.Client, { accountId }: Account, messages: number, border: Date): Promise<Campaign> {
  const content = await client.query<{ id: string }>(
    `insert into contents (account_id, basic, message) values ($1, false, $2) returning id`,
    [accountId, '{"type":"MESSAGE","content":"Our autumn sale has begun."}'],
  )
  const contentId = Number(content.rows[0]?.id)
  const { rows } = await client.query<{ id: string }>(
    `insert into campaigns (id, account_id, agent_id, name, group_numbers, basic, content_id, status, created_at, scheduled_at, started_at, fan_out_completed_at,
       completed_at, recipients)
     values (uuid_v7(), $2, '${AGENT}', 'Autumn sale', '{1}', false, $3, 'COMPLETED', $1, $1, $1, $4, $5, $6) returning id`,
    [daysLater(border, -DAYS / 2), accountId, contentId, daysLater(border, DAYS / 2), daysLater(border, DAYS / 2 + 3), messages],
  )
  return { campaignId: (rows[0] as { id: string }).id, contentId }
}

/** `testEvery`: the distance between test messages. */
export type Sender = { account: Account; campaign?: Campaign; messages: number; testEvery?: number }
type Writing = { url: string; border: Date; say: (sentence: string) => void }

/**
 * The messages of a sender with their timelines, SMS, actions and counters. The log of events stays empty: no report reads it, and the service
 * would route it during the measurements. A message of a campaign falls back to an SMS if it fails, of the others every fourth.
 */
export async function writeMessages({ url, border, say }: Writing, { account, campaign, messages, testEvery = 0 }: Sender): Promise<void> {
  const what = campaign === undefined ? 'messages' : 'messages of the campaign'
  const more = [AGENT, campaign?.campaignId ?? null, campaign?.contentId ?? null, daysLater(border, -DAYS / 2), messages, testEvery]
  await inChunks({ url, account, say }, messages, { what, text: WRITE, more })
}

/** `fate` and `deed` are numbers below 1,000: what became of the message, and what its recipient did. They are independent of each other. */
const FATES = `
    case when fate < 40 then 'EXPIRED' when fate < 100 then 'FAILED' when fate < 350 then 'DELIVERED' else 'READ' end`
const DEEDS = `
    case when fate >= 350 then case when deed < 80 then 'clicked' when deed < 120 then 'tapped' when deed < 150 then 'wrote'
      when deed < 155 then 'opted-out' when deed < 158 then 'shared-location' when deed < 160 then 'sent-file' end end`
/** Most SMS arrive. */
const SMS = `
    case when not falls_back then null when status = 'EXPIRED' then 'SKIPPED' when status <> 'FAILED' then 'WAITING'
      when deed < 100 then 'SKIPPED' when deed < 200 then 'FAILED' when deed < 300 then 'SENT' else 'DELIVERED' end`
/** Some look like a formula, or have to be quoted. */
const TEXTS = `(array['Thank you!', 'When will it come?', '=SUM(A1:A9)', E'Two lines,\\nand a comma', 'He said "no"'])[1 + n % 5]`

const NUMBERED = `
    select n, $7::timestamptz + (n::float8 / $8 * interval '${DAYS} days') as at, n::bigint * 7919 % 1000 as fate, n::bigint * 104729 % 1009 * 1000 / 1009 as deed,
      '+48' || 500000000 + (n::bigint * 48271 % 1000003) * 97 as recipient, $9 > 0 and n % greatest($9, 1) = 0 as test, md5(concat($3::int, $5::uuid, n)) as random,
      $5::uuid is not null or n % 4 = 0 as falls_back
    from generate_series($1::int, $2::int) as n`

const ID = (at: string, random: string) =>
  `(lpad(to_hex(round(extract(epoch from ${at}) * 1000)::bigint), 12, '0') || '7' || substr(${random}, 1, 3) || '8' || substr(${random}, 4, 15))::uuid`

const REASONS = new Map([
  ['failed', `'NOT_REACHABLE'`],
  ['sms-sent', `'RCS_FAILED'`],
  ['sms-delivered', `'RCS_FAILED'`],
  ['sms-failed', `'UNDELIVERABLE'`],
])

/** A message has the times of these itself. `message_events` has them for the messages of campaigns alone, whose reports list them. */
const OF_CAMPAIGNS = ['sent', 'delivered', 'read', 'failed', 'expired']

/** Reports list neither test messages nor SMS that were held back. */
const EVENTS = Object.entries({
  ...Object.fromEntries(OF_CAMPAIGNS.map((kind) => [kind, `${kind}_at`])),
  clicked: 'case when not test then clicked_at end',
  replied: 'case when not test then replied_at end',
  'opted-out': 'case when not test then opted_out_at end',
  'sms-sent': 'sms_sent_at',
  'sms-delivered': 'sms_delivered_at',
  'sms-failed': 'sms_failed_at',
  'sms-skipped': 'sms_skipped_at',
})
  .map(([kind, at]) => {
    const listed = kind === 'sms-skipped' ? 'null::uuid, null' : 'campaign_id, case when campaign_id is not null then recipient end'
    const which = OF_CAMPAIGNS.includes(kind) ? 'and campaign_id is not null' : ''
    return `select id, account_id, '${kind}', ${at}, ${REASONS.get(kind) ?? 'null'}, ${listed} from made where ${at} is not null ${which}`
  })
  .join(' union all ')

const UNSENT_AT = 'case when sent_at is null then coalesce(failed_at, expired_at) end'
const CLAIMED_AT = 'case when campaign_id is not null then coalesce(sent_at, failed_at, expired_at) end'
/** The time at which a counter counts a message. */
const countedAt = (counter: Counter) =>
  counter === 'message.unsent' ? UNSENT_AT : counter === 'message.claimed' ? CLAIMED_AT : `${COUNTERS[counter]}_at`
const KINDS = Object.keys(COUNTERS) as Counter[]

const COUNT = `
    insert into report_deltas (account_id, campaign_id, hour, ${KINDS.map((kind) => COUNTERS[kind]).join(', ')})
    select account_id, coalesce(campaign_id, '${NO_CAMPAIGN}'), date_trunc('hour', at, 'UTC'),
      ${KINDS.map((kind) => `count(*) filter (where kind = '${kind}')`).join(', ')}
    from made, lateral (values ${KINDS.map((kind) => `('${kind}', ${countedAt(kind)})`).join(', ')}) as step (kind, at)
    where at is not null and not test group by 1, 2, 3`

const WRITE = `
  with fated as materialized (
    select *, ${FATES} as status, ${DEEDS} as done from (
      select n, at::timestamptz(3) as accepted_at, fate, deed, recipient, test, random, falls_back from (${NUMBERED}) as numbered
    ) as numbered
  ), timed as materialized (
    select *, ${ID('accepted_at', 'random')} as id, ${SMS} as sms_status,
      case when not (status = 'FAILED' and n % 2 = 0) then accepted_at + (800 + n % 3000) * interval '1 millisecond' end as sent_at,
      case when status in ('DELIVERED', 'READ') then accepted_at + (5000 + n * 37 % 60000) * interval '1 millisecond' end as delivered_at,
      case when status = 'READ' then accepted_at + (70000 + n::bigint * 7919 % 7200000) * interval '1 millisecond' end as read_at,
      case when status = 'FAILED' then accepted_at + interval '4 seconds' end as failed_at,
      accepted_at + interval '48 hours' as expires_at
    from fated
  ), made as materialized (
    select *, $3::int as account_id, $5::uuid as campaign_id,
      case when status = 'EXPIRED' then expires_at end as expired_at,
      case when done is not null then read_at + interval '20 seconds' end as done_at,
      case when done = 'clicked' then read_at + interval '20 seconds' end as clicked_at,
      case when done in ('tapped', 'wrote', 'shared-location', 'sent-file') then read_at + interval '20 seconds' end as replied_at,
      case when done = 'opted-out' then read_at + interval '20 seconds' end as opted_out_at,
      case when sms_status in ('SENT', 'DELIVERED', 'FAILED') then failed_at + interval '2 seconds' end as sms_sent_at,
      case when sms_status = 'DELIVERED' then failed_at + interval '9 seconds' end as sms_delivered_at,
      case when sms_status = 'FAILED' then failed_at + interval '9 seconds' end as sms_failed_at,
      case when sms_status = 'SKIPPED' then coalesce(failed_at, expires_at) + interval '1 second' end as sms_skipped_at
    from timed
  ), written as (
    insert into messages (id, account_id, agent_id, recipient, status, basic, test, client_reference_id, content_id, content, accepted_at, expires_at,
      sent_at, delivered_at, read_at, failed_at, failure_reason, failure_description, traffic, campaign_id)
    select id, account_id, $4, recipient, status, false, test, case when campaign_id is null then 'order-' || n end, $6::bigint,
      case when $6::bigint is null then '{"type":"MESSAGE","content":"Your order is on its way."}'::json end, accepted_at, expires_at,
      sent_at, delivered_at, read_at, failed_at, case when status = 'FAILED' then 'NOT_REACHABLE' end,
      case when status = 'FAILED' then 'The number can’t be reached by RCS.' end, case when campaign_id is null then 'TRANSACTION' else 'PROMOTION' end, campaign_id
    from made
  ), fallen_back as (
    insert into sms_fallbacks (message_id, account_id, status, reason, plan, segments, delay_seconds, after_expiry, due_at, sent_at, delivered_at, failed_at)
    select id, account_id, sms_status, case when sms_status = 'WAITING' then null when status = 'EXPIRED' then 'EXPIRED' when sms_status = 'SKIPPED' then 'OPTED_OUT'
        when sms_status = 'FAILED' then 'UNDELIVERABLE' else 'RCS_FAILED' end,
      '{"sender":"MyShop","content":"Our autumn sale has begun."}', 1, 0, false, case when sms_status <> 'WAITING' then coalesce(failed_at, expires_at) end,
      sms_sent_at, sms_delivered_at, sms_failed_at
    from made where falls_back
  ), acted as (
    insert into recipient_actions (id, account_id, agent_id, recipient, message_id, kind, channel, button_id, text, payload, url, occurred_at, campaign_id)
    select ${ID('done_at', 'reverse(random)')}, account_id, $4, recipient, id, done, 'rcs', case when done in ('clicked', 'tapped') then 'more' end,
      case when done = 'tapped' then 'Tell me more' when done = 'wrote' then ${TEXTS} end, case when done = 'tapped' then 'more-' || n end,
      case when done = 'clicked' then 'https://shop.example/sale?from=rcs' end, done_at, campaign_id
    from made where done is not null
  ), noted as (
    insert into message_events (message_id, account_id, kind, occurred_at, reason, campaign_id, recipient)
    ${EVENTS}
  )
  ${COUNT}`
