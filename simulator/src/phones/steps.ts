import type { Faults } from '../faults.ts'
import type { Store } from '../state/store.ts'
import { type Alarm, createAlarm } from '../timing.ts'
import { aboutMessage, expiryEvent, type RbmEvent, receiptEvent, tapEvent, textEvent } from '../webhooks/events.ts'
import { behaviourOf } from './behaviours.ts'
import type { Ledger, LedgerKind } from './ledger.ts'
import { isSettled, type Message, mark } from './messages.ts'
import { suggestionsOf } from './suggestions.ts'

/** How an SMS ended, in the words of SMPP. */
export type SmsEnd = 'DELIVRD' | 'UNDELIV' | 'EXPIRED'
type StepKind = 'deliver' | 'read' | 'answer' | 'expire'
type Due = Message & { due_at: number; step: number; kind: StepKind }

// So many in a turn of the event loop; requests come in between.
const STEPS_IN_A_TURN = 500

export type Steps = {
  /** What follows by itself on the acceptance of a message. */
  begin: (message: { id: number; phone: string; channel: 'rcs' | 'sms'; expiresAt: number | null; scheduledAt?: number | null }) => void
  /** The phone gets it, now. */
  deliver: (message: Message) => void
  read: (message: Message) => void
  start: () => void
  stop: () => void
}

type Tellers = {
  faults: Faults
  tell: (event: RbmEvent) => void
  /** Owes the receipt of an SMS. */
  receipt: (message: Message, end: SmsEnd) => void
}

type Stepper = Tellers & { store: Store; ledger: Ledger; delayMs: number; alarm: Alarm; lastId: number }

/** Takes messages from step to step. A step that is due is a row; it goes, what it does and its next step are written, all in one commit. */
export function createSteps(store: Store, ledger: Ledger, delayMs: number, tellers: Tellers): Steps {
  const lastId = store.get<{ id: number | null }>('select max(id) as id from steps')?.id ?? 0
  const alarm = createAlarm(() => takeDue(stepper))
  const stepper: Stepper = { ...tellers, store, ledger, delayMs, alarm, lastId }
  return {
    begin: ({ id, phone, channel, expiresAt, scheduledAt }) => {
      const deliversAt = Math.max(Date.now() + delayMs, scheduledAt ?? 0)
      const inTime = behaviourOf(phone).delivers && (expiresAt === null || expiresAt > deliversAt)
      if (channel === 'sms' || inTime) add(stepper, 'deliver', id, deliversAt)
      else if (expiresAt !== null) add(stepper, 'expire', id, expiresAt)
    },
    deliver: (message) => (message.channel === 'sms' ? endSms(stepper, message) : deliver(stepper, message)),
    read: (message) => read(stepper, message),
    start: () => takeDue(stepper),
    stop: alarm.stop,
  }
}

function add(stepper: Stepper, kind: StepKind, message: number, dueAt: number): void {
  stepper.store.run('insert into steps (due_at, id, kind, message) values (?, ?, ?, ?)', dueAt, ++stepper.lastId, kind, message)
  stepper.alarm.at(dueAt)
}

const addNext = (stepper: Stepper, kind: StepKind, { id }: Message): void => add(stepper, kind, id, Date.now() + stepper.delayMs)

const DUE = `select steps.due_at, steps.id as step, steps.kind, messages.* from steps join messages on messages.id = steps.message
  where steps.due_at <= ? order by steps.due_at, steps.id limit ?`

/** Two steps of a message in one list don't disturb each other: whoever added the later one had marked the message by then. */
function takeDue(stepper: Stepper): void {
  const { store, alarm } = stepper
  const due = store.all<Due>(DUE, Date.now(), STEPS_IN_A_TURN)
  const last = due.at(-1)
  // They are the first ones of the table, so one statement takes them all away, before the next steps are added.
  if (last !== undefined) store.run('delete from steps where (due_at, id) <= (?, ?)', last.due_at, last.step)
  for (const message of due) take(stepper, message.kind, message)
  const next = store.get<{ due_at: number }>('select due_at from steps order by due_at, id limit 1')
  if (next !== undefined) alarm.at(next.due_at)
}

function take(stepper: Stepper, kind: StepKind, message: Message): void {
  if (kind === 'read') read(stepper, message)
  else if (kind === 'answer') answer(stepper, message)
  else if (isSettled(message)) return
  else if (message.channel === 'sms') endSms(stepper, message)
  else if (kind === 'expire' || hasExpired(message)) expire(stepper, message)
  else deliver(stepper, message)
}

const hasExpired = (message: Message): boolean => message.expires_at !== null && message.expires_at <= Date.now()

function note({ ledger }: Stepper, kind: LedgerKind, message: Message, detail?: Record<string, unknown>): void {
  const { phone, message_id: messageId, origin } = message
  const channel = message.channel === 'sms' ? 'sms' : 'rcs'
  ledger.write({ kind, channel, phone, messageId, origin, ...(detail === undefined ? {} : { detail }) })
}

function deliver(stepper: Stepper, message: Message): void {
  mark(stepper.store, message.id, 'delivered_at')
  note(stepper, 'delivered', message)
  stepper.tell(receiptEvent(message, 'DELIVERED'))
  const { reads, answers } = behaviourOf(message.phone)
  if (reads) addNext(stepper, 'read', message)
  else if (answers) addNext(stepper, 'answer', message)
}

function read(stepper: Stepper, message: Message): void {
  if (message.read_at !== null) return
  mark(stepper.store, message.id, 'read_at')
  note(stepper, 'read', message)
  stepper.tell(receiptEvent(message, 'READ'))
  const { reads, answers } = behaviourOf(message.phone)
  if (reads && answers) addNext(stepper, 'answer', message)
}

function answer(stepper: Stepper, message: Message): void {
  const event = answerOf(message)
  if (event === undefined) return
  note(stepper, 'answered', message, { event: event.name })
  stepper.tell(event)
}

/** A phone that would tap has nothing to say to a message without buttons. */
function answerOf(message: Message): RbmEvent | undefined {
  const { answers } = behaviourOf(message.phone)
  if (answers !== 'tap') return textEvent(aboutMessage(message), answers === 'stop' ? 'STOP' : 'Thank you')
  const [first] = suggestionsOf(JSON.parse(message.body))
  return first && tapEvent(message, first)
}

function expire(stepper: Stepper, message: Message): void {
  mark(stepper.store, message.id, 'expired_at')
  note(stepper, 'expired', message)
  stepper.tell(
    expiryEvent(message, stepper.faults.strikes('webhooks.revokeFailed') ? 'TTL_EXPIRATION_REVOKE_FAILED' : 'TTL_EXPIRATION_REVOKED'),
  )
}

const ENDS = { DELIVRD: 'delivered_at', UNDELIV: 'failed_at', EXPIRED: 'expired_at' } as const

function endSms(stepper: Stepper, message: Message): void {
  const end: SmsEnd = hasExpired(message) ? 'EXPIRED' : behaviourOf(message.phone).smsFails ? 'UNDELIV' : 'DELIVRD'
  mark(stepper.store, message.id, ENDS[end])
  note(stepper, end === 'DELIVRD' ? 'sms-delivered' : 'sms-failed', message, { state: end })
  stepper.receipt(message, end)
}
