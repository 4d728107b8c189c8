import { countUsage } from '../accounts/usage.ts'
import { NETWORK_SAID } from '../delivery/failures.ts'
import { isErasedNumber } from '../erasure/erased.ts'
import { memberBytes } from '../groups/member-bytes.ts'
import { SHOWN_STATUS, SMS_IS_NEEDLESS } from '../messages/messages.ts'
import type { SmsPlan } from '../messages/sms-fallback.ts'

// Every table that can have a phone number, or a text to or from a person. test/privacy/columns.test.ts fails if a new column is in no place.

/**
 * A place where something about a person is stored. In its SQL, `t` is the row, `$1` the number, `$2` a LIKE pattern of its digits, and `$5` a
 * list of ids. In `set` and `deleteIf`, `h.placeholder` is what replaces the number.
 */
export type Place = {
  /** The field of the export. */
  name: string
  table: string
  /** Partitioned by month: the name of the month follows the name of the table. */
  monthly?: true
  /** The columns of its primary key, with their types. */
  key: Record<string, string>
  /** Which rows are about the person. */
  mine: string
  /** The account of a row; 0 if the row names none. Only a search of all accounts finds such a row, since it may be about any account. */
  account?: string
  /** Set if an index finds the rows: the joins after `t`, or '' for none. Without it, the whole table is read in the order of its key. */
  from?: string
  /** What an export shows of a row. */
  columns: string
  /** The assignments that erase a row. Without them, the row is deleted. */
  set?: string
  /** The rows to leave alone. */
  exceptIf?: string
  /** The rows to delete, although there is a `set`. */
  deleteIf?: string
  /** A further step, which may read the steps `deleted` and `changed`. */
  also?: string
  /** The bytes of a row that count for the quota of its account. */
  bytes?: string
}

/** In SQL: a regular expression for the number in a free text. The digits alone could be part of the longer number of another person. */
const NUMBER = `('(?<![0-9])(?:[+]|00)?' || substr($1, 2) || '(?![0-9])')`
const mentions = (column: string) => `(${column} like $2 and ${column} ~ ${NUMBER})`
const scrubbed = (column: string) => `regexp_replace(${column}, ${NUMBER}, '(erased)', 'g')`

/**
 * In SQL: a JSON column in a form that PostgreSQL can read. A column of type json stores every valid JSON text, but all functions fail on an
 * escaped NUL and on half of an escaped surrogate pair.
 */
const readable = (column: string) => `regexp_replace(${column}::text, '\\\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\\\\ufffd', 'g')::json`

/** In SQL: whether a plan has the number among its test numbers, and the plan without the number. `path`: where the test numbers are. */
const hasCopy = (column: string, path: string) =>
  `case when ${column}::text like '%"' || $1 || '"%' then coalesce((${readable(column)} #> '{${path}}')::jsonb ? $1, false) else false end`
const withoutCopy = (column: string, path: string) => `case when ${hasCopy(column, path)}
      then jsonb_set(${readable(column)}::jsonb, '{${path}}', (${readable(column)} #> '{${path}}')::jsonb - $1)::json else ${column} end`

/** Replaces the plan of an SMS that only this person gets. A caller can write about the person in its text, its label, and even in its sender. */
const ERASED_PLAN: SmsPlan = {
  sender: '',
  mode: 'AUTO',
  content: '',
  diacriticalSigns: false,
  urlShortening: false,
  copies: [],
  controlGroup: false,
  quarantine: false,
  consentIds: [],
  ignoreStatus: false,
}

const octets = (column: string) => `coalesce(octet_length(${column}::text), 0)`

/** In SQL: the message of a row has no campaign. */
const IS_SINGLE = `coalesce((select m.campaign_id is null from messages m where m.id = t.message_id), true)`

/** In SQL: the texts of the message of a row were written for this person, or rendered with their data. */
const IS_PERSONAL = `coalesce((
    select m.campaign_id is null or (select c.variables is not null from campaigns c where c.id = m.campaign_id)
    from messages m where m.id = t.message_id
  ), true)`

/** In SQL: the message with this id is to the person. A message to any erased person counts, since the number may be replaced already. */
const isToPerson = (id: string) =>
  `coalesce((select m.recipient = $1 or ${isErasedNumber('m.recipient')} from messages m where m.id = ${id}), false)`
