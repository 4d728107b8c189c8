import type { Static } from 'typebox'
import type { Executor } from '../db/pool.ts'
import { notFound } from '../errors.ts'
import { UUID } from '../ids.ts'
import { present } from '../present.ts'
import { withWindow } from '../windows/window.ts'
import type { Message as MessageSchema } from './schemas.ts'
import { mayBecome } from './states.ts'

export type Message = Static<typeof MessageSchema>

/**
 * In SQL: the status of a message `m` that callers see. An expired message is EXPIRED even before the expiry loop has marked it: marking a
 * million takes a while. The second of slack is for receipts that came in time and are being committed; after it, the message can only become
 * EXPIRED.
 */
export const SHOWN_STATUS = `case
      when m.delivered_at is not null then m.status
      when ${mayBecome('EXPIRED', 'm.status')} and m.expires_at <= now() - interval '1 second' then 'EXPIRED'
      -- Without a queue entry, the call ended after the message had expired.
      when m.status = 'ACCEPTED' and coalesce((select q.claimed from queue q where q.message_id = m.id), true) then 'SENDING'
      else m.status
    end`

/**
 * In SQL: whether the RCS message `m` was delivered, perhaps late, before any segment of its SMS `f` was sent. An SMS is in the queue only once
 * it is SCHEDULED, so a WAITING SMS needs no look-up there. With "exists", PostgreSQL may read all events into memory.
 */
export const SMS_IS_NEEDLESS = `(
      case f.status
        when 'WAITING' then true
        when 'SCHEDULED' then not coalesce((
          select s.submitted_under is not null or s.segments_sent > 0 from sms_queue s where s.message_id = m.id and s.copy = 0), false)
        else false
      end
      and (m.delivered_at is not null or (
        select true from message_events e where e.message_id = m.id and e.kind in ('delivered-late', 'read-late') limit 1) is not null))`

/** In SQL: the fields of a message `m` that callers see. MESSAGE_JOINS has the tables. */
export const SHOWN_MESSAGE = `m.id as "messageId", coalesce(m.client_reference_id, campaign.client_reference_id) as "clientReferenceId",
    m.campaign_id as "campaignId", m.agent_id as "agentId", m.recipient, now.status, m.basic, m.test,
    m.accepted_at as "acceptedAt", m.scheduled_at as "scheduledAt", m.delivery_window as "deliveryWindow", m.sent_at as "sentAt",
    m.delivered_at as "deliveredAt", m.read_at as "readAt", m.failed_at as "failedAt",
    case when now.status = 'EXPIRED' then m.expires_at end as "expiredAt", m.expires_at as "expiresAt",
    m.failure_reason as "failure.reason", m.failure_description as "failure.description", m.routing, m.triggered_by as "triggeredBy",
    coalesce(needless.status, f.status) as "smsFallback.status", coalesce(needless.reason, f.reason) as "smsFallback.reason",
    f.plan ->> 'campaign' as "smsFallback.campaign",
    case when coalesce(needless.status, f.status) <> 'NOT_NEEDED' then f.due_at end as "smsFallback.dueAt", f.sent_at as "smsFallback.sentAt",
    f.delivered_at as "smsFallback.deliveredAt", f.segments as "smsFallback.segments"`

/** "offset 0" keeps PostgreSQL from reading all fallbacks for a page of messages. */
export const MESSAGE_JOINS = `
  left join campaigns campaign on campaign.id = m.campaign_id
  left join lateral (select * from sms_fallbacks f where f.message_id = m.id offset 0) as f on true
  left join lateral (select 'NOT_NEEDED' as status, 'RCS_DELIVERED' as reason where ${SMS_IS_NEEDLESS}) as needless on true,
  lateral (select ${SHOWN_STATUS} as status) as now`

export const READ_MESSAGE = `
  select ${SHOWN_MESSAGE}
  from messages m ${MESSAGE_JOINS}
  where m.id = $1 and m.account_id = $2`

export async function readMessage(db: Executor, accountId: number, messageId: string): Promise<Message> {
  const { rows } = UUID.test(messageId)
    ? await db.query<Record<string, unknown>>({ name: 'read-message', text: READ_MESSAGE, values: [messageId, accountId] })
    : { rows: [] }
  if (rows[0] === undefined) throw notFound('RCS_MESSAGE_NOT_FOUND', 'messageId', 'message')
  return toMessage(rows[0])
}

export function toMessage(row: Record<string, unknown>): Message {
  return nested(withWindow(present(row))) as Message
}

/** Turns a field `group.name` into the field `name` of an object `group`. */
function nested(fields: Record<string, unknown>): Record<string, unknown> {
  const result: Record<string, unknown> = {}
  for (const [path, value] of Object.entries(fields)) {
    const [group, name] = path.split('.') as [string, string?]
    result[group] = name === undefined ? value : { ...(result[group] as object), [name]: value }
  }
  return result
}
