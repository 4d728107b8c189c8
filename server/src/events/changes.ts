import type { Executor } from '../db/pool.ts'
import { NO_CAMPAIGN } from '../messages/states.ts'
import { COUNTERS, type Counter } from '../reports/counters.ts'
import type { EventKind } from './kinds.ts'
import { EVENTS_A_PAGE } from './pages.ts'

// The one place where a change is recorded. A statement that changes messages describes its changes once, and the steps made here write them to
// the log, to the counters of reports and to the lists of campaigns: in the same transaction, so that a crash keeps all of it or nothing, and
// without a further round trip.

/** What a step has to return of a message `m`, beside the columns that its changes name. */
export const MESSAGE_FACTS = 'm.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test'

/** `message.accepted`, `message.unsent` (failed or expired before it was sent) and `sms.skipped` are counted, and are no events. */
type Kind = EventKind | Counter

export type Change = {
  kind: Kind
  /** The column with its time, as it was stored. Nothing has changed where it is null. */
  at: string
  /** A further condition. */
  where?: string
  /** Further data of the event, as JSON. */
  more?: string
  /** For the lists of campaigns: a column. */
  reason?: string
}

/**
 * The changes that `message_events` has a row for, such as 'sent' and 'sms-sent': of a campaign's messages, for the lists of its reports. Of other
 * messages only those of the SMS, since the message itself has the times of the rest.
 */
const LISTED: readonly Kind[] = [
  'message.sent',
  'message.delivered',
  'message.read',
  'message.failed',
  'message.expired',
  'sms.sent',
  'sms.delivered',
  'sms.failed',
]

const COUNTED_ONLY: readonly Kind[] = ['message.accepted', 'message.unsent', 'sms.skipped']

/**
 * Steps that record changes of messages. `moved` names a step with MESSAGE_FACTS and the columns of `changes`. The events of one message
 * stand in the log in the order of `changes`.
 */
export function recordChanges(moved: string, changes: readonly Change[]): string {
  const steps = [`${moved}_change as materialized (\n    ${changesOf(moved, changes)}\n  )`, countChanges(`${moved}_change`, changes)]
  if (changes.some(({ kind }) => !COUNTED_ONLY.includes(kind))) steps.push(logChanges(`${moved}_change`))
  if (changes.some(({ kind }) => LISTED.includes(kind))) steps.push(listChanges(`${moved}_change`))
  return steps.join(', ')
}

const changesOf = (moved: string, changes: readonly Change[]) =>
  changes
    .map(
      ({ kind, at, where, more = 'null::json', reason = 'null' }, place) =>
        `select ${place} as place, '${kind}' as kind, ${at} as at, ${more} as more, ${reason} as reason,
      id, account_id, agent_id, recipient, client_reference_id, campaign_id, test
    from ${moved} where ${at} is not null${where === undefined ? '' : ` and ${where}`}`,
    )
    .join(' union all ')

/** Each statement adds rows of its own, one for each account, campaign and hour, so that no two wait for each other. */
function countChanges(change: string, changes: readonly Change[]): string {
  const counted = [...new Set(changes.map(({ kind }) => kind))].filter((kind): kind is Counter => kind in COUNTERS)
  return `${change}_counted as (
    insert into report_changes (account_id, campaign_id, hour, ${counted.map((kind) => COUNTERS[kind]).join(', ')})
    select account_id, coalesce(campaign_id, '${NO_CAMPAIGN}'), date_trunc('hour', at, 'UTC'),
      ${counted.map((kind) => `count(*) filter (where kind = '${kind}')`).join(', ')}
    from ${change} where not test group by 1, 2, 3
  )`
}

/** Writes pages: `event` is a JSON list as events/pages.ts reads it. Within an account, `place` and `id` give the order. */
const writePages = (source: string, event: string) => `
    insert into log_pages (account_id, event_count, events)
    select account_id, count(*), json_agg(${event} order by n)
    from (
      select *, row_number() over (partition by account_id order by place, id) - 1 as n from ${source}
    ) as numbered
    group by account_id, n / ${EVENTS_A_PAGE} order by account_id, n / ${EVENTS_A_PAGE}`

const logChanges = (change: string) => `${change}_logged as (${writePages(
  `${change} where kind not in (${COUNTED_ONLY.map((kind) => `'${kind}'`).join(', ')})`,
  'json_build_array(kind, at, id, client_reference_id, agent_id, recipient, campaign_id, test, more)',
)}
  )`

const listChanges = (change: string) => `${change}_listed as (
    insert into message_events (message_id, account_id, kind, occurred_at, reason, campaign_id, recipient)
    select id, account_id, replace(replace(kind, 'message.', ''), '.', '-'), at, reason, campaign_id, case when campaign_id is not null then recipient end
    from ${change} where (campaign_id is not null or kind like 'sms.%') and kind in (${LISTED.map((kind) => `'${kind}'`).join(', ')})
  )`

