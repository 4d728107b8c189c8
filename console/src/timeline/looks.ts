import type { ICONS } from '../kit/icons.ts'
import type { Tone } from '../kit/tone.ts'
import type { Step } from './types.ts'

export type Lane = 'rcs' | 'sms' | 'recipient' | 'webhooks'

/** How a step looks. `status`: what the message or its SMS is from this step on. */
type Look = [lane: Lane, tone: Tone, icon: keyof typeof ICONS, status?: string]

export const LOOKS: Record<Step, Look> = {
  accepted: ['rcs', 'plain', 'check', 'ACCEPTED'],
  'attempt-failed': ['rcs', 'warn', 'refresh-cw', 'SENDING'],
  'held-back': ['rcs', 'warn', 'hand', 'SENDING'],
  sent: ['rcs', 'plain', 'send', 'SENT'],
  delivered: ['rcs', 'good', 'check', 'DELIVERED'],
  read: ['recipient', 'good', 'eye', 'READ'],
  failed: ['rcs', 'bad', 'x', 'FAILED'],
  expired: ['rcs', 'bad', 'clock', 'EXPIRED'],
  'revoke-asked': ['rcs', 'plain', 'rotate-ccw'],
  'revoke-refused': ['rcs', 'warn', 'triangle-alert'],
  revoked: ['rcs', 'plain', 'rotate-ccw'],
  'revoke-failed': ['rcs', 'warn', 'triangle-alert'],
  'delivered-late': ['rcs', 'warn', 'check'],
  'read-late': ['recipient', 'warn', 'eye'],
  'sms-scheduled': ['sms', 'info', 'clock', 'SCHEDULED'],
  'sms-checked': ['sms', 'plain', 'list'],
  'sms-attempt-failed': ['sms', 'warn', 'refresh-cw'],
  'sms-skipped': ['sms', 'bad', 'hand', 'SKIPPED'],
  'sms-not-needed': ['sms', 'plain', 'check', 'NOT_NEEDED'],
  'sms-sent': ['sms', 'plain', 'send', 'SENT'],
  'sms-delivered': ['sms', 'good', 'check', 'DELIVERED'],
  'sms-failed': ['sms', 'bad', 'x', 'FAILED'],
  tapped: ['recipient', 'info', 'mouse-pointer-click'],
  clicked: ['recipient', 'info', 'mouse-pointer-click'],
  wrote: ['recipient', 'info', 'message-circle-reply'],
  'shared-location': ['recipient', 'info', 'map-pin'],
  'sent-file': ['recipient', 'info', 'file-text'],
  'opted-out': ['recipient', 'warn', 'ban'],
  'opted-in': ['recipient', 'good', 'check'],
  'webhook-attempt': ['webhooks', 'plain', 'webhook'],
}

/** The steps of `message.replied`. */
export const REPLIES: Step[] = ['tapped', 'wrote', 'shared-location', 'sent-file']

/** The type of the event that a step emits. Steps that emit none have a type that no event has. */
export function eventOf(step: Step): string {
  if (REPLIES.includes(step)) return 'message.replied'
  if (step === 'opted-out') return 'recipient.opted_out'
  return step.startsWith('sms-') ? `sms.${step.slice(4)}` : `message.${step}`
}
