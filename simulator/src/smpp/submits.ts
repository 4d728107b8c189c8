import { randomInt } from 'node:crypto'
import type { Faults } from '../faults.ts'
import type { Ledger } from '../phones/ledger.ts'
import { addMessage, type Message, messageById } from '../phones/messages.ts'
import type { SmsEnd, Steps } from '../phones/steps.ts'
import { readSetting, type Store, writeSetting } from '../state/store.ts'
import type { Outbox } from './outbox.ts'
import { type ReceiptNotes, receiptPdu, wantsIntermediate, wantsReceipt } from './receipts.ts'
import type { Line, OnSubmit } from './server.ts'
import { STATUS } from './status.ts'
import type { Submission } from './submission.ts'

// Long enough for a receipt to overtake the answer.
const OVERTAKEN_MS = 100

/** Owes the receipt of an SMS that has ended, where its sender wants one. */
export function createReceipts(ledger: Ledger, faults: Faults, outbox: Outbox) {
  return (message: Message, end: SmsEnd): void => {
    const { registered } = JSON.parse(message.smpp ?? '{}') as ReceiptNotes
    if (!wantsReceipt(registered, end)) return
    const about = { phone: message.phone, messageId: message.message_id, dueAt: Date.now() + (faults.strikes('smpp.receiptLate')?.ms ?? 0) }
    if (faults.strikes('smpp.receiptLost')) {
      ledger.write({ kind: 'receipt-lost', channel: 'sms', ...about, origin: message.origin })
      return
    }
    const pdu = receiptPdu(message, end, faults)
    outbox.owe(about, pdu)
    if (faults.strikes('smpp.receiptDuplicated')) outbox.owe(about, pdu)
  }
}

type Counter = {
  store: Store
  ledger: Ledger
  faults: Faults
  steps: Steps
  outbox: Outbox
  lastNumber: number
}

export function createSubmits(parts: Pick<Counter, 'store' | 'ledger' | 'faults' | 'steps' | 'outbox'>): OnSubmit {
  const { store } = parts
  // Ids go on where they were, and begin somewhere else in each simulator.
  const base = Number(readSetting(store, 'smpp-ids') ?? randomInt(1_000_000_000, 2_000_000_000))
  writeSetting(store, 'smpp-ids', String(base))
  const lastNumber = base + (store.get<{ id: number | null }>('select max(id) as id from messages')?.id ?? 0)
  const counter: Counter = { ...parts, lastNumber }

  return (pdu, submission, line, answer) => {
    const outcome = outcomeOf(counter, submission)
    if (typeof outcome === 'number') {
      const phone = `+${pdu.destination_addr ?? ''}`
      parts.ledger.write({
        kind: 'sms-refused',
        channel: 'sms',
        phone,
        messageId: '',
        origin: pdu.source_addr ?? '',
        detail: { status: outcome },
      })
      void store.committed().then(() => answer(outcome))
      return
    }
    const { messageId, overtaken } = take(counter, outcome)
    const swallowed = swallows(parts.faults, line)
    void store.committed().then(() => {
      if (swallowed?.cuts) line.drop()
      else if (swallowed === undefined && overtaken) setTimeout(answer, OVERTAKEN_MS, STATUS.OK, messageId)
      else if (swallowed === undefined) answer(STATUS.OK, messageId)
    })
  }
}

/** The submission, or the command_status that refuses it. */
function outcomeOf({ faults }: Counter, submission: Submission | number): Submission | number {
  if (faults.strikes('smpp.throttled')) return STATUS.THROTTLED
  if (faults.strikes('smpp.queueFull')) return STATUS.MSGQFUL
  return faults.strikes('smpp.refused')?.status ?? submission
}

/** Writes it down, with what follows on it. `overtaken`: its receipt is to come before its answer. */
function take(counter: Counter, submission: Submission): { messageId: string; overtaken: boolean } {
  const { store, ledger, faults, steps } = counter
  const number = ++counter.lastNumber
  const messageId = faults.strikes('smpp.hexInAnswer') ? number.toString(16).toUpperCase() : String(number)
  const { phone, sender, text, part, expiresAt, scheduledAt, registered, addresses } = submission
  const notes: ReceiptNotes = { number, registered, addresses }
  const id = addMessage(store, {
    channel: 'sms',
    phone,
    message_id: messageId,
    origin: sender,
    body: text,
    part: part === undefined ? null : JSON.stringify(part),
    smpp: JSON.stringify(notes),
    expires_at: expiresAt,
  })
  ledger.write({ kind: 'sms-part', channel: 'sms', phone, messageId, origin: sender, ...(part === undefined ? {} : { detail: part }) })
  if (id === undefined) throw new Error('An SMS was not written down.')
  tellOnTheWay(counter, id, registered)
  const early = faults.strikes('smpp.receiptBeforeAnswer') && messageById(store, id)
  if (early) steps.deliver(early)
  else steps.begin({ id, phone, channel: 'sms', expiresAt, scheduledAt })
  return { messageId, overtaken: early !== undefined }
}

function tellOnTheWay({ store, faults, outbox }: Counter, id: number, registered: number): void {
  const message = wantsIntermediate(registered) ? messageById(store, id) : undefined
  if (message === undefined) return
  const about = { phone: message.phone, messageId: message.message_id, dueAt: Date.now() }
  outbox.owe(about, receiptPdu(message, 'ENROUTE', faults))
}

/** Whether the answer is kept back, and whether the connection is then cut; only that uses the fault up. */
function swallows(faults: Faults, line: Line): { cuts: boolean } | undefined {
  const fault = line.unanswered > 0 ? faults.armed('smpp.dropUnanswered') : faults.drawn('smpp.dropUnanswered')
  if (fault === undefined) {
    line.unanswered = 0
    return undefined
  }
  line.unanswered++
  const cuts = line.unanswered >= fault.submits
  if (cuts) faults.useUp('smpp.dropUnanswered')
  return { cuts }
}
