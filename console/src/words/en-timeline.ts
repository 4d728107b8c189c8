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

type StepWords = { title: string; why: string }

const steps: Record<Step, StepWords> = {
  accepted: { title: 'Accepted', why: 'Herald stored the message.' },
  'attempt-failed': {
    title: 'The network did not accept it',
    why: 'The network refused for now, or its response was lost. Herald tries again with growing delays. The network knows the message by its id, so a repeated attempt can’t deliver it twice.',
  },
  'held-back': {
    title: 'Held back',
    why: 'The recipient opted out, or was blocked, after an attempt with an unknown outcome. Herald waits up to two minutes for the receipt, and does not send the message again.',
  },
  sent: { title: 'Handed to the network', why: 'The network accepted the message, and tries to deliver it.' },
  delivered: { title: 'Delivered', why: 'The phone has the message.' },
  read: { title: 'Read', why: 'The recipient opened the message.' },
  failed: { title: 'Failed', why: 'Herald does not try it again.' },
  expired: {
    title: 'Expired',
    why: 'The message was not delivered in time. The phone may have been switched off, or without a connection.',
  },
  'revoke-asked': { title: 'Asked to revoke it', why: 'Herald asked the network to delete the message, so that it can’t arrive too late.' },
  'revoke-refused': { title: 'Not revoked', why: 'The network refused to revoke the message, or did not have it. It may still arrive.' },
  revoked: { title: 'Revoked', why: 'The network deleted the message before the phone got it.' },
  'revoke-failed': { title: 'Not revoked', why: 'The network could not revoke the message. It may still arrive, or has arrived.' },
  'delivered-late': {
    title: 'Delivered late',
    why: 'The network reported the delivery after the message had its final status. The status stays.',
  },
  'read-late': {
    title: 'Read late',
    why: 'The network reported after the final status that the recipient read the message. The status stays.',
  },
  'sms-scheduled': { title: 'An SMS is due', why: 'Herald checks the rules of the SMS just before it sends it.' },
  'sms-checked': { title: 'Rules of the SMS checked', why: 'Every rule allows the SMS.' },
  'sms-attempt-failed': { title: 'The SMS network did not accept it', why: 'No part of the SMS was sent, so Herald tries again.' },
  'sms-skipped': { title: 'SMS held back', why: 'Herald does not send the SMS.' },
  'sms-not-needed': { title: 'SMS not needed', why: 'Herald does not send the SMS.' },
  'sms-sent': { title: 'SMS handed to the network', why: 'The SMS network accepted the SMS.' },
  'sms-delivered': { title: 'SMS delivered', why: 'The phone has the whole SMS.' },
  'sms-failed': { title: 'SMS failed', why: 'Herald never sends an SMS twice.' },
  tapped: { title: 'Tapped a button', why: 'The recipient tapped a button of the message.' },
  clicked: { title: 'Followed a link', why: 'The recipient opened a link. Bots that fetch link previews do not count.' },
  wrote: { title: 'Wrote a text', why: 'The recipient replied.' },
  'shared-location': { title: 'Shared a location', why: 'The recipient sent a location.' },
  'sent-file': { title: 'Sent a file', why: 'The recipient sent a file.' },
  'opted-out': { title: 'Opted out', why: 'The recipient gets no more campaigns and SMS fallbacks from this agent.' },
  'opted-in': { title: 'Opted in again', why: 'The recipient gets campaigns and SMS fallbacks from this agent again.' },
  'webhook-attempt': { title: 'Webhook called', why: 'Herald posted an event of the message to an endpoint.' },
}

/** `short` is a clause of the first sentence; `why` explains the step. */
type ReasonWords = { short: string; why: string }

