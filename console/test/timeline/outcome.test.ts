import assert from 'node:assert/strict'
import { test } from 'node:test'
import { outcomeOf } from '../../src/timeline/outcome.ts'
import type { Message, TimelineItem } from '../../src/timeline/types.ts'
import { atMs, FALLEN_BACK, heldBack, item, message, time } from './cases.ts'

const failed = FALLEN_BACK.message
const expired = message({ status: 'EXPIRED', sentAt: time(0.1), expiredAt: time(60), expiresAt: time(60) })
const sms = (more: Partial<NonNullable<Message['smsFallback']>>) => ({ smsFallback: { status: 'WAITING' as const, segments: 1, ...more } })

type Case = { what: string; message: Message; items?: TimelineItem[]; now?: number; says: RegExp; tone: string }

const CASES: Case[] = [
  {
    what: 'a read message',
    message: message({ status: 'READ', sentAt: time(0.1), deliveredAt: time(1.2), readAt: time(3_725) }),
    says: /^The recipient read it after 1 hour 2 minutes\. It was delivered by RCS after 1\.2 seconds\.$/,
    tone: 'good',
  },
  {
    what: 'a delivered message',
    message: message({ status: 'DELIVERED', deliveredAt: time(1.2) }),
    says: /^The recipient got it by RCS after 1\.2 seconds\. No read receipt so far\.$/,
    tone: 'good',
  },
  {
    what: 'a delivered message that was scheduled',
    message: message({ status: 'DELIVERED', scheduledAt: time(3_600), deliveredAt: time(3_601.2) }),
    says: /^The recipient got it by RCS after 1\.2 seconds\./,
    tone: 'good',
  },
  {
    what: 'a scheduled message',
    message: message({ scheduledAt: time(3_600) }),
    now: 10,
    says: /^It is to be sent on 16 November.* It can be delivered until/,
    tone: 'wait',
  },
  {
    what: 'a scheduled message that is due',
    message: message({ scheduledAt: time(5) }),
    now: 10,
    says: /^It waits to be sent\./,
    tone: 'wait',
  },
  {
    what: 'a message that fell back to SMS',
    message: failed,
    items: FALLEN_BACK.items,
    says: /^The recipient got it by SMS after 5\.3 seconds\. The number has no RCS; the SMS of the request went out 2\.1 seconds later\.$/,
    tone: 'good',
  },
  {
    what: 'an expired message that fell back to SMS',
    message: { ...expired, ...sms({ status: 'DELIVERED', reason: 'RCS_EXPIRED', sentAt: time(61), deliveredAt: time(62) }) },
    says: /^The recipient got it by SMS after 1 minute 2 seconds\. It was not delivered before it expired on 16 November.*; the SMS .* 1 second later\.$/,
    tone: 'good',
  },
  {
    what: 'an SMS held back by an opt-out',
    ...heldBack('OPTED_OUT', { rule: 'optOut', result: 'failed' }),
    says: /^The recipient got nothing\. The number has no RCS\. The SMS was held back: the recipient has opted out\.$/,
    tone: 'bad',
  },
  {
    what: 'an SMS held back by a consent',
    ...heldBack('CONSENT', { rule: 'consents', result: 'failed', required: [1], given: [] }),
    says: /held back: the recipient has not given a required consent\.$/,
    tone: 'bad',
  },
  {
    what: 'an SMS held back by the quarantine',
    ...heldBack('QUARANTINE', { rule: 'quarantine', result: 'failed', hours: 24, lastSmsAt: time(-60) }),
    says: /held back: the recipient got another SMS shortly before\.$/,
    tone: 'bad',
  },
  {
    what: 'a failed SMS',
    message: { ...failed, ...sms({ status: 'FAILED', reason: 'UNDELIVERABLE' }) },
    says: /^The recipient got nothing\. The number has no RCS\. The SMS failed, too: the network could not deliver the SMS\.$/,
    tone: 'bad',
  },
  {
    what: 'an SMS whose outcome is unknown',
    message: { ...failed, ...sms({ status: 'FAILED', reason: 'OUTCOME_UNKNOWN' }) },
    says: /^It is not known whether the recipient got it\./,
    tone: 'warn',
  },
  {
    what: 'a failed message without an SMS',
    message: message({ status: 'FAILED', failedAt: time(1), failure: { reason: 'REJECTED', description: '' } }),
    says: /^The recipient got nothing\. The network refused the message\. The request has no SMS to fall back to\.$/,
    tone: 'bad',
  },
  {
    what: 'a cancelled message',
    message: message({ status: 'FAILED', failedAt: time(1), failure: { reason: 'CANCELLED', description: '' } }),
    says: /^It was cancelled before it was sent\.$/,
    tone: 'plain',
  },
  {
    what: 'a revoked message',
    message: expired,
    items: [item(60, 'expired'), item(60.1, 'revoked')],
    says: /^The recipient got nothing\. It was not delivered before it expired/,
    tone: 'bad',
  },
  {
    what: 'a message that was delivered late',
    message: { ...expired, ...sms({ status: 'NOT_NEEDED', reason: 'RCS_DELIVERED' }) },
    items: [item(60, 'expired'), item(61, 'delivered-late')],
    says: /^The recipient got it by RCS after all\. .* This status stays\.$/,
    tone: 'good',
  },
  {
    what: 'a failed test message',
    message: message({ status: 'FAILED', test: true, failedAt: time(1), failure: { reason: 'NOT_REACHABLE', description: '' } }),
    says: /^The recipient got nothing\. The number has no RCS\./,
    tone: 'bad',
  },
  {
    what: 'an SMS that is due later',
    message: { ...failed, ...sms({ status: 'SCHEDULED', dueAt: time(3_600) }) },
    now: 10,
    says: /^The recipient has nothing yet\. The number has no RCS\. The SMS is due on 16 November/,
    tone: 'wait',
  },
  {
    what: 'an SMS that waits for its turn',
    message: { ...failed, ...sms({ status: 'SCHEDULED', dueAt: time(5) }) },
    now: 10,
    says: /The SMS is due now\.$/,
    tone: 'wait',
  },
  {
    what: 'an SMS without a receipt so far',
    message: { ...failed, ...sms({ status: 'SENT', sentAt: time(3) }) },
    says: /^The recipient has nothing yet\. .* The SMS is with the network/,
    tone: 'wait',
  },
  {
    what: 'a message that waits for its turn',
    message: { ...message(), ...sms({}) },
    says: /^It waits to be sent\. It can be delivered until 18 November.*; if RCS fails, the SMS of the request goes out\.$/,
    tone: 'wait',
  },
  {
    what: 'a message whose attempts fail',
    message: message({ status: 'SENDING' }),
    items: [item(1, 'attempt-failed'), item(2, 'attempt-failed')],
    says: /^It is being sent\. The network did not accept it 2 times; Herald tries again\. It can be delivered until/,
    tone: 'warn',
  },
  {
    what: 'a message that is held back',
    message: message({ status: 'SENDING' }),
    items: [item(1, 'attempt-failed'), item(2, 'held-back')],
    says: /^It is held back\. .* up to two minutes/,
    tone: 'warn',
  },
  {
    what: 'a message that is with the network',
    message: message({ status: 'SENT', sentAt: time(1) }),
    says: /^The network has it, but has reported no delivery\. It can be delivered until .*; the request has no SMS to fall back to\.$/,
    tone: 'wait',
  },
]

for (const { what, message: given, items = [], now = 100, says, tone } of CASES) {
  test(`answers in one sentence what became of ${what}`, () => {
    const outcome = outcomeOf(given, items, atMs(now))
    assert.match(`${outcome.headline} ${outcome.more}`.trim(), says)
    assert.equal(outcome.tone, tone)
    assert.match(outcome.headline, /^[A-Z][^.]*(?:\.\d[^.]*)?\.$/, 'the headline is one sentence')
  })
}
