import type { Executor } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { type FallbackStatus, mayBecome, type Status } from './states.ts'

export type Message = {
  messageId: string
  clientReferenceId?: string
  campaignId?: string
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
  triggeredBy?: string
  smsFallback?: {
    status: FallbackStatus
    reason?: string
    campaign?: string
    dueAt?: Date
    sentAt?: Date
    deliveredAt?: Date
    segments: number
  }
}

export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * Of a message `m`. One that has run out is EXPIRED, whether or not it was marked so yet: marking a million of them takes a while. The second
 * is for receipts that were judged in time and are being committed; from then on nothing but the mark can follow.
 */
export const SHOWN_STATUS = `case
      when m.delivered_at is not null then m.status
      when ${mayBecome('EXPIRED', 'm.status')} and m.expires_at <= now() - interval '1 second' then 'EXPIRED'
      -- Without an entry, its call ended after it had run out.
      when m.status = 'ACCEPTED' and coalesce((select q.claimed from queue q where q.message_id = m.id), true) then 'SENDING'
      else m.status
    end`

/**
 * Whether the RCS message `m` was delivered, late perhaps, before anything of its SMS `f` was sent: until that is scheduled, nothing of it is
 * in the queue. Written so that nothing is looked up without need, and not with "exists", for which all events may be read into memory.
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

const READ = `
  select m.id as "messageId", coalesce(m.client_reference_id, campaign.client_reference_id) as "clientReferenceId", m.campaign_id as "campaignId", m.agent_id as "agentId", m.recipient, now.status, m.basic, m.test,
    m.accepted_at as "acceptedAt", m.sent_at as "sentAt", m.delivered_at as "deliveredAt", m.read_at as "readAt", m.failed_at as "failedAt",
    case when now.status = 'EXPIRED' then m.expires_at end as "expiredAt", m.expires_at as "expiresAt",
    m.failure_reason as "failureReason", m.failure_description as "failureDescription", m.triggered_by as "triggeredBy",
    coalesce(needless.status, f.status) as "smsStatus", coalesce(needless.reason, f.reason) as "smsReason",
    f.plan ->> 'campaign' as "smsCampaign", case when coalesce(needless.status, f.status) <> 'NOT_NEEDED' then f.due_at end as "smsDueAt", f.sent_at as "smsSentAt",
    f.delivered_at as "smsDeliveredAt", f.segments as "smsSegments"
  from messages m
  left join campaigns campaign on campaign.id = m.campaign_id
  left join sms_fallbacks f on f.message_id = m.id
  left join lateral (select 'NOT_NEEDED' as status, 'RCS_DELIVERED' as reason where ${SMS_IS_NEEDLESS}) as needless on true,
  lateral (select ${SHOWN_STATUS} as status) as now
  where m.id = $1 and m.account_id = $2`

export async function readMessage(db: Executor, accountId: number, messageId: string): Promise<Message> {
  const { rows } = UUID.test(messageId)
    ? await db.query<Record<string, unknown>>({ name: 'read-message', text: READ, values: [messageId, accountId] })
    : { rows: [] }
  if (rows[0] === undefined) throw new ApiError('RCS_MESSAGE_NOT_FOUND')
  const {
    failureReason,
    failureDescription,
    smsStatus,
    smsReason,
    smsCampaign,
    smsDueAt,
    smsSentAt,
    smsDeliveredAt,
    smsSegments,
    ...fields
  } = rows[0]
  const failure = { reason: failureReason, description: failureDescription }
  const smsFallback = present({
    status: smsStatus,
    reason: smsReason,
    campaign: smsCampaign,
    dueAt: smsDueAt,
    sentAt: smsSentAt,
    deliveredAt: smsDeliveredAt,
    segments: smsSegments,
  })
  return { ...present(fields), ...(failureReason !== null && { failure }), ...(smsStatus !== null && { smsFallback }) } as Message
}

/** The fields that have a value. */
export function present(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
}
