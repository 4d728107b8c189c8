import type { Step, TimelineItem, WebhookAttempt } from './types.ts'

/** The attempts to post one event to one endpoint. */
export type WebhookCall = { eventId: string | undefined; type: string | undefined; endpointId: number; attempts: Attempt[] }
export type Attempt = { atMs: number; attempt: number; status: number | undefined; error: string | undefined; durationMs: number }

export const isAccepted = ({ status }: { status?: number | undefined }) => status !== undefined && status >= 200 && status < 300

/** The steps that emit each type of event. Other types belong to no step. */
const STEPS_OF: Record<string, Step[]> = {
  'message.sent': ['sent'],
  'message.delivered': ['delivered'],
  'message.read': ['read'],
  'message.failed': ['failed'],
  'message.expired': ['expired'],
  'message.clicked': ['clicked'],
  'message.replied': ['tapped', 'wrote', 'shared-location', 'sent-file'],
  'sms.sent': ['sms-sent'],
  'sms.delivered': ['sms-delivered'],
  'sms.failed': ['sms-failed'],
  'recipient.opted_out': ['opted-out'],
}

/** The calls of webhook endpoints, in the order of their first attempts. */
export function webhookCallsOf(items: TimelineItem[]): WebhookCall[] {
  const calls = new Map<string, WebhookCall>()
  for (const { step, occurredAt, data } of items) {
    if (step !== 'webhook-attempt') continue
    const { eventId, type, endpointId, attempt, status, error, durationMs } = data as WebhookAttempt
    // Without an id, the event is no longer in the log.
    const key = `${endpointId} ${eventId ?? occurredAt}`
    const call = calls.get(key) ?? { eventId, type, endpointId, attempts: [] }
    call.attempts.push({ atMs: Date.parse(occurredAt), attempt, status, error, durationMs })
    calls.set(key, call)
  }
  return [...calls.values()]
}

/** Which step each call belongs to, by the step's place in `items`. Calls without a step have -1. */
export function assignCalls(items: TimelineItem[], calls: WebhookCall[]): Map<number, WebhookCall[]> {
  const assigned = new Map<number, WebhookCall[]>()
  const groups = Map.groupBy(calls, ({ type, endpointId }) => `${endpointId} ${type}`)
  for (const [first, ...more] of groups.values()) {
    if (first === undefined) continue
    const steps = items.flatMap(({ step }, index) => (STEPS_OF[first.type ?? '']?.includes(step) ? [index] : []))
    for (const [n, call] of [first, ...more].entries()) {
      const index = stepOf(items, steps, call, n, more.length + 1)
      assigned.set(index, [...(assigned.get(index) ?? []), call])
    }
  }
  return assigned
}

/** If every step has a call, they are in the same order. Otherwise a call belongs to the last step before it. */
function stepOf(items: TimelineItem[], steps: number[], { attempts }: WebhookCall, n: number, calls: number): number {
  if (steps.length === calls) return steps[n] as number
  const firstMs = attempts[0]?.atMs ?? 0
  return steps.findLast((index) => Date.parse(items[index]?.occurredAt ?? '') <= firstMs) ?? steps[0] ?? -1
}
