import type { Evidence } from './evidence.ts'
import { type Comparison, unequal } from './line.ts'
import { isLate, LATE, OF_CAMPAIGNS, type Shown, type Step, type Stored, TIMELESS } from './stored.ts'

// What a message and its SMS went through, by four who keep it: columns, timeline, log of events, and what the API shows.

const timeOf = ({ kind, at }: Step) => (TIMELESS.includes(kind) ? '' : ` at ${new Date(at).toISOString()}`)
const describe = (step: Step) => `${step.kind}${step.reason === null ? '' : ` (${step.reason})`}${timeOf(step)}`

/** Each step is everywhere, once, with the same time; and in a timeline only where that keeps it. */
export function judgeSteps(evidence: Evidence): Comparison {
  const { messages, log } = evidence
  const events = Map.groupBy(log, ({ subjectId }) => subjectId)
  const wrong = messages.flatMap((message) => {
    const listed = message.steps.filter(({ kind }) => message.campaignId !== null || !OF_CAMPAIGNS.includes(kind)).map(describe)
    const told = message.steps.filter(({ kind }) => !TIMELESS.includes(kind)).map(describe)
    const sides: [string, string[], string[]][] = [
      ['the timeline', message.timeline.filter(({ kind }) => kind !== LATE).map(describe), listed],
      ['the log of events', (events.get(message.id) ?? []).flatMap(stepTold).map(describe), told],
      ['the API', stepsShown(message.shown), shownOf(message.steps)],
    ]
    return [
      ...sides.flatMap(([side, its, ours]) =>
        unequal(its, ours).map(
          ({ what, counts: [theirs, own] }) =>
            `${message.id}: ${what} should be ${own} times in ${side}, by its columns, and is ${theirs} times`,
        ),
      ),
      ...impossible(message),
    ]
  })
  const steps = messages.reduce((sum, message) => sum + message.steps.length, 0)
  return {
    promise: 'columns against timelines, events and the API',
    figures: `${steps} steps of ${messages.length} messages, each held against all of them`,
    compared: steps,
    wrong,
  }
}

const STEP_OF: Record<string, string> = {
  'message.sent': 'sent',
  'message.delivered': 'delivered',
  'message.read': 'read',
  'message.failed': 'failed',
  'message.expired': 'expired',
  'sms.sent': 'sms-sent',
  'sms.delivered': 'sms-delivered',
  'sms.failed': 'sms-failed',
}

function stepTold({ kind, occurredAt, data }: Evidence['log'][number]): Step[] {
  const step = STEP_OF[kind]
  return step === undefined ? [] : [{ kind: step, at: occurredAt.getTime(), reason: JSON.parse(data).failure?.reason ?? null }]
}

/** Those of which the API shows a time, and that of an SMS that failed it does not. */
const SHOWN = ['sent', 'delivered', 'read', 'failed', 'expired', 'sms-sent', 'sms-delivered']

function shownOf(steps: Step[]): string[] {
  return steps.filter(({ kind }) => SHOWN.includes(kind)).map(describe)
}

function stepsShown(shown: Shown): string[] {
  const { smsFallback: sms, failure } = shown
  const times = [shown.sentAt, shown.deliveredAt, shown.readAt, shown.failedAt, shown.expiredAt, sms?.sentAt, sms?.deliveredAt]
  return times.flatMap((time, n) => {
    const kind = SHOWN[n] as string
    return time === undefined
      ? []
      : [describe({ kind, at: Date.parse(time), reason: kind === 'failed' ? (failure?.reason ?? null) : null })]
  })
}

/** A status that its steps do not lead to; what happened after it had run out; what is late and is not. */
function impossible(message: Stored): string[] {
  const { id, shown, steps, timeline, expiresAt } = message
  const at = new Map(steps.map((step) => [step.kind, step.at]))
  const last = (['read', 'delivered', 'failed', 'expired', 'sent'] as const).find((kind) => at.has(kind)) ?? 'accepted'
  const afterwards = ['sent', 'delivered', 'failed'].filter((kind) => (at.get(kind) ?? 0) > expiresAt)
  const lateTwice = timeline.filter(({ kind }) => kind === LATE).length > 1
  const mayBeLate = at.has('failed') || at.has('expired')
  return [
    ...(shown.status === last.toUpperCase() ? [] : [`${id} is ${shown.status}, and its last step was ${last}`]),
    ...afterwards.map((kind) => `${id} was ${kind} after it had expired`),
    ...(lateTwice ? [`${id} arrived late more than once`] : []),
    ...(isLate(message) && !mayBeLate ? [`${id} arrived late, and had not ended here`] : []),
  ]
}
