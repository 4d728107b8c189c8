import type { Executor } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { mayBecome, type Status } from './states.ts'

export type Message = {
  messageId: string
  clientReferenceId?: string
  agentId: string
  recipient: string
  status: Status
  basic: boolean
  test: boolean
  acceptedAt: Date
  sentAt?: Date
  deliveredAt?: Date
  readAt?: Date
  failedAt?: Date
  expiredAt?: Date
  expiresAt: Date
  failure?: { reason: string; description: string }
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * A message that has run out is EXPIRED, whether or not it was marked so yet: marking a million of them takes a while. The second is for
 * receipts that were judged in time and are being committed; from then on nothing but the mark can follow.
 */
const READ = `
  select m.id as "messageId", m.client_reference_id as "clientReferenceId", m.agent_id as "agentId", m.recipient, now.status, m.basic, m.test,
    m.accepted_at as "acceptedAt", m.sent_at as "sentAt", m.delivered_at as "deliveredAt", m.read_at as "readAt", m.failed_at as "failedAt",
    case when now.status = 'EXPIRED' then m.expires_at end as "expiredAt", m.expires_at as "expiresAt",
    m.failure_reason as "failureReason", m.failure_description as "failureDescription"
  from messages m
  left join queue q on q.message_id = m.id,
  lateral (
    select case
      when ${mayBecome('EXPIRED', 'm.status')} and m.expires_at <= now() - interval '1 second' then 'EXPIRED'
      -- Without an entry, its call ended after it had run out.
      when m.status = 'ACCEPTED' and coalesce(q.claimed, true) then 'SENDING'
      else m.status
    end as status
  ) as now
  where m.id = $1 and m.account_id = $2`

export async function readMessage(db: Executor, accountId: number, messageId: string): Promise<Message> {
  const { rows } = UUID.test(messageId)
    ? await db.query<Record<string, unknown>>({ name: 'read-message', text: READ, values: [messageId, accountId] })
    : { rows: [] }
  if (rows[0] === undefined) throw new ApiError('RCS_MESSAGE_NOT_FOUND')
  const { failureReason: reason, failureDescription: description, ...fields } = rows[0]
  const present = Object.entries(fields).filter(([, value]) => value !== null)
  return { ...Object.fromEntries(present), ...(reason !== null && { failure: { reason, description } }) } as Message
}
