import { randomUUID } from 'node:crypto'
import { assignAgent } from '../../../src/agents/agents.ts'
import { type Change, failure, recordChanges } from '../../../src/events/changes.ts'
import { createTemplate } from '../../../src/templates/templates.ts'
import { createSender, type Sender } from '../support.ts'
import { pool } from './nodes.ts'
import { PHONE } from './recipients.ts'

// A database with two nodes, the messages that a recipient replies to, and the stored effects of a reply.

export const TEXT = { type: 'MESSAGE', content: 'Hello' }
export const MINUTE_MS = 60_000
export const DAY_MS = 86_400_000

/** `agoMs`: when it was accepted; `sentAgoMs`: when it was sent, undefined if the network refused it. */
export type Made = { content?: object; test?: boolean; agoMs?: number; sentAgoMs?: number | undefined }

const SO_FAR: Change[] = [
  { kind: 'message.accepted', at: 'accepted_at' },
  { kind: 'message.sent', at: 'sent_at' },
  { kind: 'message.failed', at: 'failed_at', more: failure('failure_reason', 'failure_description') },
  { kind: 'message.unsent', at: 'failed_at', where: 'sent_at is null' },
]

/** A message that was sent. */
export async function sentMessage({ accountId, agentId }: { accountId: number; agentId: string }, made: Made = {}): Promise<string> {
  const { content = TEXT, test: isTest = false, agoMs = MINUTE_MS } = made
  const sentAgoMs = 'sentAgoMs' in made ? made.sentAgoMs : agoMs
  const acceptedAt = Date.now() - agoMs
  const id = `${acceptedAt.toString(16).padStart(12, '0')}7${randomUUID().replaceAll('-', '').slice(13)}`
  const { rows } = await pool.query<{ id: string }>(
    `with written as (
       insert into messages (id, account_id, agent_id, recipient, basic, test, content, accepted_at, expires_at, status, sent_at,
                             failed_at, failure_reason, failure_description)
       select $1, $2, $3, $4, false, $5, $6, $7, $7::timestamptz + interval '60 days', case when $8::timestamptz is null then 'FAILED' else 'SENT' end, $8,
         failed.at, case when failed.at is not null then 'REJECTED' end, case when failed.at is not null then 'No.' end
       from (select case when $8::timestamptz is null then $7::timestamptz end as at) as failed
       returning *
     ), ${recordChanges('written', SO_FAR)}
     select id from written`,
    [
      id,
      accountId,
      agentId,
      PHONE,
      isTest,
      content,
      new Date(acceptedAt),
      sentAgoMs === undefined ? null : new Date(Date.now() - sentAgoMs),
    ],
  )
  return (rows[0] as { id: string }).id
}

/** An SMS that was sent to the phone from that number. */
export async function smsContact({ accountId, agentId }: Sender, number: string, minutesAgo: number): Promise<string> {
  const messageId = randomUUID()
  const contact = [accountId, PHONE, number, agentId, messageId, minutesAgo]
  await pool.query(`insert into sms_contacts values ($1, $2, $3, $4, $5, false, now() - $6 * interval '1 minute')`, contact)
  return messageId
}

/** The actions of the recipient that the account sees, oldest first, without empty fields. */
export async function actionsOf({ accountId }: { accountId: number }): Promise<any[]> {
  const { rows } = await pool.query(
    `select json_strip_nulls(to_json(a)) as action from (
       select kind, channel, agent_id as "agentId", message_id as "messageId", button_id as "buttonId", text, payload, url, latitude, longitude
       from recipient_actions where account_id = $1 and recipient = $2 order by occurred_at, id
     ) as a`,
    [accountId, PHONE],
  )
  return rows.map(({ action }) => action)
}

export async function messagesOf({ accountId }: { accountId: number }): Promise<any[]> {
  const { rows } = await pool.query(
    `select m.id, m.agent_id as "agentId", m.traffic, m.triggered_by as "triggeredBy", m.test, coalesce(m.content, c.message) as content, q.task
     from messages m left join contents c on c.id = m.content_id left join queue q on q.message_id = m.id
     where m.account_id = $1 and m.traffic = 'SERVICEREQUEST' and m.recipient = $2 order by m.id`,
    [accountId, PHONE],
  )
  return rows
}

/** Everything that a reply could change. */
export async function everything(): Promise<unknown> {
  const tables = ['messages', 'message_events', 'queue', 'sms_queue', 'recipient_actions', 'opt_outs', 'auto_reply_turns']
  const all = tables.map((table) => `(select coalesce(json_agg(t order by t::text), '[]') from ${table} t) as ${table}`)
  return (await pool.query(`select ${all.join()}`)).rows[0]
}

export async function template({ accountId }: Sender, message: object = TEXT): Promise<number> {
  const input = { name: 'Template', basic: false, status: 'APPROVED', message } as Parameters<typeof createTemplate>[2]
  return (await createTemplate(pool, accountId, input)).id
}

export function triggering(templateId: number, id = 'more') {
  return { ...TEXT, buttons: [{ id, type: 'trigger_template', text: 'More', templateId }] }
}

/** In SQL: connections that wait for a lock. */
export const WAITING = `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`

/** Another account with the same agent. */
export async function partnerOf({ agentId }: Sender): Promise<Sender> {
  const partner = await createSender(pool)
  await assignAgent(pool, agentId, partner.accountId)
  return { ...partner, agentId }
}
