import type { Executor } from '../db/pool.ts'
import { NO_CAMPAIGN } from '../ids.ts'
import type { EventKind } from './kinds.ts'
import { EVENTS_PER_PAGE } from './pages.ts'

// The only place that records changes. A statement that changes messages describes its changes once, and the steps made here write them to the
// log, to the counters of reports, and to the timelines, which the lists of campaigns read. All steps are in one transaction, so a crash keeps
// everything or nothing, and they take no further round trip.

/** The counter of each kind of change. A message counts at most once in each. */
export const COUNTERS = {
  'message.accepted': 'accepted',
  'message.sent': 'sent',
  'message.delivered': 'delivered',
  'message.read': 'read',
  'message.failed': 'failed',
  'message.expired': 'expired',
  'message.clicked': 'clicked',
  'message.replied': 'replied',
  'recipient.opted_out': 'opted_out',
  'sms.sent': 'sms_sent',
  'sms.delivered': 'sms_delivered',
  'sms.failed': 'sms_failed',
  'sms.skipped': 'sms_skipped',
  // Reports do not show these two, but the status of a campaign's messages follows from them. Unsent: the message failed or expired before it
  // was sent. Claimed, only in campaigns: a worker has claimed the message, or it failed or expired before that.
  'message.unsent': 'unsent',
  'message.claimed': 'claimed',
} as const satisfies Partial<Record<EventKind | 'message.accepted' | 'message.unsent' | 'message.claimed' | 'sms.skipped', string>>
export type Counter = keyof typeof COUNTERS

/** The columns of a message `m` that a step must return, in addition to the columns that its changes name. */
export const MESSAGE_FACTS = 'm.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test'

export type Change = {
  kind: Counter
  /** The column with its time, as stored. If the column is null, nothing has changed. */
  at: string
  /** A further condition. */
  where?: string
  /** Further data of the event, as JSON. */
  more?: string
  /** The column with the reason, for the timeline. */
  reason?: string
}

/** Changes that are counted but emit no event. */
const COUNTED_ONLY: readonly Counter[] = ['message.accepted', 'message.unsent', 'message.claimed', 'sms.skipped']

/** Counts a message that failed or expired before it was sent, or even claimed. The step has the columns `sent_at` and `was_claimed`. */
export const endedUnsent = (at: string): Change[] => [
  { kind: 'message.unsent', at, where: 'sent_at is null' },
  { kind: 'message.claimed', at, where: 'campaign_id is not null and not was_claimed' },
]

/** A statement that counts the first claims of campaign messages, or takes them back. `claimed` names a step with a row for each message. */
export const countFirstClaims = (claimed: string, count = 'count(*)') => `
    insert into report_deltas (account_id, campaign_id, hour, claimed)
    select account_id, campaign_id, date_trunc('hour', now()::timestamptz(3), 'UTC'), ${count} from ${claimed} group by 1, 2`

/**
 * Steps that record changes of messages. `moved` names a step with MESSAGE_FACTS and the columns of `changes`. In the log, the events of one
 * message are in the order of `changes`.
 */
export function recordChanges(moved: string, changes: readonly Change[]): string {
  const change = `${moved}_change`
  const kinds = changes.map(({ kind }) => kind)
  const events = kinds.filter((kind) => !COUNTED_ONLY.includes(kind)).map((kind) => `'${kind}'`)
  const steps = [
    `${change} as materialized (\n    ${changes.map(changeOf(moved)).join('\n    union all\n    ')}\n  )`,
    countChanges(change, kinds),
  ]
  if (events.length > 0) {
    const event = `${change} where kind in (${events.join(', ')})`
    steps.push(`${change}_logged as (${writePages(event, 'id')}\n  )`, `${change}_listed as (${listEvents(event)}\n  )`)
  }
  return steps.join(', ')
}

const changeOf =
  (moved: string) =>
  ({ kind, at, where, more = 'null::json', reason = 'null' }: Change, place: number) =>
    `select ${place} as place, '${kind}' as kind, ${at} as at, ${more} as more, ${reason} as reason, ${MESSAGE_FACTS}
    from ${moved} m where ${at} is not null${where === undefined ? '' : ` and ${where}`}`

/** Each statement inserts rows of its own, one for each account, campaign and hour, so that statements never wait for each other. */
const countChanges = (change: string, kinds: readonly Counter[]) => `${change}_counted as (
    insert into report_deltas (account_id, campaign_id, hour, ${kinds.map((kind) => COUNTERS[kind]).join(', ')})
    select account_id, coalesce(campaign_id, '${NO_CAMPAIGN}'), date_trunc('hour', at, 'UTC'),
      ${kinds.map((kind) => `count(*) filter (where kind = '${kind}')`).join(', ')}
    from ${change} where not test group by 1, 2, 3
  )`

/** Writes pages in the form that events/pages.ts reads. Within an account, `place` and `id` give the order. `subject`: the message's column. */
const writePages = (source: string, subject: string) => `
    insert into log_pages (account_id, event_count, events)
    select account_id, count(*), json_agg(
      json_build_array(kind, at, ${subject}, client_reference_id, agent_id, recipient, campaign_id, test, more) order by n)
    from (
      select *, row_number() over (partition by account_id order by place, id) - 1 as n from ${source}
    ) as numbered
    group by account_id, n / ${EVENTS_PER_PAGE} order by account_id, n / ${EVENTS_PER_PAGE}`