const CAMPAIGN_ACCOUNT = '(select c.account_id from campaigns c where c.id = t.campaign_id)'
/** The account of an agent; 0 if it has none or several, since the row may be about any of them. */
const AGENT_ACCOUNT = `(
      select case when count(*) = 1 then min(s.account_id) else 0 end from agent_assignments s where s.agent_id = t.agent_id)`
const MESSAGE_ACCOUNT = 'coalesce((select m.account_id from messages m where m.id = t.message_id), 0)'

/** The messages. Rows in other places are found by their ids. */
export const MESSAGES: Place = {
  name: 'messages',
  table: 'messages',
  monthly: true,
  key: { id: 'uuid' },
  mine: 't.recipient = $1',
  from: '',
  columns: `t.id as "messageId", t.agent_id as "agentId",
    (select ${SHOWN_STATUS} from (select t.id, t.status, t.delivered_at, t.expires_at) as m) as status, t.test, t.campaign_id as "campaignId",
    t.client_reference_id as "clientReferenceId", coalesce(t.content, (select c.message from contents c where c.id = t.content_id)) as content,
    t.accepted_at as "acceptedAt", t.sent_at as "sentAt", t.delivered_at as "deliveredAt", t.read_at as "readAt", t.failed_at as "failedAt",
    t.failure_reason as "failureReason", t.failure_description as "failureDescription", t.expires_at as "expiresAt",
    t.scheduled_at as "scheduledAt", t.delivery_window as "deliveryWindow"`,
  set: `recipient = h.placeholder, client_reference_id = null, delivery_window = null, failure_description = split_part(t.failure_description, '${NETWORK_SAID}', 1),
    content = case when t.content is not null then '{"type":"MESSAGE","content":""}'::json end`,
  bytes: `${octets('t.content')} + ${octets('t.client_reference_id')}`,
}

/** Campaigns that send copies of their SMS to the number, or that have reached it. New messages of a campaign copy its fallback. */
export const CAMPAIGNS: Place = {
  name: 'campaigns',
  table: 'campaigns',
  key: { id: 'uuid' },
  mine: `(t.fan_out_cursor = $1 or ${hasCopy('t.fallback', 'plan,copies')})`,
  columns: `t.id as "campaignId", t.name, 'copies of its SMS go to this number, or its fan-out cursor is this number' as relation`,
  // The next chunk of the fan-out starts after the cursor: the last member before this one serves as well.
  set: `fan_out_cursor = case when t.fan_out_cursor = $1 then coalesce((
      select max(g.phone) from (
        select account_id, group_number, phone from group_members union all select account_id, group_number, phone from removed_members
      ) as g
      where g.account_id = t.account_id and g.group_number = any (t.group_numbers) and g.phone < $1 and t.fan_out_completed_at is null
    ), '') else t.fan_out_cursor end,
    fallback = ${withoutCopy('t.fallback', 'plan,copies')}`,
  bytes: octets('t.fallback'),
}

/** In SQL: the API shows the SMS as NOT_NEEDED. */
const SMS_IS_SHOWN_AS_NEEDLESS = `coalesce((select ${SMS_IS_NEEDLESS} from (select t.status) as f, messages m where m.id = t.message_id), false)`
const OF_MESSAGES = 't.message_id = any ($5::text[]::uuid[])'

/** Places with rows about messages. `$5` has the ids of the person's messages. */
export const MESSAGE_DETAILS: Place[] = [
  {
    name: 'timeline',
    table: 'message_events',
    monthly: true,
    key: { message_id: 'uuid', kind: 'text', occurred_at: 'timestamptz' },
    mine: OF_MESSAGES,
    from: '',
    columns: `t.message_id as "messageId", t.kind, t.occurred_at as "occurredAt", t.reason, t.detail`,
    // The detail has the words of a network, or the consents of the person.
    set: `recipient = case when t.recipient is not null then h.placeholder end, detail = null`,
  },
  {
    name: 'smsFallbacks',
    table: 'sms_fallbacks',
    monthly: true,
    key: { message_id: 'uuid' },
    mine: OF_MESSAGES,
    from: '',
    columns: `t.message_id as "messageId", case when ${SMS_IS_SHOWN_AS_NEEDLESS} then 'NOT_NEEDED' else t.status end as status,
      case when ${SMS_IS_SHOWN_AS_NEEDLESS} then 'RCS_DELIVERED' else t.reason end as reason,
      ${readable('t.plan')} ->> 'sender' as sender, ${readable('t.plan')} ->> 'campaign' as campaign,
      ${readable('t.plan')} ->> 'content' as text, t.segments,
      t.due_at as "dueAt", t.sent_at as "sentAt", t.delivered_at as "deliveredAt", t.failed_at as "failedAt", t.detail`,
    set: `plan = case when ${IS_PERSONAL} then '${JSON.stringify(ERASED_PLAN)}' else t.plan end, detail = null`,
    bytes: octets('t.plan'),
  },
]

