import type { Executor } from '../db/pool.ts'
import type { EventKind } from './kinds.ts'

// Events are written by the statement that changes what they report, as steps of it: a crash loses neither or both, and a change costs no
// round trip more. The router gives them their place in the log.

/** What a step has to return of a message `m` for its events, beside what it is about. */
export const MESSAGE_FACTS = 'm.id, m.account_id, m.agent_id, m.recipient, m.client_reference_id, m.campaign_id, m.test'

type Told = {
  kind: EventKind
  /** The column with its time; where that is null, nothing has happened. */
  at: string
  /** A further condition. */
  where?: string
  /** More of its data, as pairs for json_build_object. */
  more?: string
}

/** A time as the API writes it. */
export const utcText = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

const pairs = (more?: string) => (more === undefined ? '' : `, ${more}`)

/** A message's part of an event's data. What there is none of is left out. */
const messageData = (more?: string) => `json_strip_nulls(json_build_object('messageId', id, 'clientReferenceId', client_reference_id,
        'agentId', agent_id, 'recipient', recipient, 'campaignId', campaign_id, 'test', test${pairs(more)}))`

/**
 * A step that tells what became of messages. `moved` names a step with MESSAGE_FACTS and the columns of `told`. A message's events get
 * numbers that grow in the order given here, and by message.
 */
export const tellOfMessages = (moved: string, told: readonly Told[]) => `
  told as (
    insert into outbox (account_id, kind, subject_id, occurred_at, data)
    ${told
      .map(
        ({ kind, at, where = 'true', more }) =>
          `select account_id, '${kind}', id::text, ${at}, ${messageData(more)} from ${moved} where ${at} is not null and ${where}`,
      )
      .join(' union all ')}
  )`

/** Of an SMS. */
export const SEGMENTS = `'segments', segments`

export const FAILURE = (reason: string, description: string) =>
  `'failure', json_build_object('reason', ${reason}, 'description', ${description})`

/**
 * A step that tells what recipients did. `acted` names a step that returns the rows of `recipient_actions` that were written;
 * `source` is how somebody opted out. Who opts in again has no event.
 */
export const tellOfActions = (acted: string, source = 'null') => `
  told as (
    insert into outbox (account_id, kind, subject_id, occurred_at, data)
    select a.account_id, case a.kind when 'clicked' then 'message.clicked' when 'opted-out' then 'recipient.opted_out' else 'message.replied' end,
      a.message_id::text, a.occurred_at, json_strip_nulls(json_build_object('messageId', a.message_id, 'clientReferenceId', m.client_reference_id,
        'agentId', a.agent_id, 'recipient', a.recipient, 'campaignId', m.campaign_id, 'test', m.test, 'channel', a.channel, 'source', ${source},
        'action', nullif(a.kind, 'opted-out'), 'buttonId', a.button_id, 'text', a.text, 'payload', a.payload, 'url', a.url,
        'latitude', a.latitude, 'longitude', a.longitude))
    from ${acted} a left join messages m on m.id = a.message_id
    where a.kind <> 'opted-in'
  )`

/** A step that tells of campaigns. `moved` names a step that returns the rows of `campaigns` that changed. How many recipients one has is known when its messages are made. */
export const tellOfCampaigns = (moved: string, kind: EventKind, at: string) => `
  told as (
    insert into outbox (account_id, kind, subject_id, occurred_at, data)
    select account_id, '${kind}', id::text, ${at}, json_strip_nulls(json_build_object('campaignId', id, 'clientReferenceId', client_reference_id,
      'name', name, 'agentId', agent_id, 'recipients', case when made_at is not null then recipients end))
    from ${moved}
  )`

/** `at`: now, where it is left out. */
export type NewEvent = { accountId: number; kind: EventKind; data: Record<string, unknown>; at?: Date; endpointId?: number }

/** An event that is of no statement's rows. Within the transaction of what it reports. */
export async function tell(db: Executor, { accountId, kind, data, at, endpointId }: NewEvent): Promise<void> {
  await db.query({
    name: 'tell',
    text: `insert into outbox (account_id, kind, occurred_at, data, endpoint_id) values ($1, $2, coalesce($5, now()), $3, $4)`,
    values: [accountId, kind, JSON.stringify(data), endpointId, at],
  })
}
