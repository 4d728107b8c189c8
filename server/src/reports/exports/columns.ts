import { SHOWN_STATUS, SMS_IS_NEEDLESS } from '../../messages/messages.ts'

/** A column of a file: its name as in the API, and its source. Texts are what people and networks write, and csv.ts defuses them. */
export type Column = { name: string; sql: string; isText: boolean }

const ours = (name: string, sql: string): Column => ({ name, sql, isText: false })
const text = (name: string, sql: string): Column => ({ name, sql, isText: true })

/** Of a message `m`, what its recipient `did` first, and its SMS `f`. */
export const MESSAGE_COLUMNS = [
  ours('messageId', 'm.id'),
  text('clientReferenceId', 'm.client_reference_id'),
  text('agentId', 'm.agent_id'),
  ours('recipient', 'm.recipient'),
  ours('status', SHOWN_STATUS),
  ours('acceptedAt', 'm.accepted_at'),
  ours('sentAt', 'm.sent_at'),
  ours('deliveredAt', 'm.delivered_at'),
  ours('readAt', 'm.read_at'),
  ours('failedAt', 'm.failed_at'),
  ours('expiredAt', `case when ${SHOWN_STATUS} = 'EXPIRED' then m.expires_at end`),
  ours('expiresAt', 'm.expires_at'),
  ours('failureReason', 'm.failure_reason'),
  text('failureDescription', 'm.failure_description'),
  ours('triggeredBy', 'm.triggered_by'),
  ours('clickedAt', 'did.clicked_at'),
  ours('repliedAt', 'did.replied_at'),
  ours('optedOutAt', 'did.opted_out_at'),
  ours('smsStatus', `case when ${SMS_IS_NEEDLESS} then 'NOT_NEEDED' else f.status end`),
  ours('smsReason', `case when ${SMS_IS_NEEDLESS} then 'RCS_DELIVERED' else f.reason end`),
  ours('smsSegments', 'f.segments'),
  ours('smsSentAt', 'f.sent_at'),
  ours('smsDeliveredAt', 'f.delivered_at'),
  ours('smsFailedAt', 'f.failed_at'),
]

const OF_ACCOUNT = new Set(['clientReferenceId', 'agentId', 'triggeredBy'])

/** All messages of a campaign have the same agent and reference. */
export const RECIPIENT_COLUMNS = MESSAGE_COLUMNS.filter(({ name }) => !OF_ACCOUNT.has(name))

/** Of what somebody did, `a`. */
export const ACTION_COLUMNS = [
  ours('messageId', 'a.message_id'),
  ours('recipient', 'a.recipient'),
  ours('action', 'a.kind'),
  ours('channel', 'a.channel'),
  text('buttonId', 'a.button_id'),
  text('text', 'a.text'),
  text('payload', 'a.payload'),
  text('url', 'a.url'),
  ours('latitude', 'a.latitude'),
  ours('longitude', 'a.longitude'),
  ours('occurredAt', 'a.occurred_at'),
]
