import { FALLBACK_TRIGGERS, NOT_NEEDED_REASONS, SKIP_REASONS } from '../delivery/failures.ts'

/** The steps of a timeline in plain words. Steps of the same millisecond are in this order. */
export const STEPS = {
  accepted: 'Herald stored the message.',
  'attempt-failed': 'The network did not accept the message, or its response was lost. Herald tries again.',
  'held-back': 'The recipient opted out, or was blocked, after an attempt with an unknown result. Herald waits for its receipt.',
  sent: 'The network accepted the message.',
  delivered: 'The phone received the message.',
  read: 'The recipient read the message.',
  failed: 'The message failed permanently.',
  expired: 'The message expired before it was delivered.',
  'revoke-asked': 'The network accepted the request to revoke the message.',
  'revoke-refused': 'The network refused to revoke the message, or did not have it.',
  revoked: 'The network revoked the message.',
  'revoke-failed': 'The network could not revoke the message.',
  'delivered-late': 'The network reported the delivery after the message had its final status, which stays.',
  'read-late': 'The network reported that the recipient read the message after it had its final status, which stays.',
  'sms-scheduled': 'The SMS is due.',
  'sms-checked': 'Every rule for the SMS passed.',
  'sms-attempt-failed': 'The SMS network did not accept the SMS. Herald tries again.',
  'sms-skipped': 'The SMS is not sent.',
  'sms-not-needed': 'The SMS is not needed.',
  'sms-sent': 'The SMS network accepted the SMS.',
  'sms-delivered': 'The phone received the whole SMS.',
  'sms-failed': 'The SMS failed permanently.',
  tapped: 'The recipient tapped a button.',
  clicked: 'The recipient followed a link.',
  wrote: 'The recipient wrote a text.',
  'shared-location': 'The recipient shared a location.',
  'sent-file': 'The recipient sent a file.',
  'opted-out': 'The recipient opted out.',
  'opted-in': 'The recipient opted in again.',
  'webhook-attempt': 'An event of the message was posted to a webhook endpoint.',
} as const satisfies Record<string, string>

export type Step = keyof typeof STEPS

const ORDER = Object.keys(STEPS) as Step[]

export const orderOf = (step: Step) => ORDER.indexOf(step)

const REASONS: Record<string, string> = { ...FALLBACK_TRIGGERS, ...NOT_NEEDED_REASONS, ...SKIP_REASONS }

/** Describes a step about an SMS, which has a reason of its own. */
export function describeSms(step: Step, reason: string | null): string {
  const because = reason === null ? undefined : REASONS[reason]
  return because === undefined || !step.startsWith('sms-') || step === 'sms-sent' || step === 'sms-delivered' ? STEPS[step] : because
}
