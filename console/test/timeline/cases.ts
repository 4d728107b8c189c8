import type { Message, Step, TimelineItem } from '../../src/timeline/types.ts'

// Messages and timelines as the API returns them. Times are seconds after the acceptance.

const START_MS = Date.UTC(2026, 10, 16, 9, 30)

export const atMs = (seconds: number) => START_MS + Math.round(seconds * 1_000)
export const time = (seconds: number) => new Date(atMs(seconds)).toISOString()

export const item = (seconds: number, step: Step, more: Partial<TimelineItem> = {}): TimelineItem => ({
  occurredAt: time(seconds),
  step,
  reason: null,
  description: 'Herald’s own words.',
  data: {},
  ...more,
})

export const message = (more: Partial<Message> = {}): Message => ({
  messageId: '0198c0de-0000-7000-8000-000000000001',
  agentId: 'greenhouse',
  recipient: '+48500100200',
  status: 'ACCEPTED',
  basic: false,
  test: false,
  acceptedAt: time(0),
  expiresAt: time(48 * 3_600),
  ...more,
})

const SMS = { segments: 1, encoding: 'GSM7', sender: 'Shop' }
const NOT_FOUND = '404 NOT_FOUND The phone number is not reachable by RCS.'
const failure = { reason: 'NOT_REACHABLE', description: `The number can’t be reached by RCS. The network said: ${NOT_FOUND}` }

export const RULES = [
  { rule: 'window', result: 'passed', dueAt: time(2.7) },
  { rule: 'block', result: 'passed' },
  { rule: 'optOut', result: 'passed' },
  { rule: 'campaign', result: 'not-required' },
  { rule: 'consents', result: 'passed', required: [1, 12], given: [1, 2, 12] },
  { rule: 'quarantine', result: 'passed', hours: 24 },
]

/** A failed RCS message whose SMS was delivered, and whose webhook failed once. */
export const FALLEN_BACK = {
  message: message({
    status: 'FAILED',
    failedAt: time(0.7),
    failure,
    smsFallback: { status: 'DELIVERED', segments: 1, reason: 'RCS_FAILED', dueAt: time(2.7), sentAt: time(2.8), deliveredAt: time(5.3) },
  }),
  items: [
    item(0, 'accepted'),
    item(0.7, 'failed', failure),
    item(0.7, 'sms-scheduled', { reason: 'RCS_FAILED', data: { ...SMS, dueAt: time(2.7) } }),
    item(0.9, 'webhook-attempt', {
      data: { eventId: 'e1', type: 'message.failed', endpointId: 1, attempt: 1, status: 500, durationMs: 200 },
    }),
    item(2.75, 'sms-checked', { data: { rules: RULES } }),
    item(2.8, 'sms-sent', { reason: 'RCS_FAILED', data: SMS }),
    item(5.3, 'sms-delivered', { reason: 'RCS_FAILED', data: SMS }),
    item(6.1, 'webhook-attempt', {
      data: { eventId: 'e1', type: 'message.failed', endpointId: 1, attempt: 2, status: 200, durationMs: 100 },
    }),
  ],
}

/** The same message, if a rule holds the SMS back. */
export function heldBack(reason: string, rule: Record<string, unknown>) {
  const rules = RULES.map((each) => (each.rule === rule.rule ? rule : each))
  return {
    message: { ...FALLEN_BACK.message, smsFallback: { status: 'SKIPPED' as const, segments: 1, reason, dueAt: time(2.7) } },
    items: [...FALLEN_BACK.items.slice(0, 3), item(2.75, 'sms-checked', { reason, data: { rules } }), item(2.8, 'sms-skipped', { reason })],
  }
}
