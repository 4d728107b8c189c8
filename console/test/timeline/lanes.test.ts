import assert from 'node:assert/strict'
import { test } from 'node:test'
import { axisOf } from '../../src/timeline/axis.ts'
import { lanesOf } from '../../src/timeline/lanes.ts'
import type { Message, TimelineItem } from '../../src/timeline/types.ts'
import { atMs, FALLEN_BACK, heldBack, item, message, time } from './cases.ts'

/** The spans as text: lane, seconds, tone, label. */
function spansOf(given: Message, items: TimelineItem[], now = 100): string[] {
  const seconds = (ms: number) => (ms - atMs(0)) / 1_000
  return lanesOf(given, items, atMs(now)).spans.map(
    ({ lane, fromMs, toMs, tone, label }) => `${lane} ${seconds(fromMs)}–${seconds(toMs)} ${tone}${label ? ` ${label}` : ''}`,
  )
}

test('shows the failure, the wait for the SMS, the SMS, and the retried webhook', () => {
  assert.deepEqual(spansOf(FALLEN_BACK.message, FALLEN_BACK.items), [
    'sms 0.7–2.8 wait waits 2.1 s',
    'webhooks 1.1–6.1 wait tried again after 5 s',
    'rcs 0–0.7 bad being sent',
    'sms 2.8–5.3 good with the network',
    'webhooks 0.9–1.1 bad',
    'webhooks 6.1–6.2 good',
  ])
  assert.deepEqual(lanesOf(FALLEN_BACK.message, FALLEN_BACK.items, 0).lanes, ['rcs', 'sms', 'webhooks'])
})

test('shows a message that was delivered and read', () => {
  const read = message({ status: 'READ', sentAt: time(0.1), deliveredAt: time(1), readAt: time(4) })
  const items = [item(0, 'accepted'), item(0.1, 'sent'), item(1, 'delivered'), item(4, 'read')]
  assert.deepEqual(spansOf(read, items), ['rcs 0–0.1 wait being sent', 'rcs 0.1–1 good with the network'])
  assert.deepEqual(lanesOf(read, items, 0).lanes, ['rcs', 'recipient'])
})

test('joins the parts if the receipt came before the response to the send', () => {
  const read = message({ status: 'DELIVERED', sentAt: time(0.5), deliveredAt: time(0.5) })
  assert.deepEqual(spansOf(read, [item(0, 'accepted'), item(0.5, 'sent'), item(0.5, 'delivered')]), ['rcs 0–0.5 good being sent'])
})

test('lets a message that still waits last until now', () => {
  assert.deepEqual(spansOf(message({ status: 'SENT' }), [item(0, 'accepted'), item(1, 'sent')], 7), [
    'rcs 0–1 wait being sent',
    'rcs 1–7 wait with the network',
  ])
  assert.deepEqual(spansOf(message(), [item(0, 'accepted')], 7), ['rcs 0–7 wait being sent'])
})

test('ends the wait of an SMS that was held back', () => {
  const { message: skipped, items } = heldBack('OPTED_OUT', { rule: 'optOut', result: 'failed' })
  assert.deepEqual(spansOf(skipped, items).slice(0, 1), ['sms 0.7–2.8 wait waits 2.1 s'])
})

test('does not take a replay for a retry', () => {
  const call = (seconds: number, attempt: number) =>
    item(seconds, 'webhook-attempt', { data: { eventId: 'e', type: 'message.sent', endpointId: 1, attempt, status: 200, durationMs: 100 } })
  const spans = spansOf(message(), [item(0, 'accepted'), call(1, 1), call(9, 2)], 10)
  assert.deepEqual(spans.slice(1), ['webhooks 1–1.1 good', 'webhooks 9–9.1 good'])
})

test('has no label where a dot or another span would cover it', () => {
  const retried = [item(0, 'accepted'), item(0.1, 'attempt-failed'), item(1, 'sent'), item(1, 'delivered')]
  assert.deepEqual(spansOf(message({ status: 'DELIVERED' }), retried), ['rcs 0–1 good'])
  const call = (seconds: number, eventId: string, status: number) =>
    item(seconds, 'webhook-attempt', { data: { eventId, type: 'x', endpointId: 1, attempt: 1, status, durationMs: 100 } })
  const spans = spansOf(message(), [item(0, 'accepted'), call(1, 'a', 500), call(3, 'b', 200), call(9, 'a', 200)], 10)
  assert.ok(spans.includes('webhooks 1.1–9 wait'), spans.join())
})

test('has a linear axis with round marks', () => {
  const axis = axisOf([0, 2_000, 10_000])
  assert.equal(axis.x(0), 0)
  assert.ok(Math.abs(axis.x(2_000) / axis.x(10_000) - 0.2) < 1e-9)
  assert.ok(axis.x(10_000) > 0.95 && axis.x(10_000) <= 1)
  assert.deepEqual(
    axis.marks.map(({ sinceStartMs }) => sinceStartMs),
    [0, 2_000, 4_000, 6_000, 8_000, 10_000],
  )
  assert.deepEqual(axis.cuts, [])
})

test('cuts a gap that would leave no room for anything else', () => {
  const hours = 3 * 3_600_000
  const axis = axisOf([0, 100, 1_200, hours])
  assert.deepEqual(axis.cuts, [{ fromMs: 1_200, toMs: hours }])
  assert.ok(axis.x(1_200) > 0.8, 'the first second has most of the room')
  assert.ok(axis.x(hours) > axis.x(1_200) && axis.x(hours) <= 1)
  assert.equal(axis.marks.at(-1)?.sinceStartMs, hours)
})

test('shows a message with a single time', () => {
  const axis = axisOf([5])
  assert.deepEqual([axis.x(5), axis.marks.length], [0, 1])
})

test('keeps times in order on the axis, whatever they are', () => {
  let seed = 7
  const random = () => {
    seed = (seed * 16_807) % 2_147_483_647
    return seed / 2_147_483_647
  }
  for (let n = 0; n < 500; n += 1) {
    const times = Array.from({ length: 1 + Math.floor(random() * 12) }, () => Math.round(10 ** (random() * 8)))
    const axis = axisOf(times)
    const places = times.sort((a, b) => a - b).map(axis.x)
    assert.ok(
      places.every((x, index) => x >= (places[index - 1] ?? 0) && x <= 1),
      JSON.stringify(times),
    )
    assert.ok(axis.marks.length <= 12, JSON.stringify(times))
  }
})