/** In SQL: a copy of an SMS that only the person gets, for a test number. */
const IS_COPY_OF_MINE = `(t.copy <> 0 and ${IS_PERSONAL} and ${isToPerson('t.message_id')})`

/** All other places. A number in `copies` of a plan is a test number, which gets copies of SMS to other people. */
export const PLACES: Place[] = [
  {
    name: 'testNumberOf',
    table: 'sms_fallbacks',
    monthly: true,
    key: { message_id: 'uuid' },
    mine: hasCopy('t.plan', 'copies'),
    columns: `t.message_id as "messageId", 'a copy of the SMS of this message goes to this number' as relation`,
    set: `plan = ${withoutCopy('t.plan', 'copies')}`,
    bytes: octets('t.plan'),
  },
  {
    name: 'actions',
    table: 'recipient_actions',
    monthly: true,
    key: { id: 'uuid' },
    mine: 't.recipient = $1',
    columns: `t.message_id as "messageId", t.agent_id as "agentId", t.kind, t.channel, t.button_id as "buttonId", t.text, t.payload, t.url,
      t.latitude, t.longitude, t.occurred_at as "occurredAt"`,
    // The ids of the buttons of a campaign are the same for all its recipients, and its reports show them.
    set: `recipient = h.placeholder, button_id = case when ${IS_SINGLE} then null else t.button_id end, text = null, payload = null,
      url = null, latitude = null, longitude = null`,
  },
  {
    name: 'optOuts',
    table: 'opt_outs',
    key: { account_id: 'int', agent_id: 'text', phone: 'text' },
    mine: 't.phone = $1',
    from: `join (
      select account_id, agent_id from agent_assignments union all select id, '' from accounts
    ) as s on s.account_id = t.account_id and s.agent_id = t.agent_id`,
    columns: `nullif(t.agent_id, '') as "agentId", t.opted_out as "optedOut", t.blocked, t.source, t.changed_at as "changedAt"`,
  },
  {
    name: 'groups',
    table: 'group_members',
    key: { account_id: 'int', group_number: 'int', phone: 'text' },
    mine: 't.phone = $1',
    from: 'join groups g on g.account_id = t.account_id and g.number = t.group_number',
    columns: `t.group_number as "group", t.consents, t.control_group as "controlGroup", t.active,
      t.time_zone as "timeZone", t.attributes`,
    also: `counted as (
      update groups g set members = g.members - 1, bytes = g.bytes - (${memberBytes('d')}) from deleted d
      where g.account_id = d.account_id and g.number = d.group_number and g.members > 0
    ), uncounted as (${countUsage({ account: 'account_id', from: 'deleted', contentBytes: `-sum(${memberBytes('deleted')})` })}
    )`,
  },
  {
    name: 'formerGroups',
    table: 'removed_members',
    key: { account_id: 'int', group_number: 'int', phone: 'text', generation: 'int' },
    mine: 't.phone = $1',
    columns: `t.group_number as "group", t.removed_at as "removedAt", t.attributes, t.time_zone as "timeZone"`,
  },
  {
    name: 'smsQueue',
    table: 'sms_queue',
    key: { message_id: 'uuid', copy: 'smallint' },
    mine: 't.recipient = $1',
    columns: 't.message_id as "messageId", t.copy, t.planned_at as "plannedAt"',
    // Due now, so that the next claim records that it is skipped.
    set: 'recipient = h.placeholder, due_at = case when t.lease is null then least(t.due_at, now()) else t.due_at end',
  },
  {
    name: 'smsSegments',
    table: 'sms_segments',
    key: { message_id: 'uuid', copy: 'smallint', segment: 'smallint' },
    mine: 't.recipient = $1',
    account: MESSAGE_ACCOUNT,
    columns: 't.message_id as "messageId", t.copy, t.segment, t.carrier, t.state, t.detail, t.submitted_at as "submittedAt"',
    set: 'recipient = h.placeholder, detail = null',
  },
  {
    name: 'smsReceipts',
    table: 'sms_receipts',
    key: { event_id: 'text', carrier: 'text', carrier_message_id: 'text' },
    mine: 't.recipient = $1',
    account: '0',
    columns: 't.carrier, t.state, t.detail, t.occurred_at as "occurredAt"',
  },
  {
    name: 'smsContacts',
    table: 'sms_contacts',
    key: { account_id: 'int', recipient: 'text', sender: 'text', agent_id: 'text', is_copy: 'boolean' },
    mine: 't.recipient = $1',
    from: '',
    columns: 't.sender, t.agent_id as "agentId", t.message_id as "messageId", t.sent_at as "sentAt"',
  },
  {
    name: 'shortLinks',
    table: 'short_links',
    key: { code: 'text' },
    mine: `(t.recipient = $1 or ${IS_COPY_OF_MINE})`,
    columns: 't.message_id as "messageId", t.url, t.created_at as "createdAt", t.clicked_at as "clickedAt"',
    // The address is part of a text for this person alone. Links that all recipients of a campaign got go on working, and count for its reports.
    deleteIf: `t.copy = 0 and ${IS_PERSONAL} or ${IS_COPY_OF_MINE}`,
    set: 'recipient = h.placeholder',
  },
  {
    name: 'automaticReplies',
    table: 'auto_reply_turns',
    key: { account_id: 'int', phone: 'text' },
    mine: 't.phone = $1',
    from: 'join accounts a on a.id = t.account_id',
    columns: 't.replied_at as "repliedAt"',
  },
  {
    name: 'campaignCopies',
    table: 'campaign_copies',
    key: { campaign_id: 'uuid', phone: 'text' },
    mine: 't.phone = $1',
    account: CAMPAIGN_ACCOUNT,
    columns: 't.campaign_id as "campaignId"',
  },
  {
    name: 'capabilities',
    table: 'capabilities',
    key: { phone: 'text', agent_id: 'text' },
    mine: 't.phone = $1',
    from: '',
    account: AGENT_ACCOUNT,
    columns: 't.agent_id as "agentId", t.reachable, t.checked_at as "checkedAt"',
  },
  {
    name: 'networkEvents',
    table: 'carrier_events',
    key: { carrier: 'text', event_id: 'text' },
    mine: 't.phone = $1',
    // Receipts without a message, and replies that wait to be processed. A reply has its account afterwards, and leaves nothing here.
    exceptIf: 't.process_after is not null',
    account: '0',
    columns: 't.carrier, t.kind, t.occurred_at as "occurredAt", t.event',
    // The ids stay: a network may repeat an event.
    set: `phone = '', event = '{}'`,
  },
  {
    name: 'idempotencyKeys',
    table: 'idempotency_keys',
    key: { account_id: 'int', endpoint: 'text', key: 'text' },
    // Without its key, a repeated request would be accepted again. To an erased person nothing is sent, but to anyone else it would be.
    mine: `t.endpoint = 'messages' and ${mentions('t.key')} and ${isToPerson('t.resource_id')}`,
    columns: 't.endpoint, t.key, t.created_at as "createdAt"',
  },
]

/** Responses of webhook endpoints, which may repeat an event. `$5` has the events of the person, as account and position. */
export const WEBHOOK_ATTEMPTS: Place = {
  name: 'webhookResponses',
  table: 'webhook_attempts',
  key: { endpoint_id: 'int', attempted_at: 'timestamptz', position: 'bigint', attempt: 'smallint', duration_ms: 'int' },
  mine: `num_nonnulls(t.response, t.error) > 0
    and (${mentions('t.response')} or ${mentions('t.error')} or t.response is not null and (t.account_id || ' ' || t.position) = any ($5::text[]))`,
  columns: 't.endpoint_id as "endpointId", t.position, t.attempted_at as "attemptedAt", t.status, t.error, t.response',
  set: `response = null, error = ${scrubbed('t.error')}`,
}