/** Data of an event about an SMS. */
export const SEGMENTS = `json_build_object('segments', segments)`

const reasonOf = (reason: string, description: string) => `json_build_object('reason', ${reason}, 'description', ${description})`

export const failure = (reason: string, description: string) => `json_build_object('failure', ${reasonOf(reason, description)})`

export const smsFailure = (reason: string, description: string) =>
  `json_build_object('segments', segments, 'failure', ${reasonOf(reason, description)})`

/**
 * Steps that record what recipients did. `acted` names a step that returns the rows of `recipient_actions` that were written; `source` is how
 * a recipient opted out. An opt-in has no event. A message counts once for what its recipient did, however often they do it: of two at
 * once, the second finds the note of the first. An action without a message, or of one that has been dropped, has no `test`, and counts for nothing.
 */
export const recordActions = (acted: string, source = 'null') => `
  action as materialized (
    select 0 as place, coalesce(a.message_id, a.id) as id, a.account_id, a.message_id, a.occurred_at as at,
      case a.kind when 'clicked' then 'message.clicked' when 'opted-out' then 'recipient.opted_out' else 'message.replied' end as kind,
      m.client_reference_id, a.agent_id, a.recipient, m.campaign_id, m.test,
      json_strip_nulls(json_build_object('channel', a.channel, 'source', ${source}, 'action', nullif(a.kind, 'opted-out'), 'buttonId', a.button_id,
        'text', a.text, 'payload', a.payload, 'url', a.url, 'latitude', a.latitude, 'longitude', a.longitude)) as more
    from ${acted} a left join messages m on m.id = a.message_id where a.kind <> 'opted-in'
  ), action_logged as (${writePages('action', 'json_build_array(kind, at, message_id, client_reference_id, agent_id, recipient, campaign_id, test, more)')}
  ), firsts as (
    insert into message_events (message_id, account_id, kind, occurred_at, campaign_id, recipient)
    select message_id, account_id, replace(split_part(kind, '.', 2), '_', '-'), at, campaign_id, case when campaign_id is not null then recipient end
    from action where not test
    on conflict do nothing
    returning account_id, campaign_id, false as test, occurred_at as at,
      case kind when 'clicked' then 'message.clicked' when 'replied' then 'message.replied' else 'recipient.opted_out' end as kind
  ), ${countChanges('firsts', [
    { kind: 'message.clicked', at: 'at' },
    { kind: 'message.replied', at: 'at' },
    { kind: 'recipient.opted_out', at: 'at' },
  ])}`

/** A page of one event that is not about a message: its data is `data`. */
const writeEvent = (from: string, kind: string, at: string, subject: string, data: string) => `
    insert into log_pages (account_id, event_count, events)
    select account_id, 1, json_build_array(json_build_array(${kind}, ${at}, ${subject}, null, null, null, null, null, ${data})) from ${from}`

/** A step that records changes of campaigns. `moved` names a step that returns the rows of `campaigns` that changed. The number of recipients is known when all messages are made. */
export const recordCampaigns = (moved: string, kind: EventKind, at: string) => `
  ${moved}_logged as (${writeEvent(
    moved,
    `'${kind}'`,
    `${at}::timestamptz(3)`,
    'id',
    `json_strip_nulls(json_build_object('campaignId', id, 'clientReferenceId', client_reference_id, 'name', name, 'agentId', agent_id,
      'recipients', case when made_at is not null then recipients end))`,
  )}
  )`

/** A time as the API writes it. */
export const utcText = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** A step that records endpoints that were disabled. `disabled` names a step with their rows. */
export const recordDisabled = (disabled: string) => `
  disabled_logged as (${writeEvent(
    disabled,
    `'webhook.disabled'`,
    'disabled_at',
    'null',
    `json_build_object('endpointId', id, 'url', split_part(url, '?', 1), 'failingSince', ${utcText('failing_since')})`,
  )}
  )`

/** `at`: now, where it is left out. */
export type NewEvent = { accountId: number; kind: EventKind; data: Record<string, unknown>; at?: Date }

/** Records an event that is of no statement's rows, within the transaction of what it reports. */
export async function recordEvent(db: Executor, { accountId, kind, data, at }: NewEvent): Promise<void> {
  await db.query({
    name: 'record-event',
    text: writeEvent('(select $1::int as account_id) as one', '$2::text', 'coalesce($4, now())::timestamptz(3)', 'null', '$3::json'),
    values: [accountId, kind, JSON.stringify(data), at],
  })
}