const failures: Record<Failure, ReasonWords> = {
  NOT_REACHABLE: {
    short: 'the number has no RCS',
    why: 'The number can’t be reached by RCS: it has no RCS, RCS is switched off, or the agent is not launched on its network. Trying again would not help.',
  },
  REJECTED: {
    short: 'the network refused the message',
    why: 'The network refused the message. Its response says why; trying again would not help.',
  },
  INVALID_RECIPIENT: { short: 'the network does not accept the number', why: 'The network does not accept the recipient’s number.' },
  INVALID_SENDER: { short: 'the network does not accept the sender', why: 'The network does not accept the sender.' },
  UNDELIVERABLE: { short: 'the network could not deliver the message', why: 'The network accepted the message, and could not deliver it.' },
  AGENT_INACTIVE: { short: 'the agent was deactivated', why: 'The agent was deactivated before the message was sent.' },
  CANCELLED: { short: 'it was cancelled', why: 'The message was cancelled before it was sent.' },
  CAMPAIGN_CANCELLED: { short: 'its campaign was cancelled', why: 'The campaign was cancelled before the message was sent.' },
  OPTED_OUT: { short: 'the recipient has opted out', why: 'The recipient opted out of campaign messages from this agent.' },
  BLOCKED: { short: 'the account blocks the recipient', why: 'The account blocks messages to the recipient.' },
  ERASED: { short: 'the data of the recipient was erased', why: 'The data of this person was erased, so nothing is sent to the number.' },
}

type FallbackReason = keyof typeof FALLBACK_TRIGGERS | keyof typeof NOT_NEEDED_REASONS | SkipReason

const fallback: Record<FallbackReason, ReasonWords> = {
  RCS_FAILED: { short: 'the RCS message failed', why: 'The RCS message failed, and the request has an SMS for this case.' },
  RCS_EXPIRED: { short: 'the RCS message expired', why: 'The RCS message expired, and the request has an SMS for this case.' },
  RCS_DELIVERED: { short: 'the RCS message was delivered', why: 'The RCS message was delivered before the SMS was sent.' },
  EXPIRED: {
    short: 'the request allows it only after a failure, not after an expiry',
    why: 'The RCS message expired. The request allows the SMS only after a failure: smsFallbackAfterExpiry was not given.',
  },
  BLOCKED: { short: 'the account blocks the recipient', why: 'The account blocks messages to the recipient.' },
  OPTED_OUT: { short: 'the recipient has opted out', why: 'The recipient opted out, so there is no SMS either.' },
  CONTROL_GROUP: {
    short: 'the recipient is in the control group',
    why: 'The recipient is in the control group, which gets no SMS (controlGroup).',
  },
  INACTIVE: { short: 'the recipient is marked as inactive', why: 'The recipient is marked as inactive, and ignoreStatus was not given.' },
  CONSENT: {
    short: 'the recipient has not given a required consent',
    why: 'The recipient has not given all required consents (consentIDS).',
  },
  QUARANTINE: {
    short: 'the recipient got another SMS shortly before',
    why: 'The recipient got another SMS from the account within the quarantine time (quarantine).',
  },
  CANCELLED: { short: 'the message or its campaign was cancelled', why: 'The message or its campaign was cancelled.' },
  ERASED: { short: 'the data of the recipient was erased', why: 'The data of this person was erased, so nothing is sent to the number.' },
}

const smsFailures: Record<SmsFailure, ReasonWords> = {
  REJECTED: { short: 'the network refused the SMS', why: 'The SMS network refused the SMS.' },
  INVALID_RECIPIENT: {
    short: 'the SMS network does not accept the number',
    why: 'The SMS network does not accept the recipient’s number.',
  },
  INVALID_SENDER: { short: 'the SMS network does not accept the sender', why: 'The SMS network does not accept the sender.' },
  UNDELIVERABLE: { short: 'the network could not deliver the SMS', why: 'The SMS network accepted the SMS, and could not deliver it.' },
  NOT_REACHABLE: { short: 'the number can’t be reached by SMS', why: 'The number can’t be reached by SMS.' },
  OUTCOME_UNKNOWN: {
    short: 'the network did not respond to the SMS',
    why: 'The network did not respond to the SMS, so it may have been delivered. An SMS is never sent twice, so Herald does not retry it.',
  },
  TIMED_OUT: { short: 'the network did not accept the SMS within 48 hours', why: 'The network did not accept the SMS within 48 hours.' },
  NO_SMS_NETWORK: { short: 'no SMS network is configured', why: 'No SMS network is configured in Herald.' },
}

