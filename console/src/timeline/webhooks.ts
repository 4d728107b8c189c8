import { eventOf } from './looks.ts'
import type { TimelineItem, WebhookAttempt } from './types.ts'

/** The attempts to post one event to one endpoint. */
export type WebhookCall = { eventId: string | undefined; type: string | undefined; endpointId: number; attempts: Attempt[] }
export type Attempt = { atMs: number; attempt: number; status: number | undefined; error: string | undefined; durationMs: number }

export const isAccepted = ({ status }: { status?: number | undefined }) => status !== undefined && status >= 200 && status < 300

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
    const steps = items.flatMap(({ step }, index) => (eventOf(step) === first.type ? [index] : []))
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
