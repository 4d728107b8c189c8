import type {
  FALLBACK_TRIGGERS,
  Failure,
  NOT_NEEDED_REASONS,
  SkipReason,
  SmsFailure,
  SmsRule,
} from '../../../server/src/delivery/failures.ts'
import type { Step } from '../../../server/src/timeline/steps.ts'
import { count, duration, isolated, listed, momentOf, shortDuration } from './numbers.ts'

// The words of a message's timeline. The keys are the codes of the server, so a code without words does not compile.

const steps: Record<Step, [title: string, why: string]> = {
  accepted: ['Accepted', 'Herald stored the message.'],
  'attempt-failed': ['The network did not accept it', 'Herald tries again. This can’t deliver the message twice.'],
  'held-back': [
    'Held back',
    'The recipient opted out or was blocked after an attempt with an unknown outcome. Herald waits up to two minutes for a receipt.',
  ],
  sent: ['Sent', 'The network accepted the message.'],
  delivered: ['Delivered', 'The phone has the message.'],
  read: ['Read', 'The recipient opened the message.'],
  failed: ['Failed', 'Herald does not try again.'],
  expired: ['Expired', 'The phone may have been off.'],
  'revoke-asked': ['Asked to revoke it', 'Herald asked the network to delete the message.'],
  'revoke-refused': ['Not revoked', 'The network did not revoke the message. It may still arrive.'],
  revoked: ['Revoked', 'The network deleted the message.'],
  'revoke-failed': ['Not revoked', 'The network did not revoke the message. It may still arrive.'],
  'delivered-late': ['Delivered late', 'The message keeps its final status.'],
  'read-late': ['Read late', 'The message keeps its final status.'],
  'sms-scheduled': ['SMS due', 'Herald checks the SMS rules first.'],
  'sms-checked': ['Rules of the SMS checked', 'Every rule allows the SMS.'],
  'sms-attempt-failed': ['The SMS network did not accept it', 'Herald tries again.'],
  'sms-skipped': ['SMS held back', 'Herald does not send the SMS.'],
  'sms-not-needed': ['SMS not needed', 'Herald does not send the SMS.'],
  'sms-sent': ['SMS sent', 'The SMS network accepted the SMS.'],
  'sms-delivered': ['SMS delivered', 'The phone has the whole SMS.'],
  'sms-failed': ['SMS failed', 'Herald never sends an SMS twice.'],
  tapped: ['Tapped', 'The recipient tapped a button.'],
  clicked: ['Clicked', 'The recipient opened a link.'],
  wrote: ['Wrote', 'The recipient replied.'],
  'shared-location': ['Shared a location', 'The recipient sent a location.'],
  'sent-file': ['Sent a file', 'The recipient sent a file.'],
  'opted-out': ['Opted out', 'The agent sends no more campaigns or SMS.'],
  'opted-in': ['Opted in again', 'The agent sends campaigns and SMS again.'],
  'webhook-attempt': ['Webhook', 'Herald posted an event to an endpoint.'],
}

/** An attempt to revoke a message. */
export const revocation = {
  title: 'Not revoked yet',
  why: 'An attempt to revoke the message failed. Herald tries again.',
}

const blocked = 'the account blocks the recipient'
const erased = 'the data of the recipient was erased'
const optedOut = 'the recipient has opted out'

// The reasons are clauses: they begin with a small letter.

const failures: Record<Failure, string> = {
  NOT_REACHABLE: 'the number has no RCS',
  REJECTED: 'the network refused the message',
  INVALID_RECIPIENT: 'the network does not accept the number',
  INVALID_SENDER: 'the network does not accept the sender',
  UNDELIVERABLE: 'the network could not deliver the message',
  AGENT_INACTIVE: 'the agent was deactivated',
  CANCELLED: 'it was cancelled',
  CAMPAIGN_CANCELLED: 'its campaign was cancelled',
  OPTED_OUT: optedOut,
  BLOCKED: blocked,
  ERASED: erased,
  MISSING_VARIABLE: 'a variable has no value',
  INVALID_CONTENT: 'the values do not fit',
}

type FallbackReason = keyof typeof FALLBACK_TRIGGERS | keyof typeof NOT_NEEDED_REASONS | SkipReason

const fallback: Record<FallbackReason, string> = {
  RCS_FAILED: 'the RCS message failed',
  RCS_EXPIRED: 'the RCS message expired',
  RCS_DELIVERED: 'the RCS message was delivered',
  EXPIRED: 'the request allows it only after a failure, not after an expiry (smsFallbackAfterExpiry)',
  BLOCKED: blocked,
  OPTED_OUT: optedOut,
  CONTROL_GROUP: 'the recipient is in the control group',
  INACTIVE: 'the recipient is marked as inactive',
  CONSENT: 'the recipient has not given a required consent',
  QUARANTINE: 'the recipient got another SMS shortly before',
  CANCELLED: 'the message or its campaign was cancelled',
  ERASED: erased,
}

const smsFailures: Record<SmsFailure, string> = {
  REJECTED: 'the network refused the SMS',
  INVALID_RECIPIENT: 'the SMS network does not accept the number',
  INVALID_SENDER: 'the SMS network does not accept the sender',
  UNDELIVERABLE: 'the network could not deliver the SMS',
  NOT_REACHABLE: 'the number can’t be reached by SMS',
  OUTCOME_UNKNOWN: 'the network did not respond to the SMS, so it may have arrived',
  TIMED_OUT: 'the network did not accept the SMS within 48 hours',
  NO_SMS_NETWORK: 'no SMS network is configured',
}

