import type { Step } from '../../../server/src/timeline/steps.ts'
import type { smsStatuses, statuses } from '../words/en-messages.ts'

export type { Step }

export type Status = keyof typeof statuses
export type SmsStatus = keyof typeof smsStatuses

/** A message, as the API returns it. */
export type Message = {
  messageId: string
  clientReferenceId?: string
  campaignId?: string
  agentId: string
  recipient: string
  status: Status
  basic: boolean
  test: boolean
  acceptedAt: string
  /** When it is sent, if it was scheduled. */
  scheduledAt?: string
  deliveryWindow?: DeliveryWindow
  sentAt?: string
  deliveredAt?: string
  readAt?: string
  failedAt?: string
  expiredAt?: string
  expiresAt: string
  failure?: { reason: string; description: string }
  triggeredBy?: string
  smsFallback?: SmsFallback
}

/** When it may leave. */
export type DeliveryWindow = { from: string; to: string; days: string[]; timeZone: string }

export type SmsFallback = {
  status: SmsStatus
  reason?: string
  campaign?: string
  dueAt?: string
  sentAt?: string
  deliveredAt?: string
  segments: number
}

/** A step of a message, as the API returns it. */
export type TimelineItem = {
  occurredAt: string
  step: Step
  reason: string | null
  description: string
  data: Record<string, unknown>
}

/** The data of a `webhook-attempt`. `status` is absent if there was no response. */
export type WebhookAttempt = {
  eventId?: string
  type?: string
  endpointId: number
  attempt: number
  status?: number
  error?: string
  durationMs: number
}

export type RuleResult = { rule: string; result: 'passed' | 'failed' | 'not-required' } & Record<string, unknown>
