import type { ICONS } from '../kit/icons.ts'
import type { Tone } from '../kit/tone.ts'
import type { Step } from './types.ts'

export type Lane = 'rcs' | 'sms' | 'recipient' | 'webhooks'

/** How a step looks. `status`: what the message or its SMS is from this step on. */
export type Look = { lane: Lane; tone: Tone; icon: keyof typeof ICONS; status?: string }

export const LOOKS: Record<Step, Look> = {
  accepted: { lane: 'rcs', tone: 'plain', icon: 'check', status: 'ACCEPTED' },
  'attempt-failed': { lane: 'rcs', tone: 'warn', icon: 'refresh-cw', status: 'SENDING' },
  'held-back': { lane: 'rcs', tone: 'warn', icon: 'hand', status: 'SENDING' },
  sent: { lane: 'rcs', tone: 'plain', icon: 'send', status: 'SENT' },
  delivered: { lane: 'rcs', tone: 'good', icon: 'check', status: 'DELIVERED' },
  read: { lane: 'recipient', tone: 'good', icon: 'eye', status: 'READ' },
  failed: { lane: 'rcs', tone: 'bad', icon: 'x', status: 'FAILED' },
  expired: { lane: 'rcs', tone: 'bad', icon: 'clock', status: 'EXPIRED' },
  'revoke-asked': { lane: 'rcs', tone: 'plain', icon: 'rotate-ccw' },
  'revoke-refused': { lane: 'rcs', tone: 'warn', icon: 'triangle-alert' },
  revoked: { lane: 'rcs', tone: 'plain', icon: 'rotate-ccw' },
  'revoke-failed': { lane: 'rcs', tone: 'warn', icon: 'triangle-alert' },
  'delivered-late': { lane: 'rcs', tone: 'warn', icon: 'check' },
  'read-late': { lane: 'recipient', tone: 'warn', icon: 'eye' },
  'sms-scheduled': { lane: 'sms', tone: 'info', icon: 'timer', status: 'SCHEDULED' },
  'sms-checked': { lane: 'sms', tone: 'plain', icon: 'shield-check' },
  'sms-attempt-failed': { lane: 'sms', tone: 'warn', icon: 'refresh-cw' },
  'sms-skipped': { lane: 'sms', tone: 'bad', icon: 'hand', status: 'SKIPPED' },
  'sms-not-needed': { lane: 'sms', tone: 'plain', icon: 'check', status: 'NOT_NEEDED' },
  'sms-sent': { lane: 'sms', tone: 'plain', icon: 'send', status: 'SENT' },
  'sms-delivered': { lane: 'sms', tone: 'good', icon: 'check', status: 'DELIVERED' },
  'sms-failed': { lane: 'sms', tone: 'bad', icon: 'x', status: 'FAILED' },
  tapped: { lane: 'recipient', tone: 'info', icon: 'mouse-pointer-click' },
  clicked: { lane: 'recipient', tone: 'info', icon: 'mouse-pointer-click' },
  wrote: { lane: 'recipient', tone: 'info', icon: 'message-circle-reply' },
  'shared-location': { lane: 'recipient', tone: 'info', icon: 'map-pin' },
  'sent-file': { lane: 'recipient', tone: 'info', icon: 'file-text' },
  'opted-out': { lane: 'recipient', tone: 'warn', icon: 'ban' },
  'opted-in': { lane: 'recipient', tone: 'good', icon: 'check' },
  'webhook-attempt': { lane: 'webhooks', tone: 'plain', icon: 'webhook' },
}
