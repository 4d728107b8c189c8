import assert from 'node:assert/strict'
import type { Executor } from '../../src/db/pool.ts'
import { SMS_FAILURES } from '../../src/delivery/failures.ts'
import { LOGGED_EVENTS } from './log.ts'

// Compares the event log with the rows: each event, with its time and its data, is worked out once more from messages, SMS fallbacks, actions
// of recipients and campaigns. An event counts whether or not it has a position yet.

export type EmittedEvent = {
  kind: string
  subjectId: string | null
  occurredAt: Date
  data: Record<string, unknown>
}

/** The events of an account, in order, without those for a single endpoint. */
export async function readEmitted(db: Executor, { accountId }: { accountId: number }): Promise<EmittedEvent[]> {
  const { rows } = await db.query<EmittedEvent>(
    `select kind, subject_id as "subjectId", occurred_at as "occurredAt", data from ${LOGGED_EVENTS} as e
     where account_id = $1 and kind <> 'webhook.test' order by page, place`,
    [accountId],
  )
  return rows
}

/** In the order in which a message can reach them. */
export const MESSAGE_KINDS = [
  'message.sent',
  'message.delivered',
  'message.read',
  'message.failed',
  'message.expired',
  'sms.sent',
  'sms.delivered',
  'sms.failed',
]

const failure = (reason: string, description: string) =>
  `json_build_object('failure', json_build_object('reason', ${reason}, 'description', ${description}))::jsonb`
/** A failed submit stores its description, and a receipt stores the words of the network. */
const SMS_DESCRIPTION = `case when f.sent_at is null then f.detail
  else '${SMS_FAILURES.UNDELIVERABLE}' || coalesce(' The network said: ' || nullif(f.detail, ''), '') end`
const SEGMENTS = `jsonb_build_object('segments', f.segments)`
const MESSAGE_DATA = `'clientReferenceId', m.client_reference_id, 'campaignId', m.campaign_id, 'test', m.test`

/** One statement, so that it sees one moment: the service may go on meanwhile. */
const COMPARE = `
  with rank as materialized (
    select * from unnest($1::text[]) with ordinality as k (kind, rank)
  ), logged as materialized (
    select page, place, account_id, kind, subject_id, occurred_at, data from ${LOGGED_EVENTS} as e
  ), expected as materialized (
    select m.account_id, step.kind, m.id::text as subject_id, step.at as occurred_at, jsonb_strip_nulls(jsonb_build_object(
      'messageId', m.id, 'agentId', m.agent_id, 'recipient', m.recipient, ${MESSAGE_DATA})) || step.more as data
    from messages m left join sms_fallbacks f on f.message_id = m.id, lateral (
      values ('message.sent', m.sent_at, '{}'), ('message.delivered', m.delivered_at, '{}'), ('message.read', m.read_at, '{}'),
        ('message.failed', m.failed_at, ${failure('m.failure_reason', 'm.failure_description')}),
        ('message.expired', case m.status when 'EXPIRED' then m.expires_at end, '{}'),
        ('sms.sent', f.sent_at, ${SEGMENTS}), ('sms.delivered', f.delivered_at, ${SEGMENTS}),
        ('sms.failed', f.failed_at, ${SEGMENTS} || ${failure('f.reason', SMS_DESCRIPTION)})
    ) as step (kind, at, more)
    where step.at is not null
    union all
    select a.account_id, case a.kind when 'clicked' then 'message.clicked' when 'opted-out' then 'recipient.opted_out' else 'message.replied' end,
      a.message_id::text, a.occurred_at, jsonb_strip_nulls(jsonb_build_object(
        'messageId', a.message_id, 'agentId', a.agent_id, 'recipient', a.recipient, ${MESSAGE_DATA},
        'channel', a.channel, 'action', nullif(a.kind, 'opted-out'), 'buttonId', a.button_id, 'text', a.text, 'payload', a.payload,
        'url', a.url, 'latitude', a.latitude, 'longitude', a.longitude))
    from recipient_actions a left join messages m on m.id = a.message_id where a.kind <> 'opted-in'
    union all
    select c.account_id, step.kind, c.id::text, step.at, jsonb_strip_nulls(jsonb_build_object(
      'campaignId', c.id, 'clientReferenceId', c.client_reference_id, 'name', c.name, 'agentId', c.agent_id,
      'recipients', case when c.fan_out_completed_at is not null and step.kind <> 'campaign.started' then c.recipients end))
    from campaigns c, lateral (
      values ('campaign.started', c.started_at), ('campaign.completed', c.completed_at), ('campaign.cancelled', c.cancelled_at)
    ) as step (kind, at)
    where step.at is not null
  ), emitted as materialized (
    -- An operator's entry is an opt-out without an action of the recipient. How a recipient opted out is stored for the last opt-out only.
    select account_id, kind, subject_id, occurred_at, case kind when 'recipient.opted_out' then data::jsonb - 'source' else data::jsonb end as data
    from logged
    where kind ~ '^(message|sms|campaign)\\.' or kind = 'recipient.opted_out' and data ->> 'source' in ('word', 'unsubscribe')
  ), compared as (
    select account_id as "accountId", kind, subject_id as "subjectId", occurred_at as "occurredAt", data,
      sum(expected)::int as expected, sum(emitted)::int as emitted
    from (
      select *, 1 as expected, 0 as emitted from expected union all select *, 0, 1 from emitted
    ) as e
    -- The data first: PostgreSQL combines hashes by XOR, and after subject_id the hash of the same id in the data would cancel that of subject_id.
    group by data, account_id, kind, subject_id, occurred_at
  ), ordered as (
    select l.subject_id, k.rank, lag(k.rank) over (partition by l.subject_id order by l.page, l.place) as rank_before
    from logged l join rank k using (kind)
  )
  select (select count(*)::int from compared) as compared,
    (select coalesce(json_agg(s), '[]') from (select * from compared where expected <> emitted limit 20) as s) as wrong,
    (select coalesce(json_agg(distinct subject_id), '[]') from ordered where rank <= rank_before) as disordered`

/**
 * Every step of a message or campaign and every action of a recipient has emitted one event, for its account, with its time and the data of
 * its row; and there are no other events. A message's events are in the order of its states. Returns how many were compared, so that a test
 * can assert that there was something to compare. Not for a database in which a test writes or moves rows by hand.
 */
export async function assertAllEmitted(db: Executor): Promise<number> {
  const { compared, ...faults } = await compareEmitted(db)
  assert.deepEqual(faults, { wrong: [], disordered: [] }, `events are not what the rows say:\n${JSON.stringify(faults, null, 1)}`)
  return compared
}

/** `wrong`: events that were emitted more or less often than the rows say. `disordered`: ids of messages. */
export type ComparedEmitted = { compared: number; wrong: object[]; disordered: string[] }

export async function compareEmitted(db: Executor): Promise<ComparedEmitted> {
  const { rows } = await db.query<ComparedEmitted>({ name: 'assert-all-emitted', text: COMPARE, values: [MESSAGE_KINDS] })
  return rows[0] as ComparedEmitted
}
