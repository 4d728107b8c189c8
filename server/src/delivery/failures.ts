import { REFUSALS } from '../carriers/errors.ts'

/** Why a message failed permanently: the refusals of networks, and Herald's own reasons. */
export const FAILURES = {
  ...REFUSALS,
  AGENT_INACTIVE: 'The agent was deactivated before the message was sent.',
  CANCELLED: 'The message was cancelled before it was sent.',
  CAMPAIGN_CANCELLED: 'The campaign was cancelled before the message was sent.',
  OPTED_OUT: 'The recipient opted out of campaign messages from this agent.',
  BLOCKED: 'The account blocks messages to the recipient.',
  ERASED: 'The data of this person was erased, so nothing is sent to the number.',
  MISSING_VARIABLE: 'A variable of the campaign has no value for the recipient, and no default.',
  INVALID_CONTENT: 'The content breaks a rule with the recipient’s values.',
} as const satisfies Record<string, string>
export type Failure = keyof typeof FAILURES

/** Describes the failure of a message that was not sent because of a look-up. */
export const LOOKED_UP = `${FAILURES.NOT_REACHABLE} A look-up in the last 24 hours said so, so the message was not sent (routing: capability).`

/** Why the SMS of a message is sent, or is not: callers read these as the `reason` of a fallback. */
export const FALLBACK_TRIGGERS = {
  RCS_FAILED: 'The RCS message failed.',
  RCS_EXPIRED: 'The RCS message expired.',
} as const satisfies Record<string, string>

export const NOT_NEEDED_REASONS = {
  RCS_DELIVERED: 'The RCS message was delivered before the SMS was sent.',
} as const satisfies Record<string, string>

export const SKIP_REASONS = {
  EXPIRED: 'The RCS message expired, and `smsFallbackAfterExpiry` was not given.',
  BLOCKED: 'The account blocks messages to the recipient.',
  OPTED_OUT: 'The recipient opted out.',
  CONTROL_GROUP: 'The recipient is in the control group (`controlGroup`).',
  INACTIVE: 'The recipient is marked as inactive, and `ignoreStatus` was not given.',
  CONSENT: 'The recipient has not given all required consents (`consentIDS`).',
  QUARANTINE: 'The recipient got another SMS from the account within the quarantine time (`quarantine`).',
  CANCELLED: 'The message or its campaign was cancelled.',
  ERASED: 'The data of this person was erased, so nothing is sent to the number.',
} as const satisfies Record<string, string>
export type SkipReason = keyof typeof SKIP_REASONS

/** The rules that a timeline can name (sms/rules.ts). `window` is the time of the SMS; `erased` is checked outside the database. */
export const SMS_RULES = ['window', 'block', 'optOut', 'campaign', 'controlGroup', 'status', 'consents', 'quarantine', 'erased'] as const
export type SmsRule = (typeof SMS_RULES)[number]

const { REJECTED, INVALID_RECIPIENT, INVALID_SENDER, UNDELIVERABLE } = REFUSALS

export const SMS_FAILURES = {
  REJECTED,
  INVALID_RECIPIENT,
  INVALID_SENDER,
  UNDELIVERABLE,
  NOT_REACHABLE: 'The number can’t be reached.',
  OUTCOME_UNKNOWN:
    'The network did not respond to the SMS, so it may have been delivered. An SMS is never sent twice, so Herald does not retry it.',
  TIMED_OUT: 'The network did not accept the SMS within 48 hours.',
  NO_SMS_NETWORK: 'The service has no SMS network.',
} as const satisfies Record<string, string>
export type SmsFailure = keyof typeof SMS_FAILURES

/** Stands before the network's own text, which may quote the message. An erasure removes the text from here on. */
export const NETWORK_SAID = ' The network said: '

/** Removes the network's own text. */
export const withoutQuote = (description: string) => description.split(NETWORK_SAID, 1)[0] as string

/** The network's own text, if it sent one. */
export function quoteIn(description: string): string | undefined {
  const at = description.indexOf(NETWORK_SAID)
  return at < 0 ? undefined : description.slice(at + NETWORK_SAID.length)
}

/** Adds the network's own text, if it sent one. */
export function describeFailure(sentence: string, detail: string): string {
  return detail === '' ? sentence : sentence + NETWORK_SAID + detail
}