type Facts = Record<string, unknown>
type RuleWords = { name: string; passed: (facts: Facts) => string; failed: (facts: Facts) => string; notRequired: string }

const numbers = (value: unknown) => (Array.isArray(value) ? value.map(String) : [])
const consents = (ids: unknown) => `${numbers(ids).length === 1 ? 'the consent' : 'the consents'} ${listed(numbers(ids))}`
const sinceLast = ({ hours, lastSmsAt }: Facts) =>
  `${typeof lastSmsAt === 'string' ? `the last SMS was on ${momentOf(lastSmsAt)}` : 'there was no SMS before'}; the quarantine is ${count(Number(hours), 'hour')}`

const rules: Record<SmsRule, RuleWords> = {
  window: {
    name: 'Time',
    passed: ({ dueAt }) => (typeof dueAt === 'string' ? `the SMS was due on ${momentOf(dueAt)}` : 'the SMS is due'),
    failed: () => 'the SMS is not due yet',
    notRequired: 'the SMS has no time of its own',
  },
  block: {
    name: 'Block',
    passed: () => 'the account does not block the recipient',
    failed: () => 'the account blocks the recipient',
    notRequired: 'this rule always applies',
  },
  optOut: {
    name: 'Opt-out',
    passed: () => 'the recipient has not opted out of the agent',
    failed: () => 'the recipient has opted out of the agent',
    notRequired: 'this rule always applies',
  },
  campaign: {
    name: 'Campaign',
    passed: () => 'the campaign is not cancelled',
    failed: () => 'the campaign is cancelled',
    notRequired: 'the message belongs to no campaign',
  },
  controlGroup: {
    name: 'Control group',
    passed: () => 'the recipient is not in the control group',
    failed: () => 'the recipient is in the control group',
    notRequired: 'the request does not ask for it',
  },
  status: {
    name: 'Active',
    passed: () => 'the recipient is not marked as inactive',
    failed: () => 'the recipient is marked as inactive',
    notRequired: 'the request ignores it (ignoreStatus)',
  },
  consents: {
    name: 'Consents',
    passed: ({ required }) => `the recipient has given ${consents(required)}, all that the request requires`,
    failed: ({ required, given }) =>
      `the request requires ${consents(required)}; the recipient has given ${numbers(given).length === 0 ? 'none' : listed(numbers(given))}`,
    notRequired: 'the request requires none',
  },
  quarantine: { name: 'Quarantine', passed: sinceLast, failed: sinceLast, notRequired: 'the request does not ask for it' },
  erased: {
    name: 'Erased people',
    passed: () => 'the data of the recipient was not erased',
    failed: () => 'the data of the recipient was erased',
    notRequired: 'this rule always applies',
  },
}

