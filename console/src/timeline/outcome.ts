import type { Tone } from '../kit/tone.ts'
import { failures, fallback, noSms, outcome as say, smsFailures, steps, until } from '../words/en-timeline.ts'
import type { Message, SmsFallback, TimelineItem } from './types.ts'

/** What became of a message: one sentence that answers, and what explains it. */
export type Outcome = { headline: string; more: string; tone: Tone }

const ms = (time: string | undefined) => (time === undefined ? Number.NaN : Date.parse(time))

/** When Herald could first send it. */
const startOf = ({ acceptedAt, scheduledAt = acceptedAt }: Message) => ms(scheduledAt)

/** Clauses as one sentence. An unknown one is left out. */
export function sentence(...clauses: (string | undefined)[]): string {
  const text = clauses.filter(Boolean).join('; ')
  return text === '' ? '' : `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`
}

const joined = (...sentences: (string | undefined)[]) => sentences.filter(Boolean).join(' ')

/** A clause about a reason. A newer server may know more reasons. */
export const shortOf = (reasons: Record<string, string>, reason: string | undefined) =>
  reason === undefined ? undefined : (reasons[reason] ?? reason)

export function outcomeOf(message: Message, items: TimelineItem[], nowMs: number): Outcome {
  const startMs = startOf(message)
  switch (message.status) {
    case 'READ': {
      const deliveredMs = ms(message.deliveredAt) - startMs
      const more = Number.isNaN(deliveredMs) ? '' : say.deliveredAfter(deliveredMs)
      return { headline: say.read(ms(message.readAt) - startMs), more, tone: 'good' }
    }
    case 'DELIVERED':
      return { headline: say.gotIt('RCS', ms(message.deliveredAt) - startMs), more: say.notRead, tone: 'good' }
    case 'FAILED':
    case 'EXPIRED':
      return ended(message, items, nowMs)
    default:
      return waiting(message, items, nowMs)
  }
}

/** Why RCS did not reach the recipient, as a clause. */
function causeOf({ status, failure, expiredAt, expiresAt }: Message): string | undefined {
  return status === 'EXPIRED' ? say.expired(expiredAt ?? expiresAt) : shortOf(failures, failure?.reason)
}

function ended(message: Message, items: TimelineItem[], nowMs: number): Outcome {
  const { smsFallback: sms, failure, status } = message
  const cause = causeOf(message)
  if (sms?.status === 'DELIVERED') {
    const waitedMs = ms(sms.sentAt) - ms(message.failedAt ?? message.expiredAt)
    const headline = say.gotIt('SMS', ms(sms.deliveredAt) - startOf(message))
    return { headline, more: sentence(cause, say.wentOut(Math.max(0, waitedMs))), tone: 'good' }
  }
  const isLate = items.some(({ step }) => step === 'delivered-late' || step === 'read-late')
  if (isLate || sms?.status === 'NOT_NEEDED') return { headline: say.gotItLate, more: say.lateStatus(status), tone: 'good' }
  if (failure?.reason === 'CANCELLED') return { headline: say.cancelled, more: '', tone: 'plain' }
  return sms === undefined
    ? { headline: say.nothing, more: joined(sentence(cause), sentence(noSms)), tone: 'bad' }
    : withoutDelivery(sms, cause, nowMs)
}

/** The outcome if neither the RCS message nor its SMS was delivered, as far as the networks have reported. */
function withoutDelivery(sms: SmsFallback, cause: string | undefined, nowMs: number): Outcome {
  const outcome = (headline: string, more: string, tone: Tone) => ({ headline, more: joined(sentence(cause), sentence(more)), tone })
  switch (sms.status) {
    case 'SENT':
      return outcome(say.nothingYet, say.smsSent, 'wait')
    case 'SKIPPED':
      return outcome(say.nothing, say.smsHeldBack(shortOf(fallback, sms.reason) ?? ''), 'bad')
    case 'FAILED': {
      const isUnknown = sms.reason === 'OUTCOME_UNKNOWN'
      return outcome(
        isUnknown ? say.unknown : say.nothing,
        say.smsFailed(shortOf(smsFailures, sms.reason) ?? ''),
        isUnknown ? 'warn' : 'bad',
      )
    }
    default:
      return outcome(say.nothingYet, sms.dueAt !== undefined && ms(sms.dueAt) > nowMs ? say.smsDue(sms.dueAt) : say.smsDueNow, 'wait')
  }
}

/** What a message waits for, and until when. */
function waiting({ status, scheduledAt, expiresAt, smsFallback }: Message, items: TimelineItem[], nowMs: number): Outcome {
  const then = sentence(until(expiresAt), smsFallback === undefined ? noSms : say.thenSms)
  if (status === 'SENT') return { headline: say.sent, more: then, tone: 'wait' }
  if (status === 'ACCEPTED' && scheduledAt !== undefined && ms(scheduledAt) > nowMs) {
    return { headline: say.scheduled(scheduledAt), more: then, tone: 'wait' }
  }
  const attempts = items.filter(({ step }) => step === 'attempt-failed' || step === 'held-back')
  if (attempts.at(-1)?.step === 'held-back') return { headline: say.heldBack, more: steps['held-back'][1], tone: 'warn' }
  const failed = attempts.filter(({ step }) => step === 'attempt-failed').length
  return {
    headline: status === 'SENDING' ? say.sending : say.accepted,
    more: joined(failed > 0 ? say.attempts(failed) : undefined, then),
    tone: failed > 0 ? 'warn' : 'wait',
  }
}
