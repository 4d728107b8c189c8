import type { History } from '../history/history.ts'
import { isLate, LATE, OF_CAMPAIGNS, type Shown, type Step, type StoredMessage, TIMELESS, WITH_COLUMN } from '../history/messages.ts'
import { type Check, unequal } from './result.ts'

// The steps of a message and its SMS, as four places have them: columns, timeline, log of events, and the API.

const timeOf = ({ kind, at }: Step) => (TIMELESS.includes(kind) ? '' : ` at ${new Date(at).toISOString()}`)
const describe = (step: Step) => `${step.kind}${step.reason === null ? '' : ` (${step.reason})`}${timeOf(step)}`

/** Each place has each step once, with the same time. */
export const checkSteps: Check = ({ messages, log }) => {
  const events = Map.groupBy(log, ({ subjectId }) => subjectId)
  const wrong = messages.flatMap((message) => {
    const listed = message.steps.filter(({ kind }) => message.campaignId !== null || !OF_CAMPAIGNS.includes(kind)).map(describe)
    const emitted = message.steps.filter(({ kind }) => !TIMELESS.includes(kind)).map(describe)
    const shown = message.steps.filter(({ kind }) => SHOWN.includes(kind)).map(describe)
    const places: [string, string[], string[]][] = [
      ['the timeline', message.timeline.filter(({ kind }) => kind !== LATE).map(describe), listed],
      ['the log of events', (events.get(message.id) ?? []).flatMap(stepOfEvent).map(describe), emitted],
      ['the API', stepsShown(message.shown), shown],
    ]
    return [
      ...places.flatMap(([place, its, ours]) =>
        unequal(its, ours).map(
          ({ what, counts: [theirs, own] }) => `${message.id}: ${what} is ${own} times in its columns, and ${theirs} times in ${place}`,
        ),
      ),
      ...impossible(message),
    ]
  })
  return { compared: messages.reduce((sum, message) => sum + message.steps.length, 0), wrong }
}

/** `message.sent` is the step `sent`, `sms.sent` the step `sms-sent`. */
function stepOfEvent({ kind, occurredAt, data }: History['log'][number]): Step[] {
  const step = kind.replace('message.', '').replace('.', '-')
  return WITH_COLUMN.includes(step) ? [{ kind: step, at: occurredAt.getTime(), reason: JSON.parse(data).failure?.reason ?? null }] : []
}

/** The API shows a time for these; not for an SMS that failed. */
const SHOWN = ['sent', 'delivered', 'read', 'failed', 'expired', 'sms-sent', 'sms-delivered']

function stepsShown(shown: Shown): string[] {
  const { smsFallback: sms, failure } = shown
  const times = [shown.sentAt, shown.deliveredAt, shown.readAt, shown.failedAt, shown.expiredAt, sms?.sentAt, sms?.deliveredAt]
  return times.flatMap((time, n) => {
    const kind = SHOWN[n] as string
    const reason = kind === 'failed' ? (failure?.reason ?? null) : null
    return time === undefined ? [] : [describe({ kind, at: Date.parse(time), reason })]
  })
}

/** A status that is not that of the last step, a step after the expiry, and a late arrival that can't be one. */
function impossible(message: StoredMessage): string[] {
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
    ...(isLate(message) && !mayBeLate ? [`${id} arrived late, and had no final status before`] : []),
  ]
}
