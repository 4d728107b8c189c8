/**
 * The kinds of events that callers get. An endpoint can select some of them. They are apart from their schemas, because loading TypeBox takes
 * as long as the rest of a command.
 */
export const EVENT_KINDS = [
  'message.sent',
  'message.delivered',
  'message.read',
  'message.failed',
  'message.expired',
  'message.clicked',
  'message.replied',
  'sms.sent',
  'sms.delivered',
  'sms.failed',
  'campaign.started',
  'campaign.completed',
  'campaign.cancelled',
  'recipient.opted_out',
  'webhook.disabled',
  'webhook.test',
] as const

export type EventKind = (typeof EVENT_KINDS)[number]
