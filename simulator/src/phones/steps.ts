import type { Faults } from '../faults.ts'
import { createOwed, type Owed } from '../state/owed.ts'
import type { Store } from '../state/store.ts'
import { aboutMessage, expiryEvent, type RbmEvent, receiptEvent, sentDetail, tapEvent, textEvent } from '../webhooks/events.ts'
import { behaviourOf } from './behaviours.ts'
import { isSettled, type Message, type Messages } from './messages.ts'
import type { Offline } from './offline.ts'
import { suggestionsOf } from './suggestions.ts'

/** The final state of an SMS, by its name in SMPP receipts. */
export type SmsEnd = 'DELIVRD' | 'UNDELIV' | 'EXPIRED'
type StepKind = 'deliver' | 'read' | 'answer' | 'expire'
/** `message`: its offset in the log. */
type Step = { kind: StepKind; message: number }

// The batch size of a turn of the event loop. Requests are handled between two turns.
const BATCH_SIZE = 500
const NEVER = Number.MAX_SAFE_INTEGER

export type Steps = {
  /** Schedules the first step of an accepted message. */
  begin: (message: Message, scheduledAt?: number | null) => void
  /** Delivers a message now. */
  deliver: (message: Message) => void
  read: (message: Message) => void
  /** Continues with the steps that waited for phones to come online. */
  resume: () => void
  start: () => void
  stop: () => void
}

type Emitters = {
  offline: Offline
  faults: Faults
  emit: (event: RbmEvent) => void
  /** Schedules the receipt of an SMS. */
  receipt: (message: Message, end: SmsEnd) => void
}

type Stepper = Emitters & { messages: Messages; delayMs: number; owed: Owed<Step> }

/** Moves messages from step to step. The end of a step, its effects and the next step are in the same batch of the log. */
export function createSteps(store: Store, messages: Messages, delayMs: number, emitters: Emitters): Steps {
  const owed = createOwed<Step>(store, 'steps', () => processDue(stepper))
  const stepper: Stepper = { ...emitters, messages, delayMs, owed }
  return {
    begin: (message, scheduledAt) => begin(stepper, message, scheduledAt),
    deliver: (message) => {
      if (emitters.offline.has(message.phone)) begin(stepper, message)
      else if (message.channel === 'sms') endSms(stepper, message)
      else deliver(stepper, message)
    },
    read: (message) => read(stepper, message),
    // Only steps that waited have been tried before.
    resume: owed.hurry,
    start: owed.start,
    stop: owed.stop,
  }
}

function begin(stepper: Stepper, message: Message, scheduledAt?: number | null): void {
  const { phone, channel, expiresAt } = message
  const deliversAt = Math.max(Date.now() + stepper.delayMs, scheduledAt ?? 0)
  const inTime = behaviourOf(phone).delivers && (expiresAt === null || expiresAt > deliversAt)
  if (channel === 'sms' || inTime) add(stepper, 'deliver', message, deliversAt)
  else if (expiresAt !== null) add(stepper, 'expire', message, expiresAt)
}

function add({ owed, messages }: Stepper, kind: StepKind, message: Message, dueAt: number): void {
  messages.hold(message)
  owed.add({ kind, message: message.offset }, dueAt)
}

const addNext = (stepper: Stepper, kind: StepKind, message: Message): void => add(stepper, kind, message, Date.now() + stepper.delayMs)

function processDue(stepper: Stepper): void {
  const { owed, messages } = stepper
  for (let processed = 0; processed < BATCH_SIZE; processed++) {
    const next = owed.next()
    if (next === undefined) return
    const { kind, message: offset } = next.row
    const message = messages.take(offset)
    if (mustWait(stepper, kind, message)) {
      messages.hold(message)
      owed.again(next.id, kind === 'deliver' ? (message.expiresAt ?? NEVER) : NEVER)
      continue
    }
    owed.paid(next.id)
    processStep(stepper, kind, message)
  }
  owed.start()
}

/** Whether a step waits until its phone is online. A message that waits to be delivered can still expire or be revoked. */
function mustWait({ offline }: Stepper, kind: StepKind, message: Message): boolean {
  if (kind === 'expire' || !offline.has(message.phone)) return false
  return kind !== 'deliver' || !(isSettled(message) || hasExpired(message))
}

function processStep(stepper: Stepper, kind: StepKind, message: Message): void {
  if (kind === 'read') read(stepper, message)
  else if (kind === 'answer') reply(stepper, message)
  else if (isSettled(message)) return
  else if (message.channel === 'sms') endSms(stepper, message)
  else if (kind === 'expire' || hasExpired(message)) expire(stepper, message)
  else deliver(stepper, message)
}

const hasExpired = (message: Message): boolean => message.expiresAt !== null && message.expiresAt <= Date.now()

function deliver(stepper: Stepper, message: Message): void {
  stepper.messages.note(message, { kind: 'delivered' })
  stepper.emit(receiptEvent(message, 'DELIVERED'))
  const { reads, replies } = behaviourOf(message.phone)
  if (reads) addNext(stepper, 'read', message)
  else if (replies) addNext(stepper, 'answer', message)
}

function read(stepper: Stepper, message: Message): void {
  if (message.readAt !== null) return
  stepper.messages.note(message, { kind: 'read' })
  stepper.emit(receiptEvent(message, 'READ'))
  const { reads, replies } = behaviourOf(message.phone)
  if (reads && replies) addNext(stepper, 'answer', message)
}

function reply(stepper: Stepper, message: Message): void {
  const event = replyOf(stepper, message)
  if (event === undefined) return
  stepper.messages.note(message, { kind: 'answered', detail: sentDetail(event) })
  stepper.emit(event)
}

/** Returns undefined for a phone that taps, if the message has no buttons. */
function replyOf({ messages }: Stepper, message: Message): RbmEvent | undefined {
  const { replies } = behaviourOf(message.phone)
  if (replies !== 'tap') return textEvent(aboutMessage(message), replies === 'stop' ? 'STOP' : 'Thank you')
  const [first] = suggestionsOf(JSON.parse(messages.bodyOf(message)))
  return first && tapEvent(message, first)
}

function expire(stepper: Stepper, message: Message): void {
  stepper.messages.note(message, { kind: 'expired' })
  stepper.emit(
    expiryEvent(message, stepper.faults.strikes('webhooks.revokeFailed') ? 'TTL_EXPIRATION_REVOKE_FAILED' : 'TTL_EXPIRATION_REVOKED'),
  )
}

function endSms(stepper: Stepper, message: Message): void {
  const end: SmsEnd = hasExpired(message) ? 'EXPIRED' : behaviourOf(message.phone).smsFails ? 'UNDELIV' : 'DELIVRD'
  stepper.messages.note(message, { kind: end === 'DELIVRD' ? 'sms-delivered' : 'sms-failed', detail: { state: end } })
  stepper.receipt(message, end)
}
