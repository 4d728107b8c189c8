import type { Tone } from '../kit/tone.ts'
import { spans as say } from '../words/en-timeline.ts'
import { type Axis, axisOf } from './axis.ts'
import { type Lane, LOOKS } from './looks.ts'
import type { Message, Step, TimelineItem } from './types.ts'
import { isAccepted, type WebhookCall, webhookCallsOf } from './webhooks.ts'

/** A time in which a lane was busy or waited. */
export type Span = { lane: Lane; fromMs: number; toMs: number; tone: Tone; label?: string }
export type Dot = { lane: Lane; atMs: number; tone: Tone }
export type Lanes = { lanes: Lane[]; spans: Span[]; dots: Dot[]; axis: Axis }

const LANES: Lane[] = ['rcs', 'sms', 'recipient', 'webhooks']
/** Of two dots in the same place, the more important one is on top. */
const IMPORTANCE: Tone[] = ['plain', 'wait', 'info', 'warn', 'good', 'bad']

/** A dot in this part of a span does not cover the label, which is at its beginning. */
const NEAR_END = 0.3

/** A dot or another span over a label would make it illegible. A span that waits is below the others. */
function withLegibleLabels(spans: Span[], dots: Dot[]): Span[] {
  const isCovered = (span: Span) =>
    spans.some((other) => other !== span && other.lane === span.lane && other.fromMs < span.toMs && other.toMs > span.fromMs) ||
    dots.some(({ lane, atMs }) => lane === span.lane && atMs > span.fromMs && atMs < span.toMs - NEAR_END * (span.toMs - span.fromMs))
  return spans
    .map(({ label, ...span }, index) => (label === undefined || isCovered(spans[index] as Span) ? span : { ...span, label }))
    .sort((a, b) => Number(b.tone === 'wait') - Number(a.tone === 'wait'))
}

/** All of a message on one axis of time: what was busy when, and what waited. */
export function lanesOf(message: Message, items: TimelineItem[], nowMs: number): Lanes {
  const spans = [...rcsSpans(message, items, nowMs), ...smsSpans(message, items, nowMs), ...webhookCallsOf(items).flatMap(webhookSpans)]
  const dots = items.flatMap(({ step, occurredAt }): Dot[] => {
    const [lane, tone] = LOOKS[step]
    return lane === 'webhooks' ? [] : [{ lane, tone, atMs: Date.parse(occurredAt) }]
  })
  const times = [...spans.flatMap(({ fromMs, toMs }) => [fromMs, toMs]), ...dots.map(({ atMs }) => atMs)]
  dots.sort((a, b) => IMPORTANCE.indexOf(a.tone) - IMPORTANCE.indexOf(b.tone))
  const isUsed = (lane: Lane) => [...spans, ...dots].some((each) => each.lane === lane)
  return { lanes: LANES.filter(isUsed), spans: withLegibleLabels(spans, dots), dots, axis: axisOf(times) }
}

const timeOf = (items: TimelineItem[], ...steps: Step[]): number | undefined => {
  const item = items.find(({ step }) => steps.includes(step))
  return item === undefined ? undefined : Date.parse(item.occurredAt)
}

/** From the acceptance to the network, and from the network to the phone. An unfinished part lasts until now. */
function rcsSpans({ acceptedAt, status }: Message, items: TimelineItem[], nowMs: number): Span[] {
  const acceptedMs = Date.parse(acceptedAt)
  const sentMs = timeOf(items, 'sent')
  const endMs = timeOf(items, 'delivered', 'failed', 'expired') ?? timeOf(items, 'read')
  const isGood = status === 'DELIVERED' || status === 'READ'
  const tone = endMs === undefined ? 'wait' : isGood ? 'good' : 'bad'
  const lastMs = endMs ?? Math.max(nowMs, sentMs ?? acceptedMs)
  // A receipt can come before the response to the send.
  if (sentMs === undefined || sentMs >= lastMs) return [{ lane: 'rcs', fromMs: acceptedMs, toMs: lastMs, tone, label: say.sending }]
  return [
    { lane: 'rcs', fromMs: acceptedMs, toMs: sentMs, tone: 'wait', label: say.sending },
    { lane: 'rcs', fromMs: sentMs, toMs: lastMs, tone, label: say.withNetwork },
  ]
}

function smsSpans({ smsFallback }: Message, items: TimelineItem[], nowMs: number): Span[] {
  const scheduledMs = timeOf(items, 'sms-scheduled')
  if (scheduledMs === undefined) return []
  const sentMs = timeOf(items, 'sms-sent')
  const endMs = timeOf(items, 'sms-delivered', 'sms-failed', 'sms-skipped', 'sms-not-needed')
  const waitedUntilMs = sentMs ?? endMs ?? Math.max(nowMs, scheduledMs)
  const waiting: Span = {
    lane: 'sms',
    fromMs: scheduledMs,
    toMs: waitedUntilMs,
    tone: 'wait',
    label: say.waits(waitedUntilMs - scheduledMs),
  }
  if (sentMs === undefined) return [waiting]
  const tone = endMs === undefined ? 'wait' : smsFallback?.status === 'FAILED' ? 'bad' : 'good'
  return [waiting, { lane: 'sms', fromMs: sentMs, toMs: endMs ?? Math.max(nowMs, sentMs), tone, label: say.withNetwork }]
}

/** Each attempt, and the time until the next one. */
function webhookSpans({ attempts }: WebhookCall): Span[] {
  return attempts.flatMap((attempt, index): Span[] => {
    const endMs = attempt.atMs + attempt.durationMs
    const next = attempts[index + 1]
    const tone = isAccepted(attempt) ? 'good' : 'bad'
    const call: Span = { lane: 'webhooks', fromMs: attempt.atMs, toMs: endMs, tone }
    // After an accepted attempt, the next one is a replay, which nothing waited for.
    if (next === undefined || isAccepted(attempt) || next.atMs <= endMs) return [call]
    return [call, { lane: 'webhooks', fromMs: endMs, toMs: next.atMs, tone: 'wait', label: say.retried(next.atMs - endMs) }]
  })
}
