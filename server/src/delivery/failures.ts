import { REFUSALS } from '../carriers/carrier.ts'

/** Why a message was given up: what networks say, and what we do ourselves. */
export const FAILURES = {
  ...REFUSALS,
  AGENT_INACTIVE: 'The agent was deactivated before the message was sent.',
  CAMPAIGN_CANCELLED: 'The campaign was cancelled before the message was sent.',
  OPTED_OUT: 'The recipient wants no more messages of campaigns from this agent.',
} as const satisfies Record<string, string>
export type Failure = keyof typeof FAILURES

/** Why an SMS is sent instead, and why it is not: what callers read as the reason of a fallback. */
export const FALLBACK_TRIGGERS = {
  RCS_FAILED: 'The RCS message failed.',
  RCS_EXPIRED: 'The RCS message expired.',
} as const satisfies Record<string, string>

export const NOT_NEEDED_REASONS = {
  RCS_DELIVERED: 'The RCS message was delivered before the SMS was sent.',
} as const satisfies Record<string, string>

export const SKIP_REASONS = {
  EXPIRED: 'The RCS message expired, and `smsFallbackAfterExpiry` was not given.',
  OPTED_OUT: 'The recipient opted out.',
  CONTROL_GROUP: 'The recipient is in the control group (`controlGroup`).',
  INACTIVE: 'The recipient is marked as inactive, and `ignoreStatus` was not given.',
  CONSENT: 'The recipient does not hold all the consents asked for (`consentIDS`).',
  QUARANTINE: 'The recipient had an SMS from the account within its quarantine time (`quarantine`).',
  CANCELLED: 'The campaign was cancelled.',
} as const satisfies Record<string, string>
export type SkipReason = keyof typeof SKIP_REASONS

const { REJECTED, INVALID_RECIPIENT, INVALID_SENDER, UNDELIVERABLE } = REFUSALS

export const SMS_FAILURES = {
  REJECTED,
  INVALID_RECIPIENT,
  INVALID_SENDER,
  UNDELIVERABLE,
  NOT_REACHABLE: 'The number can’t be reached.',
  OUTCOME_UNKNOWN:
    'It was handed to the network, and no answer came: it may have arrived. An SMS is never sent twice, so it is not tried again.',
  TIMED_OUT: 'The network did not take it within 48 hours.',
  NO_SMS_NETWORK: 'The service has no SMS network.',
} as const satisfies Record<string, string>
export type SmsFailure = keyof typeof SMS_FAILURES

/** With the network's own words, where it had any. */
export function describeFailure(sentence: string, detail: string): string {
  return detail === '' ? sentence : `${sentence} The network said: ${detail}`
}
