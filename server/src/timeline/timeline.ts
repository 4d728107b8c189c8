import type { Executor } from '../db/pool.ts'
import { quoteIn } from '../delivery/failures.ts'
import { placeKey, readEventsAt } from '../events/pages.ts'
import { type Message, readMessage } from '../messages/messages.ts'
import type { SmsPlan } from '../messages/sms-fallback.ts'
import { present } from '../present.ts'
import { composeText, encodingFor } from '../sms/compose.ts'
import { describeSms, orderOf, STEPS, type Step } from './steps.ts'

/** One step of a message. `occurredAt` of a receipt is the network's time. */
export type TimelineItem = { occurredAt: Date; step: Step; reason: string | null; description: string; data: Record<string, unknown> }

/** A recipient can tap any number of times, and an endpoint can fail for days. The timeline shows the first of each. */
const MAX_ACTIONS = 1_000
const MAX_ATTEMPTS = 1_000

/** Everything that happened to a message, oldest first. */
export async function readTimeline(db: Executor, accountId: number, messageId: string): Promise<TimelineItem[]> {
  const message = await readMessage(db, accountId, messageId)
  const id = message.messageId
  const noted = await readNotes(db, message)
  const items = [
    ...changesOf(message),
    ...noted,
    ...needlessSms(message, noted),
    ...(await readActions(db, accountId, id)),
    ...(await readWebhookAttempts(db, accountId, id)),
  ]
  return items.sort((a, b) => a.occurredAt.getTime() - b.occurredAt.getTime() || orderOf(a.step) - orderOf(b.step))
}

const item = (step: Step, occurredAt: Date, more: Partial<TimelineItem> = {}): TimelineItem => ({
  occurredAt,
  step,
  reason: null,
  description: STEPS[step],
  data: {},
  ...more,
})

/** The steps that are columns of the message. */
function changesOf({ acceptedAt, scheduledAt, sentAt, deliveredAt, readAt, failedAt, expiredAt, failure }: Message): TimelineItem[] {
  const changes: [Step, Date | undefined][] = [
    ['accepted', acceptedAt],
    ['sent', sentAt],
    ['delivered', deliveredAt],
    ['read', readAt],
    ['failed', failedAt],
    ['expired', expiredAt],
  ]
  const failed = failure && { ...failure, data: responseIn(failure.description) }
  const more: Partial<Record<Step, Partial<TimelineItem>>> = {
    ...(scheduledAt && { accepted: { data: { scheduledAt } } }),
    ...(failed && { failed }),
  }
  return changes.flatMap(([step, at]) => (at === undefined ? [] : [item(step, at, more[step])]))
}

/** The network's response to the last attempt, or the text of its report. */
function responseIn(description: string): { response?: string } {
  const response = quoteIn(description)
  return response === undefined ? {} : { response }
}

type Note = { step: Step; occurredAt: Date; recordedAt: Date; reason: string | null; detail: string | null }
type StoredSms = { plan: SmsPlan; segments: number; dueAt: Date | null; failure: string | null }

/** These are columns of the message, or actions of the recipient. */
const ELSEWHERE = ['sent', 'delivered', 'read', 'failed', 'expired', 'clicked', 'replied', 'opted-out']

async function readNotes(db: Executor, message: Message): Promise<TimelineItem[]> {
  const { rows: notes } = await db.query<Note>(
    `select kind as step, occurred_at as "occurredAt", recorded_at as "recordedAt", reason, detail from message_events
     where message_id = $1 and kind <> all ($2::text[]) order by occurred_at, recorded_at`,
    [message.messageId, ELSEWHERE],
  )
  const { rows: sms } = await db.query<StoredSms>(
    `select plan, segments, due_at as "dueAt", detail as failure from sms_fallbacks where message_id = $1`,
    [message.messageId],
  )
  let attempts = 0
  return notes.map((note) => {
    if (note.step === 'attempt-failed') attempts += 1
    return noteOf(message, note, sms[0], attempts)
  })
}

