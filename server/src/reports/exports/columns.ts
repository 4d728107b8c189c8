import { SHOWN_STATUS, SMS_IS_NEEDLESS } from '../../messages/messages.ts'

/**
 * A column of a file: its name as in the API, and its SQL. `isText`: the value comes from a person or a network, so csv.ts makes it safe for
 * spreadsheets.
 */
export type Column = { name: string; sql: string; isText: boolean }

const value = (name: string, sql: string): Column => ({ name, sql, isText: false })
const text = (name: string, sql: string): Column => ({ name, sql, isText: true })

/** Columns of a message `m`, of its recipient's first actions `did`, and of its SMS `f`. */
export const MESSAGE_COLUMNS = [
  value('messageId', 'm.id'),
  text('clientReferenceId', 'm.client_reference_id'),
  text('agentId', 'm.agent_id'),
  value('recipient', 'm.recipient'),
  value('status', SHOWN_STATUS),
  value('acceptedAt', 'm.accepted_at'),
  value('scheduledAt', 'm.scheduled_at'),
  value('sentAt', 'm.sent_at'),
  value('deliveredAt', 'm.delivered_at'),
  value('readAt', 'm.read_at'),
  value('failedAt', 'm.failed_at'),
  value('expiredAt', `case when ${SHOWN_STATUS} = 'EXPIRED' then m.expires_at end`),
  value('expiresAt', 'm.expires_at'),
  value('failureReason', 'm.failure_reason'),
  text('failureDescription', 'm.failure_description'),
  value('triggeredBy', 'm.triggered_by'),
  value('clickedAt', 'did.clicked_at'),
  value('repliedAt', 'did.replied_at'),
  value('optedOutAt', 'did.opted_out_at'),
  value('smsStatus', `case when ${SMS_IS_NEEDLESS} then 'NOT_NEEDED' else f.status end`),
  value('smsReason', `case when ${SMS_IS_NEEDLESS} then 'RCS_DELIVERED' else f.reason end`),
  value('smsSegments', 'f.segments'),
  value('smsSentAt', 'f.sent_at'),
  value('smsDeliveredAt', 'f.delivered_at'),
  value('smsFailedAt', 'f.failed_at'),
]

const SAME_IN_CAMPAIGN = new Set(['clientReferenceId', 'agentId', 'scheduledAt', 'triggeredBy'])

/** Without the columns that are the same for all messages of a campaign, or empty. */
export const RECIPIENT_COLUMNS = MESSAGE_COLUMNS.filter(({ name }) => !SAME_IN_CAMPAIGN.has(name))

/** Columns of a message `m` of any list, with its campaign `campaign`, whose reference it has. */
export const FOUND_COLUMNS = MESSAGE_COLUMNS.flatMap((column) =>
  column.name === 'clientReferenceId'
    ? [text('clientReferenceId', 'coalesce(m.client_reference_id, campaign.client_reference_id)'), value('campaignId', 'm.campaign_id')]
    : [column],
)

/** Columns of an action `a`. */
export const ACTION_COLUMNS = [
  value('messageId', 'a.message_id'),
  value('recipient', 'a.recipient'),
  value('action', 'a.kind'),
  value('channel', 'a.channel'),
  text('buttonId', 'a.button_id'),
  text('text', 'a.text'),
  text('payload', 'a.payload'),
  text('url', 'a.url'),
  value('latitude', 'a.latitude'),
  value('longitude', 'a.longitude'),
  value('occurredAt', 'a.occurred_at'),
]