/** What holds an SMS back. Such a rule is met, or not. */
const rules: Record<SmsRule, string> = {
  window: 'Due',
  block: 'Blocked',
  optOut: 'Opted out',
  campaign: 'Campaign cancelled',
  controlGroup: 'In the control group',
  status: 'Inactive',
  consents: 'Consents',
  quarantine: 'Quarantine',
  erased: 'Erased',
}

type Facts = Record<string, unknown>

const numbers = (value: unknown) => (Array.isArray(value) && value.length > 0 ? listed(value.map(String)) : 'none')

/** What the other rules were checked against. */
const ruleFacts: Partial<Record<string, (facts: Facts) => string>> = {
  window: ({ dueAt }) => (typeof dueAt === 'string' ? momentOf(dueAt) : 'now'),
  consents: ({ required, given }) => `required: ${numbers(required)}; given: ${numbers(given)}`,
  quarantine: ({ hours, lastSmsAt }) =>
    `${count(Number(hours), 'hour')}; ${typeof lastSmsAt === 'string' ? `the last SMS was on ${momentOf(lastSmsAt)}` : 'there was no SMS before'}`,
}

const noSms = 'the request has no SMS to fall back to'
/** When it may leave. `timeZone`: a name, or `recipient`. */
const windowOf = ({ from, to, days, timeZone }: { from: string; to: string; days: string[]; timeZone: string }) =>
  `${from} to ${to}${days.length === 7 ? '' : ` on ${days.join(', ')}`}, ${timeZone === 'recipient' ? 'time of the recipient' : timeZone}`
const until = (at: string) => `It can be delivered until ${momentOf(at)}`

/** The first sentence about a message, and what follows it. */
const outcome = {
  read: (ms: number) => `The recipient read it after ${duration(ms)}.`,
  deliveredAfter: (ms: number) => `It was delivered by RCS after ${duration(ms)}.`,
  gotIt: (by: 'RCS' | 'SMS', ms: number) => `The recipient got it by ${by} after ${duration(ms)}.`,
  notRead: 'No read receipt so far.',
  gotItLate: 'The recipient got it by RCS after all.',
  lateStatus: (status: string) => `The delivery was reported after the message was ${status}. This status stays.`,
  nothing: 'The recipient got nothing.',
  nothingYet: 'The recipient has nothing yet.',
  unknown: 'It is not known whether the recipient got it.',
  cancelled: 'It was cancelled before it was sent.',
  expired: (at: string) => `it was not delivered before it expired on ${momentOf(at)}`,
  wentOut: (ms: number) => `the SMS of the request went out ${duration(ms)} later`,
  smsSent: 'The SMS is with the network, which has sent no receipt so far',
  smsDue: (at: string) => `The SMS is due on ${momentOf(at)}`,
  smsDueNow: 'The SMS is due now',
  smsHeldBack: (reason: string) => `The SMS was held back: ${reason}`,
  smsFailed: (reason: string) => `The SMS failed, too: ${reason}`,
  accepted: 'It waits to be sent.',
  scheduled: (at: string) => `It is to be sent on ${momentOf(at)}.`,
  sending: 'It is being sent.',
  attempts: (failed: number) => `The network did not accept it ${failed === 1 ? 'once' : `${failed} times`}; Herald tries again.`,
  heldBack: 'It is held back.',
  sent: 'The network has it, but has reported no delivery.',
  thenSms: 'if RCS fails, the SMS of the request goes out',
}

export { failures, fallback, noSms, outcome, ruleFacts, rules, smsFailures, steps, until, windowOf }
export const lanes = { rcs: 'RCS', sms: 'SMS', recipient: 'Recipient', webhooks: 'Webhooks' }
export const lanesLabel = 'What happened when'
export const spans = {
  sending: 'being sent',
  withNetwork: 'with the network',
  waits: (ms: number) => `waits ${shortDuration(ms)}`,
  retried: (ms: number) => `tried again after ${shortDuration(ms)}`,
}
export const title = 'What happened'
export const failedBecause = (reason: string) => `Failed: ${reason}`
export const noRcs = 'RCS may be off, or the agent is not launched on the recipient’s network.'
export const heldBackBy = (rule: string) => `A rule holds the SMS back: ${rule}`
export const hasSms = 'the request has an SMS to fall back to'
export const isTest = 'It is a test message, which no report counts.'
export const attempt = (attempt: number) => `This was attempt ${attempt}.`
export const due = (at: string, delayMs: number) =>
  delayMs > 0 ? `It is due ${duration(delayMs)} later, on ${momentOf(at)}.` : 'It is due at once.'
export const smsAs = (segments: number, encoding: string, sender: string) =>
  `It is ${count(segments, 'SMS', 'SMS')} in ${encoding}, from ${sender}.`
export const reportedAt = (at: string) => `The network reported it on ${momentOf(at)}.`
export const quoted = (text: string) => `“${isolated(text)}”`
export const button = (id: string) => `The button has the id ${id}.`
export const link = (url: string) => `The link leads to ${url}.`
export const place = (latitude: number, longitude: number) => `${latitude}, ${longitude}.`
export const bySms = 'By SMS.'
export const fallsBack = 'falls back to SMS'
export const after = (ms: number) => `+${shortDuration(ms)}`
export const networkSaid = 'What the network said'
export const yes = 'yes'
export const no = 'no'
export const results = { passed: 'passed', failed: 'holds the SMS back', 'not-required': 'does not apply' }
export const rulesLabel = 'The rules of the SMS'
export const webhook = {
  noResponse: 'no response',
  endpoint: (id: number) => `endpoint ${id}`,
  attempt: (attempt: number, at: string) => `Attempt ${attempt}, ${at}`,
  replay: 'Post again',
  replayOf: (type: string, endpoint: string) => `Post again: ${type} to ${endpoint}`,
  replayed: 'Queued',
  others: 'Other webhook calls',
  unknownType: 'an event',
}