/** The first sentence about a message, and what follows it. A reason is a clause: it begins with a small letter. */
const outcome = {
  read: (ms: number) => `The recipient read it after ${duration(ms)}.`,
  deliveredAfter: (ms: number) => `It was delivered by RCS after ${duration(ms)}.`,
  gotIt: (by: 'RCS' | 'SMS', ms: number) => `The recipient got it by ${by} after ${duration(ms)}.`,
  notRead: 'The network has not reported that it was read.',
  gotItLate: 'The recipient got it by RCS after all.',
  lateStatus: (status: string) => `The network reported the delivery after the message was ${status}, so this status stays.`,
  nothing: 'The recipient got nothing.',
  nothingYet: 'The recipient has nothing yet.',
  unknown: 'It is not known whether the recipient got it.',
  cancelled: 'It was cancelled before it was sent.',
  expired: (at: string) => `it was not delivered before it expired on ${momentOf(at)}`,
  wentOut: (ms: number) => `the SMS of the request went out ${duration(ms)} later`,
  smsSent: 'The SMS is with the network, which has sent no receipt so far',
  smsDue: (at: string) => `The SMS is due on ${momentOf(at)}`,
  smsDueNow: 'The SMS is due now, and waits for its turn',
  smsHeldBack: (reason: string) => `The SMS was held back: ${reason}`,
  smsFailed: (reason: string) => `The SMS failed, too: ${reason}`,
  noSms: 'The request has no SMS to fall back to',
  accepted: 'It waits to be sent.',
  sending: 'It is being sent.',
  attempts: (failed: number) => `The network did not accept it ${failed === 1 ? 'once' : `${failed} times`}; Herald tries again.`,
  heldBack: 'It is held back.',
  heldBackWhy:
    'The recipient opted out, or was blocked, after an attempt with an unknown outcome. Herald waits up to two minutes for the receipt.',
  sent: 'The network has it, but has not delivered it yet.',
  until: (at: string) => `It can be delivered until ${momentOf(at)}`,
  thenSms: 'if RCS fails, the SMS of the request goes out',
  thenNothing: 'there is no SMS to fall back to',
}

export const timeline = {
  steps,
  failures,
  fallback,
  smsFailures,
  rules,
  outcome,
  lanes: { rcs: 'RCS', sms: 'SMS', recipient: 'Recipient', webhooks: 'Webhooks' },
  lanesLabel: 'What happened when. The list below says the same in words.',
  spans: {
    sending: 'being sent',
    withNetwork: 'with the network',
    waits: (ms: number) => `waits ${shortDuration(ms)}`,
    retried: (ms: number) => `tried again after ${shortDuration(ms)}`,
  },
  title: 'What happened',
  failedBecause: (reason: string) => `Failed: ${reason}`,
  heldBackBy: (rule: string) => `A rule holds the SMS back: ${rule}`,
  acceptedUntil: (at: string) => `It can be delivered until ${momentOf(at)}.`,
  hasSms: 'The request has an SMS to fall back to.',
  hasNoSms: 'The request has no SMS to fall back to.',
  isTest: 'It is a test message, which no report counts.',
  ofCampaign: 'It belongs to a campaign.',
  triggered: 'The recipient asked for it by a tap or a text.',
  attempt: (attempt: number) => `This was attempt ${attempt}.`,
  due: (at: string, delayMs: number) => (delayMs > 0 ? `It is due ${duration(delayMs)} later, on ${momentOf(at)}.` : 'It is due at once.'),
  smsAs: (segments: number, encoding: string, sender: string) => `It is ${count(segments, 'SMS', 'SMS')} in ${encoding}, from ${sender}.`,
  encodings: { GSM7: 'GSM-7', UCS2: 'UCS-2' } as Record<string, string>,
  reportedAt: (at: string) => `The network reported it on ${momentOf(at)}.`,
  quoted: (text: string) => `“${isolated(text)}”`,
  button: (id: string) => `Its button has the id ${id}.`,
  link: (url: string) => `The link leads to ${url}.`,
  place: (latitude: number, longitude: number) => `The location is ${latitude}, ${longitude}.`,
  bySms: 'By SMS.',
  fallsBack: 'falls back to SMS',
  after: (ms: number) => `+${shortDuration(ms)}`,
  exactly: (at: string, ms: number) => (ms === 0 ? at : `${at}, ${duration(ms)} after it was accepted`),
  networkSaid: 'What the network said',
  results: { passed: 'passed', failed: 'holds the SMS back', 'not-required': 'not required' },
  rulesLabel: 'The rules of the SMS',
  webhook: {
    noResponse: 'no response',
    endpoint: (id: number) => `endpoint ${id}`,
    took: (ms: number) => shortDuration(ms),
    attempt: (attempt: number, at: string) => `Attempt ${attempt}, ${at}`,
    replay: 'Post again',
    replayOf: (type: string, endpoint: string) => `Post again: ${type} to ${endpoint}`,
    replayed: 'Queued',
    others: 'Other webhook calls',
    unknownType: 'an event',
  },
}