/**
 * Writes timeline rows such as 'sent' and 'sms-sent', for the lists of campaigns. A message without a campaign gets only the rows of its SMS:
 * the message itself has the other times.
 */
const listEvents = (source: string) => `
    insert into message_events (message_id, account_id, kind, occurred_at, reason, campaign_id, recipient)
    select id, account_id, replace(replace(kind, 'message.', ''), '.', '-'), at, reason, campaign_id,
      case when campaign_id is not null then recipient end
    from ${source} and (campaign_id is not null or kind like 'sms.%')`

/** In SQL: the data of an event about an SMS. */
export const SEGMENTS = `json_build_object('segments', segments)`

const reasonOf = (reason: string, description: string) => `json_build_object('reason', ${reason}, 'description', ${description})`

export const failure = (reason: string, description: string) => `json_build_object('failure', ${reasonOf(reason, description)})`

export const smsFailure = (reason: string, description: string) =>
  `json_build_object('segments', segments, 'failure', ${reasonOf(reason, description)})`

/**
 * Steps that record actions of recipients. `acted` names a step that returns the new rows of `recipient_actions`; `source` is how a recipient
 * opted out. An opt-in emits no event. Reports count each kind of action once for a message: of two concurrent actions, the second finds the
 * timeline row of the first. An action without a message, or whose message has been dropped, has no `test`, and is not counted.
 */
export const recordActions = (acted: string, source = 'null') => `
  action as materialized (
    select 0 as place, coalesce(a.message_id, a.id) as id, a.account_id, a.message_id, a.occurred_at as at,
      case a.kind when 'clicked' then 'message.clicked' when 'opted-out' then 'recipient.opted_out' else 'message.replied' end as kind,
      m.client_reference_id, a.agent_id, a.recipient, m.campaign_id, m.test,
      json_strip_nulls(json_build_object('channel', a.channel, 'source', ${source}, 'action', nullif(a.kind, 'opted-out'),
        'buttonId', a.button_id, 'text', a.text, 'payload', a.payload, 'url', a.url, 'latitude', a.latitude, 'longitude', a.longitude)) as more
    from ${acted} a left join messages m on m.id = a.message_id where a.kind <> 'opted-in'
  ), action_logged as (${writePages('action', 'message_id')}
  ), firsts as (
    insert into message_events (message_id, account_id, kind, occurred_at, campaign_id, recipient)
    select message_id, account_id, replace(split_part(kind, '.', 2), '_', '-'), at, campaign_id,
      case when campaign_id is not null then recipient end
    from action where not test
    on conflict do nothing
    returning account_id, campaign_id, false as test, occurred_at as at,
      case kind when 'clicked' then 'message.clicked' when 'replied' then 'message.replied' else 'recipient.opted_out' end as kind
  ), ${countChanges('firsts', ['message.clicked', 'message.replied', 'recipient.opted_out'])}`

/** Writes a page with one event that is not about a message. `data` is all of its data. */
const writeEvent = (from: string, kind: string, at: string, subject: string, data: string) => `
    insert into log_pages (account_id, event_count, events)
    select account_id, 1, json_build_array(json_build_array(${kind}, ${at}, ${subject}, null, null, null, null, null, ${data})) from ${from}`

// The number of recipients is known once the fan-out is complete.
const CAMPAIGN = `json_strip_nulls(json_build_object('campaignId', id, 'clientReferenceId', client_reference_id, 'name', name,
      'agentId', agent_id, 'recipients', case when fan_out_completed_at is not null then recipients end))`

/** A step that records changes of campaigns. `moved` names a step that returns the rows of `campaigns` that changed. */
export const recordCampaigns = (moved: string, kind: EventKind, at: string) =>
  `${moved}_logged as (${writeEvent(moved, `'${kind}'`, `${at}::timestamptz(3)`, 'id', CAMPAIGN)}\n  )`

/** A time as the API writes it. */
export const utcText = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

const DISABLED = `json_build_object('endpointId', id, 'url', split_part(url, '?', 1), 'failingSince', ${utcText('failing_since')})`

/** A step that records endpoints that were disabled. `disabled` names a step with their rows. */
export const recordDisabled = (disabled: string) =>
  `disabled_logged as (${writeEvent(disabled, `'webhook.disabled'`, 'disabled_at', 'null', DISABLED)}\n  )`

/** `at`: now by default. */
type NewEvent = { accountId: number; kind: EventKind; data: Record<string, unknown>; at?: Date }

/** Records a single event, in the transaction of the change that it reports. */
export async function recordEvent(db: Executor, { accountId, kind, data, at }: NewEvent): Promise<void> {
  await db.query({
    name: 'record-event',
    text: writeEvent('(select $1::int as account_id) as one', '$2::text', 'coalesce($4, now())::timestamptz(3)', 'null', '$3::json'),
    values: [accountId, kind, JSON.stringify(data), at],
  })
}