function noteOf({ status, expiresAt }: Message, note: Note, sms: StoredSms | undefined, attempt: number): TimelineItem {
  const { step, occurredAt, recordedAt, reason, detail } = note
  const response = detail === null || detail === '' ? {} : { response: detail }
  switch (step) {
    case 'attempt-failed':
      return item(step, occurredAt, { data: { attempt, ...response } })
    case 'delivered-late':
    case 'read-late': {
      const isInTime = status === 'EXPIRED' && occurredAt < expiresAt && recordedAt >= expiresAt
      const before = 'It happened before the message expired, but the network reported it afterwards: the message stays EXPIRED.'
      return item(step, occurredAt, { data: { reportedAt: recordedAt }, ...(isInTime && { description: `${STEPS[step]} ${before}` }) })
    }
    case 'sms-checked':
      return item(step, occurredAt, { reason, description: describeSms(step, reason), data: { rules: JSON.parse(detail ?? '[]') } })
    case 'sms-scheduled':
    case 'sms-sent':
    case 'sms-delivered':
    case 'sms-failed':
      return item(step, occurredAt, {
        reason,
        description: step === 'sms-failed' && sms?.failure ? sms.failure : describeSms(step, reason),
        data: sms === undefined ? {} : { ...smsData(step, sms), ...(step === 'sms-failed' && responseIn(sms.failure ?? '')) },
      })
    default:
      return item(step, occurredAt, { reason, description: describeSms(step, reason), data: response })
  }
}

function smsData(step: Step, { plan, segments, dueAt }: StoredSms): Record<string, unknown> {
  const encoding = encodingFor(
    plan.mode,
    composeText(plan, () => ''),
  )
  return { segments, encoding, sender: plan.sender, ...(step === 'sms-scheduled' && dueAt !== null && { dueAt }) }
}

/** An SMS that was still waiting when the RCS message was delivered, perhaps late, has no row of its own. */
function needlessSms({ smsFallback, deliveredAt }: Message, noted: TimelineItem[]): TimelineItem[] {
  const isNoted = noted.some(({ step }) => step === 'sms-not-needed')
  const since = deliveredAt ?? noted.find(({ step }) => step === 'delivered-late' || step === 'read-late')?.occurredAt
  if (smsFallback?.status !== 'NOT_NEEDED' || isNoted || since === undefined) return []
  const reason = 'RCS_DELIVERED'
  return [item('sms-not-needed', since, { reason, description: describeSms('sms-not-needed', reason) })]
}

type Action = { step: Step; occurredAt: Date } & Record<string, unknown>

async function readActions(db: Executor, accountId: number, messageId: string): Promise<TimelineItem[]> {
  const { rows } = await db.query<Action>(
    `select kind as step, occurred_at as "occurredAt", channel, button_id as "buttonId", text, payload, url, latitude, longitude
     from recipient_actions where message_id = $1 and account_id = $2 order by id limit $3`,
    [messageId, accountId, MAX_ACTIONS],
  )
  return rows.map(({ step, occurredAt, ...data }) => item(step, occurredAt, { data: present(data) }))
}

type WebhookAttempt = {
  position: number
  endpointId: number
  attempt: number
  attemptedAt: Date
  status: number | null
  error: string | null
  durationMs: number
}

async function readWebhookAttempts(db: Executor, accountId: number, messageId: string): Promise<TimelineItem[]> {
  const { rows } = await db.query<WebhookAttempt>(
    `select position, endpoint_id as "endpointId", attempt, attempted_at as "attemptedAt", status, error, duration_ms as "durationMs"
     from webhook_attempts where subject_id = $1 and account_id = $2 order by attempted_at, position limit $3`,
    [messageId, accountId, MAX_ATTEMPTS],
  )
  if (rows.length === 0) return []
  const events = await readEventsAt(
    db,
    rows.map(({ position }) => ({ accountId, position })),
  )
  return rows.map(({ position, attemptedAt, ...attempt }) => {
    const event = events.get(placeKey(accountId, position))
    const result = attempt.status === null ? `no response: ${attempt.error}` : `status ${attempt.status}`
    const description = `Endpoint ${attempt.endpointId} was called for ${event?.kind ?? 'an event'}: ${result}.`
    return item('webhook-attempt', attemptedAt, {
      description,
      data: present({ eventId: event?.eventId ?? null, type: event?.kind ?? null, ...attempt }),
    })
  })
}
